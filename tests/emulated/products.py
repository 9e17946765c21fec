"""Products of small integers, whose sums are exact."""

from dataclasses import dataclass

from microbench.verify.differential.attention_case import Floats


@dataclass(frozen=True)
class Product:
    """A and B of small integers, (rows, depth) and (columns, depth)."""

    a: Floats
    b: Floats

    @property
    def expected(self) -> Floats:
        return self.a @ self.b.T
