"""What the launches of forward kernels on the emulator have alike: a ForwardCase as the fields of `Launch`."""

import ctypes
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from attention.kernels.common.family import late
from attention.kernels.launch.strided import FewLaunch, Launch, SplitLaunch
from attention.kernels.sm80.forward.split_keys.arguments import STATE_FLOATS
from attention.problem import AttentionProblem
from attention.variant import Config, CudaBuild, by_path
from attention.verify.emulated import headers_of
from microbench.compile import Defines
from microbench.emulator import EmulatedDevice, toolchain
from microbench.emulator.device import EmulatedKernel
from tests.emulated.forward_case import Array, ForwardCase, Inputs, Outputs, inputs_of, places
from tests.emulated.poisoned import POISON, Placed, placed

LOG2_E = math.log2(math.e)
LSE_POISON = 0xFFFFFFFF  # the bits of a NaN, as EmulatedDevice.empty leaves them
OPEN = 1 << 20  # an edge of the band that hides nothing


@dataclass(frozen=True)
class Kernel:
    """A configuration of a variant, compiled for a problem; a case of that head dim may leave its features unused.

    changes     defines to override
    source      another text of the kernel's .cu, with its headers inlined
    """

    variant: str
    config: Config
    problem: AttentionProblem
    changes: Defines = ()
    source: str = ""

    @property
    def build(self) -> CudaBuild:
        """What the launcher gives NVRTC."""
        (build,) = by_path(self.variant).steps(self.problem, self.config)
        return build

    @property
    def defines(self) -> dict[str, int | str]:
        return dict(self.build.defines) | dict(self.changes)

    @property
    def include(self) -> tuple[Path, ...]:
        return headers_of(by_path(self.variant).folder)

    @property
    def text(self) -> str:
        return self.source or next(by_path(self.variant).folder.glob("*.cu")).read_text()

    def load(self, device: EmulatedDevice) -> EmulatedKernel:
        """Built for the emulator, or taken from the cache."""
        defines = tuple(self.defines.items())
        return device.load(self.text, "kernel.cu", kernel=self.build.kernel, defines=defines, include=self.include)

    def library(self, *, races: bool = True) -> ctypes.PyDLL:
        """What it is built into: one for all launches of this process, with the race report or without."""
        built = toolchain.build_kernel(
            *(self.text, "kernel.cu", self.build.kernel, tuple(self.defines.items()), self.include), watched=races
        )
        return ctypes.PyDLL(str(built))


@dataclass(frozen=True)
class Room:
    """The tensors of a case in poisoned memory; of three lse the middle one is the kernel's.

    `spare` says which rows of it belong to no sequence. Their inputs are NaN, so what a kernel makes of them would look
    like poison to whoever compares numbers: bits are compared.
    """

    held: dict[str, Placed]
    lse: Array
    spare: Array  # (batch, rows)

    def outputs(self, more: str = "") -> Outputs:
        """What the kernel left. `more`: what else it did wrong."""
        strays = [f"wrote beside {name}" for name, place in self.held.items() if not place.untouched]
        out, lse = (bits.swapaxes(1, 2)[self.spare] for bits in (self.held["out"].array, self.lse[1].view(np.uint32)))
        strays += ["wrote beside lse"] * (not np.isnan(self.lse[::2]).all())
        strays += ["wrote out of a row of no sequence"] * bool((out != POISON).any())
        strays += ["wrote lse of a row of no sequence"] * bool((lse != LSE_POISON).any())
        return Outputs(self.held["out"].array.copy(), self.lse[1].copy(), next(iter([*strays, more])))


def room_of(device: EmulatedDevice, case: ForwardCase, inputs: Inputs) -> Room:
    """Inputs where they are to lie, and room for the results."""
    held = {name: placed(device, case.memory, getattr(inputs, name).shape) for name in "qkv"}
    for name, place in held.items():
        place.array[...] = getattr(inputs, name)
    held["out"] = placed(device, case.memory, (*inputs.q.shape[:3], inputs.v.shape[3]))
    spare = np.ones((inputs.q.shape[0], inputs.q.shape[2]), bool)
    for place in places(case):
        spare[place.batch, place.queries] = False
    return Room(held, device.empty((3, *inputs.q.shape[:3]), np.float32), spare)


