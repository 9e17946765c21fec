"""One launch of any kernel of ours: torch tensors in, one argument to the kernel, (out, lse) back."""

import ctypes
import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from attention.call import NO_EXTRAS, Extras
from attention.errors import LaunchError
from attention.kernels.common.family import Sizes, Strides, fill, late
from attention.kernels.common.halves import half_of
from attention.kernels.common.key_splits import MOST_TILES
from attention.kernels.common.layout import addresses
from attention.kernels.launch import waiting
from attention.kernels.launch.machine import Machine, machine_of
from attention.kernels.launch.ready import Ready, results_for
from attention.kernels.launch.strided import FewLaunch, Launch, SplitLaunch
from attention.kernels.launch.tensors import in_place, readable
from attention.problem import AttentionProblem
from attention.variant import Config, CudaBuild


@dataclass(frozen=True, eq=False)
class Launcher:
    """What one kernel has of its own.

    folder    where its source lies
    argument  the type of its one argument, with the fields that common.family.fill writes
    shape_of  the tile of a configuration, with its `tile_rows` and `threads`
    build_of  what NVRTC compiles
    deal      write what follows from problem and machine, and give the number of blocks
    head      what the argument begins with: how query, key and value are read where they lie
    lie       write what follows from the problem and the strides of query, key and value
    room      how many floats blocks leave for one another, beside counters of their arrivals
    bring     the tensors of features as the kernel reads them fast: the caller's, or copies
    boxed     how TMA reads the mask of a call, the `mask_map` of the argument, where the tile has it so (`mask_boxes`)
    counts    persistent blocks take their tiles from `counters`
    """

    folder: Path
    argument: type[Any]
    shape_of: Callable[[AttentionProblem, Config], Any]
    build_of: Callable[[AttentionProblem, Config], CudaBuild]
    deal: Callable[[Any, Machine, Any], int]
    head: Callable[[Machine, Any, torch.Tensor, torch.Tensor, torch.Tensor], bytes]
    lie: Callable[[Any, AttentionProblem, Strides, Strides, Strides], None] = lambda launch, problem, *strides: None
    room: Callable[[Any, Any], int] = lambda launch, shape: 0
    bring: Callable[[Extras], Extras] = lambda extras: extras
    boxed: Callable[[Machine, Any, torch.Tensor], bytes] | None = None
    counts: bool = False

    def __call__(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        problem: AttentionProblem,
        config: Config,
        extras: Extras = NO_EXTRAS,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Out (B, Hq, Sq, Dv), lse (B, Hq, Sq) of (B, Hq, Sq, D), (B, Hkv, Skv, D) and (B, Hkv, Skv, Dv), f16 or bf16.

        Packed sequences are one batch of all their rows. Inputs whose last dimension is not contiguous, or whose base
        or a stride is no multiple of 16 bytes, are copied first. Raises BuildError or LaunchError where the kernel
        cannot be built or run.
        """
        device = query.device
        if device.index is not None and device.index != torch.cuda.current_device():
            with torch.cuda.device(device.index):
                return self(query, key, value, problem, config, extras)
        ready, where = self.ready(query, key, value, problem, config), addresses(query, key, value)
        if ready is None or where is None:
            like = query.shape, query.stride()
            query, key, value = readable(query), readable(key), readable(value)
            ready = _ready(self, machine_of(device), *like, *_lies(query, key, value), problem, config)
            where = query.data_ptr(), key.data_ptr(), value.data_ptr()
        out, lse = ready(query, key, value, where, self.bring(extras))
        assert lse is not None
        return out, lse

    def ready(
        self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, problem: AttentionProblem, config: Config
    ) -> Ready | None:
        """The launch for tensors like these, on the current device; None where the kernel reads copies of them.

        Raises BuildError, LaunchError.
        """
        lies = _lies(query, key, value)
        if not in_place(*lies):
            return None
        return _ready(self, machine_of(query.device), *lies[:2], *lies, problem, config)


def strided(
    folder: Path,
    shape_of: Callable[[AttentionProblem, Config], Any],
    build_of: Callable[[AttentionProblem, Config], CudaBuild],
) -> Launcher:
    """That of a kernel which reads tensors by address and strides, a block for each tile of rows."""
    return Launcher(folder, Launch, shape_of, build_of, _a_block_each, _addresses, _strides_and_lateness)


def split_strided(
    folder: Path,
    shape_of: Callable[[AttentionProblem, Config], Any],
    build_of: Callable[[AttentionProblem, Config], CudaBuild],
) -> Launcher:
    """The same of a kernel which may deal the keys of a tile to several blocks (common/key_splits.cuh)."""
    return Launcher(folder, SplitLaunch, shape_of, build_of, _a_block_a_part, _addresses, _strides, _room_for_parts)


def few_strided(
    folder: Path,
    shape_of: Callable[[AttentionProblem, Config], Any],
    build_of: Callable[[AttentionProblem, Config], CudaBuild],
) -> Launcher:
    """The same of a kernel whose blocks leave their parts row by row."""
    rows = _a_block_of_rows, _addresses, _strides_and_lateness, _room_for_parts
    return Launcher(folder, FewLaunch, shape_of, build_of, *rows)


def _a_block_each(launch: Any, machine: Machine, shape: Any) -> int:
    return int(launch.tiles)


def _a_block_a_part(launch: Any, machine: Machine, shape: Any) -> int:
    launch.key_splits = shape.key_splits
    return int(launch.tiles * shape.key_splits)


def _a_block_of_rows(launch: Any, machine: Machine, shape: Any) -> int:
    launch.part_rows = shape.part_rows
    return _a_block_a_part(launch, machine, shape)


def _room_for_parts(launch: Any, shape: Any) -> int:
    if shape.key_splits == 1:
        return 0
    if launch.tiles > MOST_TILES:
        raise LaunchError(f"{launch.tiles} tiles of rows have their keys split, but counters are for {MOST_TILES}.")
    return int(launch.tiles * shape.key_splits * shape.partial_floats)


def _addresses(machine: Machine, shape: Any, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> bytes:
    return struct.pack("3Q", query.data_ptr(), key.data_ptr(), value.data_ptr())


def lateness(launch: Any, problem: AttentionProblem, query: Strides, key: Strides, value: Strides) -> None:
    """Of which tensors the kernel reads rows of every other head from eight columns before (common/lead.cuh)."""
    launch.k_late, launch.v_late = late(problem.head_dim, key), late(problem.head_dim_v, value)


def _strides_and_lateness(launch: Any, problem: AttentionProblem, query: Strides, key: Strides, value: Strides) -> None:
    _strides(launch, problem, query, key, value)
    lateness(launch, problem, query, key, value)


def _strides(launch: Any, problem: AttentionProblem, query: Strides, key: Strides, value: Strides) -> None:
    launch.q_batch, launch.q_head, launch.q_row, _ = query
    launch.k_batch, launch.k_head, launch.k_row, _ = key
    launch.v_batch, launch.v_head, launch.v_row, _ = value


def _lies(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor
) -> tuple[Sizes, Strides, Sizes, Strides, Sizes, Strides]:
    return query.shape, query.stride(), key.shape, key.stride(), value.shape, value.stride()


@lru_cache(maxsize=4096)
def _ready(
    launcher: Launcher,
    machine: Machine,
    asked: Sizes,
    asked_strides: Strides,
    query: Sizes,
    query_strides: Strides,
    key: Sizes,
    key_strides: Strides,
    value: Sizes,
    value_strides: Strides,
    problem: AttentionProblem,
    config: Config,
) -> Ready:
    """`asked` is the query of the caller, whose result lies as that does; the others are as the kernel reads them."""
    half = half_of(problem)
    shape = launcher.shape_of(half, config)
    with waiting.on_behalf_of(problem):
        function = machine.function(launcher.folder, launcher.build_of(half, config))
    results = results_for(asked, asked_strides, getattr(torch, problem.dtype), problem.head_dim_v)
    template: ctypes.Structure = launcher.argument()
    fill(template, half, query, key, shape.tile_rows, getattr(shape, "group", 1))
    launcher.lie(template, half, query_strides, key_strides, value_strides)
    template.out_batch, template.out_head, template.out_row, _ = results.out.strides
    blocks = launcher.deal(template, machine, shape)
    written = results.out, results.lse, results.lse_bytes, results.narrow
    room, columns = launcher.room(template, shape), half.head_dim_v if half is not problem else 0
    return Ready(launcher, machine, shape, function, blocks, bytes(template), *written, room=room, columns=columns)
