"""The wrappers that a GPU is held against the emulator by, run by the tests on fragments of their own."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from microbench.emulator import EmulatedDevice
from microbench.verify.differential.case import KERNELS

SOURCE, NAME = KERNELS.read_text(), KERNELS.name


def integers(rng: np.random.Generator, *shape: int) -> NDArray[np.float32]:
    """Small ones: products come out exactly."""
    return rng.integers(-4, 5, shape).astype(np.float32)


def load(device: EmulatedDevice, kernel: str, **defines: int | str) -> Any:
    return device.load(SOURCE, NAME, kernel=kernel, defines=tuple(defines.items()))


def mma_defines(wrapper: str, a: NDArray[Any], b: NDArray[Any], d: NDArray[Any]) -> dict[str, int | str]:
    kind = "float" if d.dtype == np.float32 else "unsigned"
    sizes = {"A_WORDS": a.shape[1], "B_WORDS": b.shape[1], "D_WORDS": d.shape[1]}
    return {"MMA": wrapper, "D_TYPE": kind, **sizes}
