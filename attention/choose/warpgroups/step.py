"""What a tile of keys costs W warpgroups that share an SM, in SM cycles.

products    of all warpgroups interleave, instruction by instruction: they end together, and softmaxes begin together
period      W qk + max(latency + maxima + W exponentials, W pv + latency) + conversions + waits
first tile  has no product of the tile before beside its softmax; the last product has no softmax beside it
"""

from dataclasses import dataclass

from attention.choose.warpgroups.coefficients import BYTES, GROUP_ROWS, PRODUCT, of


@dataclass(frozen=True)
class Rates:
    """Of one SM, per clock; latencies in cycles."""

    tensor_flops: float
    ex2: float
    smem_bytes: float
    l2_bytes: float
    product_latency: float  # beyond the interval at which products follow one another
    smem_latency: float
    ex2_latency: float
    ffma_latency: float
    l2_latency: float


@dataclass(frozen=True)
class Sizes:
    """A compiled tile: keys, consumer warpgroups, head and value dim, whether Q stays in registers."""

    keys: int
    warpgroups: int
    head_dim: int
    value_dim: int
    q_in_registers: bool


@dataclass(frozen=True)
class Step:
    """`period` of a tile of keys, and what a tile of rows costs beside its tiles' periods, in cycles."""

    period: float
    around: float


def step_of(sizes: Sizes, rates: Rates) -> Step:
    """The cyclic schedule of W warpgroups in lockstep."""
    groups, scores = sizes.warpgroups, GROUP_ROWS * sizes.keys
    q_bytes = BYTES * GROUP_ROWS * sizes.head_dim
    read = 0 if sizes.q_in_registers else q_bytes
    qk = groups * _product(scores * sizes.head_dim, BYTES * sizes.keys * sizes.head_dim + read, rates)
    pv = groups * _product(scores * sizes.value_dim, BYTES * sizes.keys * sizes.value_dim, rates)
    exponentials = groups * scores / rates.ex2
    together = groups if groups <= of("in_step") else 0
    maxima = together * scores * of("maxima") / of("alu_per_clk_sm")
    conversions = together * scores * of("conversions") / of("alu_per_clk_sm")
    latency = rates.product_latency
    waits = (
        (of("product_waits") - 1) * latency
        + of("shared_waits") * rates.smem_latency
        + of("exponential_waits") * rates.ex2_latency
        + of("arithmetic_waits") * rates.ffma_latency
    )
    softmax = latency + maxima + exponentials
    period = qk + max(softmax, pv + latency) + conversions + waits
    first, last = qk + softmax + conversions + waits, pv + latency
    # The next rows' Q: held rows left its room free long ago; else it comes while the last product runs.
    copied = groups * q_bytes / rates.smem_bytes + rates.smem_latency
    fetched = max(0.0, rates.l2_latency + groups * q_bytes / rates.l2_bytes - last)
    handed_on = rates.smem_latency  # the tile's number
    return Step(period, first + last - period + handed_on + (copied if sizes.q_in_registers else fetched))


def _product(multiply_adds: float, operand_bytes: float, rates: Rates) -> float:
    return max(PRODUCT * multiply_adds / rates.tensor_flops, operand_bytes / rates.smem_bytes)
