"""The sm90a forward kernel on the emulator: the launch that its launcher makes, of one ForwardCase."""

import ctypes
from dataclasses import dataclass

import numpy as np

from attention.kernels.sm90a.forward.warp_specialised.launch import GROUP_ROWS, Launch, build_of, shape_of
from attention.problem import AttentionProblem
from attention.variant import KERNELS, Config
from microbench.compile import Defines
from microbench.emulator import EmulatedDevice, TensorMap, toolchain
from microbench.emulator.device import EmulatedKernel
from tests.emulated.forward_case import Array, ForwardCase, Inputs, Outputs, inputs_of
from tests.emulated.forward_launch import bring_features, describe, headers_of
from tests.emulated.poisoned import placed

FOLDER = KERNELS / "sm90a/forward/warp_specialised"
INCLUDE = headers_of(FOLDER)
KERNEL, SOURCE = "attention_forward_sm90a", (FOLDER / "kernel.cu").read_text()


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
        return device.load(self.source, "kernel.cu", kernel=KERNEL, defines=defines, include=INCLUDE)

    def library(self) -> ctypes.PyDLL:
        """What it is built into: one for all launches of this process."""
        built = toolchain.build_kernel(self.source, "kernel.cu", KERNEL, tuple(self.defines.items()), INCLUDE)
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
    launch = Launch(blocks=blocks)
    describe(launch, case, shape.tile_rows, section)
    launch.slack = 8 / launch.scale_log2
    launch.queries, launch.keys = inputs.q.shape[2], inputs.k.shape[2]
    rows = {"q": GROUP_ROWS, "k": shape.tile_keys, "v": shape.tile_keys}
    for name, place in held.items():
        box = (1, 1, rows[name], shape.panel_width)
        element = "bf16" if case.dtype == "bfloat16" else "f16"
        encoded = TensorMap(place.array, box, element, swizzle=128 if shape.panel_width == 64 else 64).emulated()
        ctypes.memmove(ctypes.addressof(getattr(launch, name)), encoded.tobytes(), len(encoded.tobytes()))
    launch.out, launch.lse, launch.counters = out.array.ctypes.data, lse[1].ctypes.data, counters.ctypes.data
    launch.out_batch, launch.out_head, launch.out_row = (stride // 2 for stride in out.array.strides[:3])
    kept = bring_features(device, case, kernel.defines, inputs, launch)
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
