"""What an SM gives its warps, what a block of them does, and what that takes: the words of this folder."""

import math
from typing import NamedTuple

from attention.choose.coefficients.table import FRAGMENT_TURNS

TENSOR, LATENCY = "mma_bf16_flops_per_clk_sm", "mma_bf16_latency_cycles"


class Rates(NamedTuple):
    """Of one SM, per clock, L2's and DRAM's bandwidth shared evenly; latencies in cycles, and shares that hide.

    `turn_latency`: what a load of several rows of banks takes longer for each one further. `dram_share`: of DRAM's
    bandwidth, beyond what an SM's port takes.
    """

    tensor_flops: float
    ex2: float
    ffma: float
    smem_bytes: float
    l2_bytes: float
    dram_bytes: float
    product_latency: float
    ex2_latency: float
    ffma_latency: float
    smem_latency: float
    l2_latency: float
    dram_latency: float
    ex2_beside: float
    ex2_beside_others: float
    ffma_beside_others: float
    turn_latency: float = 0.0
    dram_share: float = math.inf

    @property
    def fragment_latency(self) -> float:
        """Of ldmatrix.x4, which reads all banks four times."""
        return self.smem_latency + (FRAGMENT_TURNS - 1) * self.turn_latency


class Part(NamedTuple):
    """Cycles of a block that rest on a constant of the profile; parts follow one another."""

    term: str
    cycles: float
    constant: str


class Work(NamedTuple):
    """What a block does: `slices` of keys, of which `hidden` have a key that some row does not see.

    `readers`: blocks that read the same K and V, of which one brings them from DRAM. `lines` of L2 are touched by the
    copying of a key, its K and its V, and sectors a second time; `parted` of them beside those that its bytes would
    fill. `cold`: the share of all blocks that begin together, for which nobody has brought a mask. `beside`: blocks on
    an SM on the average, its own counted, where warps share rows and a call's blocks, all alike, begin together; else
    none. `mean`: slices of such a call's mean block, where parts of a tile's keys are uneven. `loaded`: keys that come
    for each that is in a slice.
    """

    slices: float
    hidden: float
    readers: int
    lines: float
    parted: float
    cold: float = 0.0
    beside: float = 0.0
    mean: float = 0.0
    loaded: float = 1.0
