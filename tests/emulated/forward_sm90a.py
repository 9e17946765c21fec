"""The sm90a forward kernel on the emulator: the launch that its launcher makes, of one ForwardCase."""

import ctypes
import math
from dataclasses import dataclass

import numpy as np

from attention.kernels.sm90a.forward.warp_specialised.launch import GROUP_ROWS, Launch, Shape, build_of, shape_of
from attention.problem import AttentionProblem
from attention.variant import KERNELS, Config
from microbench.build import Defines
from microbench.emulator import EmulatedDevice, TensorMap, toolchain
from microbench.emulator.device import EmulatedKernel
from tests.emulated.forward_case import Array, ForwardCase, Inputs, Outputs, inputs_of
from tests.emulated.poisoned import placed

FOLDER, COMMON = KERNELS / "sm90a/forward/warp_specialised", KERNELS / "common"
KERNEL, SOURCE = "attention_forward_sm90a", (FOLDER / "kernel.cu").read_text()
LOG2_E = math.log2(math.e)
OPEN = 1 << 20  # an edge of the band that hides nothing


@dataclass(frozen=True)
class Kernel:
    """A configuration, compiled for a problem; a case of that head dim may leave any of its features unused.

    changes     defines to override
    source      another text of kernel.cu, with its headers inlined
    """

    config: Config
    problem: AttentionProblem
    changes: Defines = ()
    source: str = SOURCE

    @property
    def defines(self) -> dict[str, int | str]:
        """What the launcher gives NVRTC."""
        return dict(build_of(self.problem, self.config).defines) | dict(self.changes)

    def load(self, device: EmulatedDevice) -> EmulatedKernel:
        """Built for the emulator, or taken from the cache."""
        defines = tuple(self.defines.items())
        return device.load(self.source, "kernel.cu", kernel=KERNEL, defines=defines, include=(COMMON, FOLDER))

    def library(self) -> ctypes.PyDLL:
        """What it is built into: one for all launches of this process."""
        built = toolchain.build_kernel(self.source, "kernel.cu", KERNEL, tuple(self.defines.items()), (COMMON, FOLDER))
        return ctypes.PyDLL(str(built))


def config_of(tile_keys: int, warpgroups: int = 2, *, q_in_registers: int = 0) -> Config:
    """A point of the variant's space."""
    return Config(
        (("tile_keys", tile_keys), ("warpgroups", warpgroups), ("stages", 2), ("q_in_registers", q_in_registers))
    )


def run(
    device: EmulatedDevice,
    case: ForwardCase,
    kernel: Kernel,
    *,
    blocks: int = 2,
    section: int = 2,
    inputs: Inputs | None = None,
) -> Outputs:
    """Launch it with so many blocks, and heads of a section of the causal schedule. Raises DeviceError."""
    inputs = inputs or inputs_of(case)
    shape = shape_of(kernel.problem, kernel.config)
    held = {name: placed(device, case.memory, getattr(inputs, name).shape) for name in "qkv"}
    for name, place in held.items():
        place.array[...] = getattr(inputs, name)
    out, lse, counters = placed(device, case.memory, inputs.q.shape), _lse(device, inputs), device.full(2, 0, np.int32)
    launch = _launch(case, shape, section)
    launch.blocks = blocks
    launch.queries, launch.keys = inputs.q.shape[2], inputs.k.shape[2]
    rows = {"q": GROUP_ROWS, "k": shape.tile_keys, "v": shape.tile_keys}
    for name, place in held.items():
        box = (1, 1, rows[name], shape.panel_width)
        element = "bf16" if case.dtype == "bfloat16" else "f16"
        encoded = TensorMap(place.array, box, element, swizzle=128 if shape.panel_width == 64 else 64).emulated()
        ctypes.memmove(ctypes.addressof(getattr(launch, name)), encoded.tobytes(), len(encoded.tobytes()))
    launch.out, launch.lse, launch.counters = out.array.ctypes.data, lse[1].ctypes.data, counters.ctypes.data
    launch.out_batch, launch.out_head, launch.out_row = (stride // 2 for stride in out.array.strides[:3])
    kept = _features(device, case, kernel, inputs, launch)
    kernel.load(device)((blocks,), (shape.threads,), (np.void(bytes(launch)),), shared_mem=shape.smem_bytes)
    strays = (
        (not out.untouched, "wrote beside out"),
        (not np.isnan(lse[::2]).all(), "wrote beside lse"),
        (counters.any(), f"left the counters at {counters}"),
        (not all(place.untouched for place in held.values()), "wrote beside its inputs"),
    )
    del kept
    return Outputs(out.array.copy(), lse[1].copy(), next((said for strayed, said in strays if strayed), ""))


def _lse(device: EmulatedDevice, inputs: Inputs) -> Array:
    """Three of them: the middle one is the kernel's."""
    return device.full((3, *inputs.q.shape[:3]), np.nan, np.float32)


def _launch(case: ForwardCase, shape: Shape, section: int) -> Launch:
    """All but addresses, as kernel.py has it."""
    (queries, keys), count = case.longest, len(case.sequences)
    row_tiles, scale_log2 = -(-queries // shape.tile_rows), (case.softcap or case.scale) * LOG2_E
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
        slack=8 / scale_log2,
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
