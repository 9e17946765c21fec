"""Attention by the instructions of one architecture, with planted bugs: what the kernels of all of them share."""

from typing import Any, Literal

import numpy as np

from microbench.compile import Defines
from microbench.emulator import EmulatedDevice
from microbench.verify.differential.attention_case import TOLERANCE, AttentionCase, Floats, attention_case, scale_log2
from tests.emulated.planted import Planted, Variant


class Attention(Planted):
    """One head. A subclass says how its kernel is launched."""

    kind: Literal["bf16", "f16"] = "bf16"
    sequence = 256  # four tiles of keys
    rows, threads = 64, 128  # of a block
    tolerance = TOLERANCE
    variants: tuple[Variant, ...] = ({"head_dim": 64}, {"head_dim": 128})

    def case(self, seed: int = 0, sequence: int = 0, head_dim: int = 64, **_: Any) -> AttentionCase:
        return attention_case(sequence or self.sequence, seed, head_dim, self.kind)

    def defines(self, head_dim: int = 64, **_: Any) -> Defines:
        return (("HEAD_DIM", head_dim),)

    def smem_bytes(self, head_dim: int, **variant: Any) -> int:
        raise NotImplementedError

    def tensors(self, inputs: list[Any], out: Any) -> tuple[Any, ...]:
        """As the kernel takes them: pointers, or tensor maps."""
        return (*inputs, out)

    def run(self, device: EmulatedDevice, case: AttentionCase, bug: int = 0, **variant: Any) -> Floats:
        sequence, dim = case.q.shape
        variant = {**variant, "head_dim": dim}
        out = device.full(case.q.shape, np.nan, np.float32)
        inputs = [device.asarray(each) for each in (case.q, case.k, case.v)]
        arguments = (*self.tensors(inputs, out), sequence, scale_log2(dim), bug)
        smem_bytes = self.smem_bytes(**variant)
        self.load(device, **variant)((sequence // self.rows,), (self.threads,), arguments, shared_mem=smem_bytes)
        return out

    def test_a_long_head_is_right(self) -> None:
        self.require(EmulatedDevice("lazy"), sequence=1024, **self.variants[-1])
