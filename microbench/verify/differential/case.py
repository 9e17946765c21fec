"""What one case of the differential test is: a kernel, its inputs for any seeds, and what of it is compared."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from numpy.typing import NDArray

from microbench.compile import Source
from microbench.emulator import Swizzle
from microbench.emulator.tensor_map import Element
from microbench.machine.arch import by_name

KERNELS = Path(__file__).parent / "kernels.cu"
Values = Literal["integers", "normal", "bits"]
Defines = tuple[tuple[str, int | str], ...]
Array = NDArray[Any]

# Tensor cores align products and truncate. Of up to 16 products of N(0, 1) and a start value, the largest is below 32,
# so each of the 17 terms loses less than 2^-19 where 24 bits are kept; the emulator's own rounding is smaller.
F32_TOLERANCE = 2.0**-14
# An f16 has 11 bits; either side may round to another neighbour, of a sum that was cut off before.
F16_TOLERANCE = 2.0**-9
# 2 units in the last place on the GPU (PTX ISA, 'ex2'), one here.
EX2_TOLERANCE = 2.0**-21
# Weights are rounded to bf16: one that falls to the other neighbour moves an average of N(0, 1) by 2^-9 of its weight.
ATTENTION_TOLERANCE = 4e-3


@dataclass(frozen=True)
class Buffer:
    """An argument: the launch's array of this number."""

    index: int


@dataclass(frozen=True)
class Map:
    """An argument: a tensor map of the launch's array of this number."""

    index: int
    box: tuple[int, ...]
    element: Element
    swizzle: Swizzle


@dataclass(frozen=True)
class Launch:
    """One launch. `outputs` are the numbers of arrays to compare, `expected` what NumPy says of them where it does."""

    grid: tuple[int, ...]
    block: tuple[int, ...]
    smem_bytes: int
    arrays: tuple[Array, ...]
    args: tuple[Buffer | Map | int | float, ...]
    outputs: tuple[int, ...]
    expected: tuple[Array, ...] = ()


@dataclass(frozen=True)
class Case:
    """A wrapper in one layout. `tolerance` 0 asks for equality; else absolute up to values of 1, relative above."""

    wrapper: str
    layout: str
    values: Values
    kernel: str
    defines: Defines
    launches: Callable[[range], list[Launch]] = field(compare=False)  # of these seeds
    tolerance: float = 0.0
    source: Path = KERNELS

    @property
    def key(self) -> str:
        """Its name in reports."""
        return f"{self.wrapper} {self.layout} {self.values}"

    def source_for(self, arch: str) -> Source:
        """What to compile. m8n8k4 is ptxas' software routine on all but Volta: deliberate."""
        return Source(self.source.read_text(), self.source.name, by_name(arch), self.kernel, self.defines)
