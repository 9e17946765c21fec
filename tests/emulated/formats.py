"""The tensor cores' wrappers, run on the emulator."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microbench.emulator import EmulatedDevice
from microbench.verify.differential import number_formats
from microbench.verify.differential.number_formats import MMA, Wrapper, mma_defines, wgmma_defines

SOURCE, NAME = number_formats.SOURCE.read_text(), number_formats.SOURCE.name


def run_mma(wrapper: Wrapper, a: NDArray[np.uint32], b: NDArray[np.uint32], d: NDArray[Any]) -> None:
    """One mma.sync on registers, a lane a row; d is changed."""
    kernel = EmulatedDevice().load(SOURCE, NAME, kernel="mma", defines=mma_defines())
    kernel((1,), (32,), (MMA.index(wrapper), a, b, d))


@dataclass(frozen=True)
class Image:
    """A matrix of wgmma as shared memory holds it, and the strides of its descriptor in bytes."""

    words: NDArray[np.uint32]
    leading: int
    stride: int

    @property
    def arguments(self) -> tuple[Any, ...]:
        return self.words, self.words.size, self.leading, self.stride


def run_wgmma(
    device: EmulatedDevice, wrapper: Wrapper, a: Image | NDArray[np.uint32], b: Image, d: NDArray[Any], swizzle: int
) -> None:
    """One wgmma, a from shared memory or from registers, a thread a row; d is changed."""
    from_registers = not isinstance(a, Image)
    unused = Image(np.zeros(1, np.uint32), 16, 16), np.zeros((128, 4), np.uint32)
    image, fragments = (unused[0], a) if from_registers else (a, unused[1])
    kernel = device.load(SOURCE, NAME, kernel="wgmma", defines=wgmma_defines(wrapper))
    matrices = *image.arguments, *b.arguments
    kernel((1,), (128,), (2 * d.shape[1], int(from_registers), swizzle, *matrices, fragments, d), shared_mem=65536)
