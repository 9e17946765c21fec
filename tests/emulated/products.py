"""A product by pairs of blocks, with planted bugs: what the two kernels of that kind share."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from microbench.emulator import EmulatedDevice, TensorMap
from microbench.verify.differential.attention_case import Floats, bf16_bits
from tests.emulated.planted import Planted

DEPTH = 5 * 64


@dataclass(frozen=True)
class Product:
    """A and B of small integers, (rows, DEPTH) and (columns, DEPTH): every sum is exact."""

    a: Floats
    b: Floats

    @property
    def expected(self) -> Floats:
        return self.a @ self.b.T


class PairedProduct(Planted):
    """A cluster of two blocks; each block makes `box` rows and 128 columns."""

    columns, threads = 256, 160

    def shape(self, **variant: Any) -> tuple[int, int]:
        """(rows of A, those of a block)."""
        raise NotImplementedError

    def smem_bytes(self, box: int) -> int:
        raise NotImplementedError

    def case(self, seed: int = 0, **variant: Any) -> Product:
        rng = np.random.default_rng(seed)
        sizes = self.shape(**variant)[0], self.columns
        return Product(*(rng.integers(-3, 4, (size, DEPTH)).astype(np.float32) for size in sizes))

    def run(self, device: EmulatedDevice, case: Product, bug: int = 0, **variant: Any) -> Floats:
        rows, box = self.shape(**variant)
        c = device.full((rows, self.columns), np.nan, np.float32)
        inputs = [device.asarray(bf16_bits(each)) for each in (case.a, case.b)]
        boxes = zip(inputs, (box, 64), strict=True)
        maps = [TensorMap(each, (side, 64), "bf16", swizzle=128).emulated() for each, side in boxes]
        arguments, grid = (*maps, c, DEPTH, self.columns, bug), (rows // box, self.columns // 128)
        self.load(device, **variant)(grid, (self.threads,), arguments, self.smem_bytes(box), cluster=(2,))
        return c
