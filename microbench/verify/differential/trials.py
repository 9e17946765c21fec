"""Small tensor copies, each in a process of its own: which of them does a Hopper GPU refuse?

The PTX ISA does not say that a box must start at a multiple of 16 bytes, nor that a box that is stored must not start
before the tensor; an H100 ends in cudaErrorIllegalInstruction where it does not, or does. These trials tell that cause
from others: where the map lies, the swizzle, the kind of copy.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from microbench.compile import Source
from microbench.emulator import EmulatedDevice, Swizzle, TensorMap
from microbench.emulator.tensor_map import Element
from microbench.errors import BuildError
from microbench.machine.arch import by_name
from microbench.verify import processes
from microbench.verify.differential.case import KERNELS, Array, Defines, Launch, Map
from microbench.verify.differential.case import Buffer as Of
from microbench.verify.differential.score import Held, score

TRIAL = KERNELS.with_name("trial.cu")
SIDE = 96  # elements of the tensor
SMEM_BYTES = 1032
DTYPES: dict[Element, type] = {"f32": np.float32, "f16": np.float16}


@dataclass(frozen=True)
class Trial:
    """A copy of a box that starts at an element; `legal` is what we expect."""

    copy: Literal["loads", "stores", "adds"]
    start: int = 0
    legal: bool = True
    element: Element = "f32"
    swizzle: Swizzle = 0
    in_global: bool = False

    @property
    def name(self) -> str:
        """One line of the report."""
        where = "global memory" if self.in_global else "a parameter"
        return f"{self.copy:<6} {self.element} at {self.start:>3}, swizzle {self.swizzle:>3}, map in {where}"

    def source_for(self, arch: str) -> Source:
        """What to compile."""
        return Source(TRIAL.read_text(), TRIAL.name, by_name(arch), "trial", self.defines)

    @property
    def defines(self) -> Defines:
        """Of the kernel."""
        return ((self.copy.upper(), 1), *((("IN_GLOBAL", 1),) if self.in_global else ()))

    @property
    def launch(self) -> Launch:
        """The tensor, the box's image, and a place for the map."""
        kind = DTYPES[self.element]
        side = (self.swizzle or 64) // np.dtype(kind).itemsize
        tensor: Array = np.arange(1, SIDE + 1).astype(kind)
        image: Array = np.zeros(side, kind) if self.copy == "loads" else np.arange(200, 200 + side).astype(kind)
        the_map = Map(0, (side,), self.element, self.swizzle)
        args = (the_map, Of(1), image.nbytes // 4, self.start)
        return Launch((1,), (32,), SMEM_BYTES, (tensor, image), args, (0, 1))

    @property
    def expected(self) -> Array:
        """The tensor and the image afterwards. A swizzle leaves the first row of a box as it is."""
        tensor, image = (each.copy() for each in self.launch.arrays)
        at = self.start + np.arange(image.size)
        inside = (at >= 0) & (at < SIDE)
        if self.copy == "loads":
            image[inside] = tensor[at[inside]]
        else:
            tensor[at[inside]] = image[inside] + (tensor[at[inside]] if self.copy == "adds" else 0)
        return np.concatenate([tensor, image])


def _all() -> tuple[Trial, ...]:
    copies: tuple[Literal["loads", "stores", "adds"], ...] = ("loads", "stores", "adds")
    spans: tuple[Swizzle, ...] = (32, 64, 128)
    return (
        *(Trial(copy, in_global=where) for copy in copies for where in (False, True)),
        *(Trial(copy, start) for copy in copies for start in (4, SIDE - 4)),
        Trial("loads", -4),
        *(Trial(copy, -4, legal=False) for copy in ("stores", "adds")),
        *(Trial(copy, start, legal=False) for copy in copies for start in (1, 2, -3)),
        *(Trial(copy, 1, legal=False, in_global=True) for copy in copies),
        *(Trial("loads", 4, swizzle=span) for span in spans),
        *(Trial("loads", 2, legal=False, swizzle=span) for span in spans),
        *(Trial(copy, 8, element="f16") for copy in copies),
        *(Trial(copy, 4, legal=False, element="f16") for copy in copies),
        Trial("loads", SIDE),  # wholly outside
        Trial("stores", SIDE),
    )


TRIALS = _all()


def emulated(trial: Trial) -> Array:
    """What the emulator makes of it. Raises DeviceError where it refuses the copy."""
    device = EmulatedDevice()
    kernel = device.load(TRIAL.read_text(), TRIAL.name, kernel="trial", defines=trial.defines)
    launch = trial.launch
    tensor, image = (device.asarray(each) for each in launch.arrays)
    opaque = TensorMap(tensor, image.shape, trial.element, trial.swizzle).emulated()
    given = device.asarray(np.frombuffer(opaque.tobytes(), np.uint8)) if trial.in_global else opaque
    kernel(launch.grid, launch.block, (given, image, *launch.args[2:]), shared_mem=launch.smem_bytes)
    return np.concatenate([tensor, image])


def examined(device: int, arch: str) -> list[tuple[str, Held | processes.Failed]]:
    """What the `device`-th GPU makes of each. To end its process is right where it must refuse the copy."""
    found: list[tuple[str, Held | processes.Failed]] = []
    for legal in (True, False):  # one after another: no fault of a neighbour can be taken for one of a legal copy
        pieces = [[trial] for trial in TRIALS if trial.legal == legal]
        for trial, answer in processes.answers(pieces, partial(opened, device, arch)):
            if not legal and not getattr(answer, "unsupported", ""):
                refused = isinstance(answer, processes.Failed)
                answer = Held() if refused else processes.Failed("this GPU did not refuse it, as Hopper does")
            found.append((trial.name, answer))
    return found


def opened(device: int, arch: str) -> Callable[[Trial], Held]:
    """In a worker: a GPU that says how far it does of a trial what is expected."""
    from microbench.device.tensor_map import parameter
    from microbench.verify.differential.gpu import Gpu, tensor_map

    gpu = Gpu(device)
    cupy = gpu.device.cupy

    def held(trial: Trial) -> Held:
        try:
            kernel, cubin = gpu.kernel(trial.source_for(arch))
        except BuildError as error:
            return Held(unsupported=str(error))
        launch = trial.launch
        tensor, image = (cupy.asarray(each) for each in launch.arrays)
        assert isinstance(launch.args[0], Map)
        opaque: Any = tensor_map(tensor, launch.args[0])
        given = cupy.asarray(np.frombuffer(opaque, np.uint8)) if trial.in_global else parameter(opaque)
        words, start = (np.int32(arg) for arg in launch.args[2:])  # type: ignore[arg-type]
        with gpu.device.guard("copy"):
            kernel(launch.grid, launch.block, (given, image, words, start), shared_mem=launch.smem_bytes)
            found = np.concatenate([tensor.get(), image.get()])
        return Held(score(found, trial.expected, 0.0), cubin.sha256, cubin.nvrtc)

    return held
