"""One launch of any kernel of ours: torch tensors in, one argument to the kernel, (out, lse) back."""

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from attention.call import NO_EXTRAS, Extras
from attention.errors import LaunchError
from attention.kernels.common.family import Sizes, fill
from attention.kernels.common.key_splits import MOST_TILES, partial_floats
from attention.kernels.common.layout import empty_lse
from attention.kernels.launch import waiting
from attention.kernels.launch.machine import Held, Machine, machine_of
from attention.kernels.launch.strided import Launch, SplitLaunch
from attention.kernels.launch.tensors import outputs, place, readable
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
    point     write how query, key and value are read
    lend      write where a workspace lies, and give the tensors that hold it
    """

    folder: Path
    argument: type[Any]
    shape_of: Callable[[AttentionProblem, Config], Any]
    build_of: Callable[[AttentionProblem, Config], CudaBuild]
    deal: Callable[[Any, Machine, Any], int]
    point: Callable[[Any, Machine, Any, torch.Tensor, torch.Tensor, torch.Tensor], None]
    lend: Callable[[Any, Machine, Any, torch.Tensor], Held] = lambda launch, machine, shape, query: ()

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
        (out, written), lse = outputs(query, value.shape[-1]), empty_lse(query)
        query, key, value = readable(query), readable(key), readable(value)
        machine = machine_of(device)
        prepared = _prepared(self, machine, query.shape, key.shape, written.stride(), problem, config)
        argument = self.argument.from_buffer_copy(prepared.template)
        self.point(argument, machine, prepared.shape, query, key, value)
        argument.out, argument.lse = written.data_ptr(), lse.data_ptr()
        if extras is not NO_EXTRAS:
            place(argument, extras)
        lent = self.lend(argument, machine, prepared.shape, query)
        held = query, key, value, written, lse, *lent
        machine.launch(prepared.function, prepared.blocks, prepared.shape.threads, argument, held, extras)
        if written is not out:
            out.copy_(written[..., : out.shape[-1]])
        return out, lse


def strided(
    folder: Path,
    shape_of: Callable[[AttentionProblem, Config], Any],
    build_of: Callable[[AttentionProblem, Config], CudaBuild],
) -> Launcher:
    """That of a kernel which reads tensors by address and strides, a block for each tile of rows."""
    return Launcher(folder, Launch, shape_of, build_of, _a_block_each, _point)


def split_strided(
    folder: Path,
    shape_of: Callable[[AttentionProblem, Config], Any],
    build_of: Callable[[AttentionProblem, Config], CudaBuild],
) -> Launcher:
    """The same of a kernel which may deal the keys of a tile to several blocks (common/key_splits.cuh)."""
    return Launcher(folder, SplitLaunch, shape_of, build_of, _a_block_a_part, _point, _room_for_parts)


def _a_block_each(launch: Any, machine: Machine, shape: Any) -> int:
    return int(launch.tiles)


def _a_block_a_part(launch: Any, machine: Machine, shape: Any) -> int:
    launch.key_splits = shape.key_splits
    return int(launch.tiles * shape.key_splits)


def _room_for_parts(launch: Any, machine: Machine, shape: Any, query: torch.Tensor) -> Held:
    """Torch's memory, which a graph that is captured keeps; the counters are the stream's or the graph's own."""
    if shape.key_splits == 1:
        return ()
    if launch.tiles > MOST_TILES:
        raise LaunchError(f"{launch.tiles} tiles of rows have their keys split, but counters are for {MOST_TILES}.")
    floats = launch.tiles * shape.key_splits * partial_floats(shape)
    partials = query.new_empty(floats, dtype=torch.float32)
    launch.partials, launch.arrivals = partials.data_ptr(), machine.counters(MOST_TILES)
    return (partials,)


def _point(
    launch: Any, machine: Machine, shape: Any, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor
) -> None:
    launch.q, launch.k, launch.v = query.data_ptr(), key.data_ptr(), value.data_ptr()
    launch.q_batch, launch.q_head, launch.q_row, _ = query.stride()
    launch.k_batch, launch.k_head, launch.k_row, _ = key.stride()
    launch.v_batch, launch.v_head, launch.v_row, _ = value.stride()


@dataclass(frozen=True)
class Prepared:
    """All of a launch that does not change with addresses."""

    function: Any
    shape: Any
    template: bytes
    blocks: int


@lru_cache(maxsize=4096)
def _prepared(
    launcher: Launcher,
    machine: Machine,
    query: Sizes,
    key: Sizes,
    out_strides: Sizes,
    problem: AttentionProblem,
    config: Config,
) -> Prepared:
    shape = launcher.shape_of(problem, config)
    with waiting.on_behalf_of(problem):
        function = machine.function(launcher.folder, launcher.build_of(problem, config))
    template: ctypes.Structure = launcher.argument()
    fill(template, problem, query, key, shape.tile_rows)
    template.out_batch, template.out_head, template.out_row, _ = out_strides
    blocks = launcher.deal(template, machine, shape)
    return Prepared(function, shape, bytes(template), blocks)