def point(launch: Any, room: Room, *names: str) -> None:
    """Write where these tensors lie, how far apart batches, heads and rows are, and of which K and V begin late."""
    launch.lse = room.lse[1].ctypes.data
    for name in names:
        array = room.held[name].array
        setattr(launch, name, array.ctypes.data)
        for axis, stride in zip(("batch", "head", "row"), array.strides, strict=False):
            setattr(launch, f"{name}_{axis}", stride // 2)
    for name in "kv":
        array = room.held[name].array
        setattr(launch, f"{name}_late", late(array.shape[-1], tuple(stride // 2 for stride in array.strides)))


def describe(
    launch: Any, case: ForwardCase, inputs: Inputs, tile_rows: int, section: int, dealt: bool = False, group: int = 1
) -> None:
    """Write what follows from a case: not common.family.fill, as no problem has a band of any two edges."""
    (queries, keys), count = case.longest, len(case.sequences)
    own_lengths, heads = bool(case.lengths or case.ranges), case.heads_q // group
    row_tiles = inputs.q.shape[2] // tile_rows + count if dealt else -(-queries * group // tile_rows)
    tiles, scale_log2 = row_tiles * heads * (1 if dealt else count), (case.softcap or case.scale) * LOG2_E
    ahead = keys - queries if case.aligned == "bottom_right" and not own_lengths else 0
    launch.batch, launch.heads, launch.heads_per_kv = count, heads, case.heads_q // case.heads_kv
    launch.head_dim, launch.queries, launch.keys = case.head_dim, inputs.q.shape[2], inputs.k.shape[2]
    launch.right = OPEN if case.right is None else case.right + ahead
    launch.left = -OPEN if case.left is None else case.left + ahead
    launch.moves = int(case.aligned == "bottom_right")
    launch.row_tiles, launch.tiles, launch.section = row_tiles, tiles, section
    launch.scale_log2, launch.alibi_scale = scale_log2, LOG2_E / scale_log2
    launch.softcap = case.scale / case.softcap if case.softcap else 0.0


def bring_features(
    device: EmulatedDevice, case: ForwardCase, compiled: dict[str, int | str], inputs: Inputs, launch: Any
) -> list[Array]:
    """Fill in what the compiled features read, neutral where the case does not ask; the arrays must outlive the run."""
    kept = list[Array]()
    assert bool(compiled["SOFTCAP"]) == bool(case.softcap) and bool(compiled["VARLEN"]) == bool(case.lengths)

    def held(array: Array) -> int:
        kept.append(device.asarray(array))
        return int(kept[-1].ctypes.data)

    if compiled["VARLEN"]:
        starts = np.cumsum([(0, 0), *case.lengths], 0).astype(np.int32)
        launch.query_starts, launch.key_starts = held(starts[:, 0]), held(starts[:, 1])
    if case.ranges:
        assert compiled["RANGES"]
        used_q, used_k, first = np.array(case.ranges, np.int32).T
        launch.seqused_q, launch.seqused_k, launch.leftpad_k = held(used_q), held(used_k), held(first)
    if compiled["ALIBI"]:
        launch.alibi = held(inputs.slopes if case.alibi else np.zeros((1, case.heads_q), np.float32))
        launch.alibi_batch, launch.alibi_head = case.heads_q if case.alibi == "batch" else 0, 1
    if compiled["SINKS"]:
        launch.sinks = held(inputs.sinks if case.sinks else np.full(case.heads_q, -np.inf, np.float32))
    if compiled["MASK"] or compiled["BIAS"]:
        mask = mask_of(case, inputs)
        launch.mask = held(mask)
        steps = (stride // mask.itemsize for stride in mask.strides)
        strides = (0 if size == 1 else step for size, step in zip(mask.shape, steps, strict=True))
        launch.mask_batch, launch.mask_head, launch.mask_row, launch.mask_key = strides
    return kept


def mask_of(case: ForwardCase, inputs: Inputs) -> Array:
    """One that hides nothing where the case has none."""
    return inputs.mask if case.mask else np.ones((1, 1, 1, case.longest[1]), np.uint8)


def run_strided(
    shape_of: Callable[[AttentionProblem, Config], Any],
    device: EmulatedDevice,
    case: ForwardCase,
    kernel: Kernel,
    *,
    section: int = 2,
    inputs: Inputs | None = None,
) -> Outputs:
    """Launch a kernel that reads by strides: a block for each tile, so many heads in a section. Raises DeviceError."""
    inputs, build = inputs or inputs_of(case), kernel.build
    room, launch = room_of(device, case, inputs), Launch()
    rows, dealt = shape_of(kernel.problem, kernel.config).tile_rows, "DEALT" in kernel.defines
    describe(launch, case, inputs, rows, section, dealt)
    point(launch, room, *room.held)
    kept = bring_features(device, case, kernel.defines, inputs, launch)
    kernel.load(device)((launch.tiles,), (build.threads,), (np.void(bytes(launch)),), shared_mem=build.smem_bytes)
    del kept
    return room.outputs()


def run_split(
    shape_of: Callable[[AttentionProblem, Config], Any],
    device: EmulatedDevice,
    case: ForwardCase,
    kernel: Kernel,
    *,
    section: int = 2,
    inputs: Inputs | None = None,
    key_splits: int = 0,
) -> Outputs:
    """The same of one whose keys may be split, by its configuration or in so many parts. Raises DeviceError."""
    inputs = inputs or inputs_of(case)
    room, launch, shape = room_of(device, case, inputs), SplitLaunch(), shape_of(kernel.problem, kernel.config)
    describe(launch, case, inputs, shape.tile_rows, section)
    point(launch, room, *room.held)
    launch.key_splits = key_splits or shape.key_splits
    return _in_parts(device, case, kernel, inputs, room, launch, shape.partial_floats)


def run_few(
    shape_of: Callable[[AttentionProblem, Config], Any],
    device: EmulatedDevice,
    case: ForwardCase,
    kernel: Kernel,
    *,
    section: int = 2,
    inputs: Inputs | None = None,
    key_splits: int = 0,
) -> Outputs:
    """The same of one whose blocks leave their parts row by row, and heads of a group may share rows."""
    inputs = inputs or inputs_of(case)
    room, launch, shape = room_of(device, case, inputs), FewLaunch(), shape_of(kernel.problem, kernel.config)
    group = case.heads_q // case.heads_kv if kernel.defines["PACK_GQA"] else 1
    describe(launch, case, inputs, shape.tile_rows, section, group=group)
    point(launch, room, *room.held)
    launch.key_splits = key_splits or shape.key_splits
    launch.part_rows = min(shape.tile_rows, case.longest[0] * group)
    floats = launch.part_rows * (shape.value_dim + STATE_FLOATS)
    return _in_parts(device, case, kernel, inputs, room, launch, floats)


def _in_parts(
    device: EmulatedDevice,
    case: ForwardCase,
    kernel: Kernel,
    inputs: Inputs,
    room: Room,
    launch: SplitLaunch | FewLaunch,
    part_floats: int,
) -> Outputs:
    """A block for each part of a tile's keys, which leaves so many numbers; all counters are 0 again behind it."""
    partials = device.full(launch.tiles * launch.key_splits * part_floats, np.nan, np.float32)
    arrivals = device.full(launch.tiles, 0, np.int32)
    launch.partials, launch.arrivals = partials.ctypes.data, arrivals.ctypes.data
    kept = bring_features(device, case, kernel.defines, inputs, launch)
    blocks, build = launch.tiles * launch.key_splits, kernel.build
    kernel.load(device)((blocks,), (build.threads,), (np.void(bytes(launch)),), shared_mem=build.smem_bytes)
    del kept
    return room.outputs("left counters that are not 0" if arrivals.any() else "")
