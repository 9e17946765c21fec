"""The sm80 forward kernel on the emulator: one block for each tile of rows, of one ForwardCase."""

import math
from dataclasses import dataclass

import numpy as np

from attention.kernels.sm80.forward.software_pipelined.launch import KERNEL, Launch, build_of, shape_of
from attention.problem import AttentionProblem
from attention.variant import KERNELS, Config
from microbench.emulator import EmulatedDevice
from microbench.emulator.device import EmulatedKernel
from tests.emulated.forward_case import Array, ForwardCase, Inputs, Outputs, inputs_of
from tests.emulated.poisoned import placed

FOLDER, COMMON = KERNELS / "sm80/forward/software_pipelined", KERNELS / "common"
SOURCE = (FOLDER / "kernel.cu").read_text()
LOG2_E = math.log2(math.e)
OPEN = 1 << 20  # an edge of the band that hides nothing


@dataclass(frozen=True)
class Kernel:
    """A configuration, compiled for a problem; a case of that head dim may leave any of its features unused."""

    config: Config
    problem: AttentionProblem

    @property
    def defines(self) -> dict[str, int | str]:
        """What the launcher gives NVRTC."""
        return dict(build_of(self.problem, self.config).defines)

    def load(self, device: EmulatedDevice) -> EmulatedKernel:
        """Built for the emulator, or taken from the cache."""
        defines = tuple(self.defines.items())
        return device.load(SOURCE, "kernel.cu", kernel=KERNEL, defines=defines, include=(COMMON, FOLDER))


def config_of(tile_keys: int, slice_keys: int, *, warps: int = 4, warp_rows: int = 32, **others: int) -> Config:
    """A point of the variant's space."""
    axes = {"warps": warps, "warp_rows": warp_rows, "tile_keys": tile_keys, "slice_keys": slice_keys}
    defaults = {"blocks": 1, "q_in_registers": 1, "ahead": 1, "fence": 0}
    return Config(tuple((axes | defaults | others).items()))


def run(
    device: EmulatedDevice, case: ForwardCase, kernel: Kernel, *, section: int = 2, inputs: Inputs | None = None
) -> Outputs:
    """Launch it with so many heads in a section of the causal schedule. Raises DeviceError."""
    inputs = inputs or inputs_of(case)
    built = build_of(kernel.problem, kernel.config)
    tile_rows = shape_of(kernel.problem, kernel.config).tile_rows
    held = {name: placed(device, case.memory, getattr(inputs, name).shape) for name in "qkv"}
    for name, place in held.items():
        place.array[...] = getattr(inputs, name)
    held["out"] = placed(device, case.memory, inputs.q.shape)
    lse = device.full((3, *inputs.q.shape[:3]), np.nan, np.float32)  # the middle one is the kernel's
    launch = _launch(case, tile_rows, section)
    for name, place in held.items():
        setattr(launch, name, place.array.ctypes.data)
        for axis, stride in zip(("batch", "head", "row"), place.array.strides, strict=False):
            setattr(launch, f"{name}_{axis}", stride // 2)
    launch.lse = lse[1].ctypes.data
    launch.queries, launch.keys = inputs.q.shape[2], inputs.k.shape[2]
    kept = _features(device, case, kernel, inputs, launch)
    kernel.load(device)((launch.tiles,), (built.threads,), (np.void(bytes(launch)),), shared_mem=built.smem_bytes)
    strays = (
        (not all(place.untouched for place in held.values()), "wrote beside a tensor"),
        (not np.isnan(lse[::2]).all(), "wrote beside lse"),
    )
    del kept
    return Outputs(held["out"].array.copy(), lse[1].copy(), next((said for strayed, said in strays if strayed), ""))


def _launch(case: ForwardCase, tile_rows: int, section: int) -> Launch:
    """All but addresses and strides."""
    (queries, keys), count = case.longest, len(case.sequences)
    row_tiles, scale_log2 = -(-queries // tile_rows), (case.softcap or case.scale) * LOG2_E
    ahead = keys - queries if case.aligned == "bottom_right" and not case.lengths else 0
    return Launch(
        batch=count,
        heads=case.heads_q,
        heads_per_kv=case.heads_q // case.heads_kv,
        head_dim=case.head_dim,
        right=OPEN if case.right is None else case.right + ahead,
        left=-OPEN if case.left is None else case.left + ahead,
        moves=int(case.aligned == "bottom_right"),
        row_tiles=row_tiles,
        tiles=row_tiles * count * case.heads_q,
        section=section,
        scale_log2=scale_log2,
        softcap=case.scale / case.softcap if case.softcap else 0.0,
        alibi_scale=LOG2_E / scale_log2,
    )


def _features(device: EmulatedDevice, case: ForwardCase, kernel: Kernel, inputs: Inputs, launch: Launch) -> list[Array]:
    """Fill in what the compiled features read, neutral where the case does not ask; the arrays must outlive the run."""
    compiled, kept = kernel.defines, list[Array]()
    assert bool(compiled["SOFTCAP"]) == bool(case.softcap) and bool(compiled["VARLEN"]) == bool(case.lengths)

    def held(array: Array) -> int:
        kept.append(device.asarray(array))
        return int(kept[-1].ctypes.data)

    if compiled["VARLEN"]:
        starts = np.cumsum([(0, 0), *case.lengths], 0).astype(np.int32)
        launch.query_starts, launch.key_starts = held(starts[:, 0]), held(starts[:, 1])
    if compiled["ALIBI"]:
        launch.alibi = held(inputs.slopes if case.alibi else np.zeros((1, case.heads_q), np.float32))
        launch.alibi_batch, launch.alibi_head = case.heads_q if case.alibi == "batch" else 0, 1
    if compiled["SINKS"]:
        launch.sinks = held(inputs.sinks if case.sinks else np.full(case.heads_q, -np.inf, np.float32))
    if compiled["MASK"]:
        mask = inputs.mask if case.mask else np.ones((1, 1, 1, case.longest[1]), np.uint8)
        launch.mask = held(mask)
        strides = (0 if size == 1 else stride for size, stride in zip(mask.shape, mask.strides, strict=True))
        launch.mask_batch, launch.mask_head, launch.mask_row, launch.mask_key = strides
    return kept
