"""What a step and what lies around it are made of: rates of one SM, and parts that overlap within a phase."""

from typing import NamedTuple


class Rates(NamedTuple):
    """Of one SM, per clock; latencies in cycles, of products beyond their interval.

    `product_latency` is that of two operands in shared memory, `held_latency` where the first is in registers.
    `handover_latency`: through an mbarrier; 0 where a profile has none.
    `line_bytes`: from L2, or to it, of whole lines that a warp asks for. `ex2_beside` and `ffma_beside`: how much hides
    of a warpgroup's own exponentials, or arithmetic, beside its own products, of the shorter one.
    """

    tensor_flops: float
    ex2: float
    ffma: float
    smem_bytes: float
    l2_bytes: float
    line_bytes: float
    product_latency: float
    held_latency: float
    smem_latency: float
    handover_latency: float
    ex2_latency: float
    ffma_latency: float
    l2_latency: float
    dram_latency: float
    ex2_beside: float
    ffma_beside: float


class Part(NamedTuple):
    """Cycles that rest on a constant of the profile. Parts of a phase overlap, so that the longest counts."""

    term: str
    phase: str
    cycles: float
    constant: str


class Parts(NamedTuple):
    """What comes together; `cycles` are the sum over phases of the longest part."""

    each: tuple[Part, ...]
    cycles: float

    @classmethod
    def of(cls, *each: Part) -> "Parts":
        longest: dict[str, float] = {}
        for part in each:
            longest[part.phase] = max(part.cycles, longest.get(part.phase, 0.0))
        return cls(each, sum(longest.values()))
