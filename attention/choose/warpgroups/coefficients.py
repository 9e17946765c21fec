"""Every number of this model that is neither a constant of a profile nor a size of the problem, with its derivation.

COUNTS are read from the kernel's text (consume.cuh, online_softmax.cuh); PUBLISHED from vendors' documents. RULES were
chosen among alternatives by looking at timings (H200 and H100, full and causal, head dims 64, 128 and 256): they name
an effect and hold no fitted number, and no timing of these problems is left to prove them. The waits, too, were counted
after lines through cycles over keys had shown fixed parts of 36 to 419 cycles a step, median 278; these make 226.
"""

from typing import NamedTuple

BYTES = 2  # of float16 and bfloat16
PRODUCT = 2  # FLOP of one multiply-add
GROUP_ROWS = 64  # M of wgmma


class Coefficient(NamedTuple):
    """`kind` is count, published or rule; `why` derives the value."""

    value: float
    kind: str
    why: str


TABLE = {
    "maxima": Coefficient(
        0.5, "count", "VIMNMX3 takes two scores and the maximum so far: 30 and two more for 64 scores a thread in SASS"
    ),
    "conversions": Coefficient(0.5, "count", "F2FP packs two scores: 32 for 64 in SASS"),
    "alu_per_clk_sm": Coefficient(64.0, "published", "16 lanes of the ALU a scheduler, which F2FP and VIMNMX3 take"),
    "product_waits": Coefficient(2.0, "count", "a step waits for its scores and for the product of the tile before"),
    "shared_waits": Coefficient(
        3.0,
        "count",
        "try_wait on K, the turn or the try_wait on V, the vote: each a trip to shared memory at least, for which its "
        "latency is borrowed until the profile holds mbarrier_handover_latency_cycles",
    ),
    "exponential_waits": Coefficient(1.0, "count", "the first exponential's result, before which no pair is packed"),
    "arithmetic_waits": Coefficient(
        8.0, "count", "dependent: five levels of a tree of maxima over 64 scores (three inputs), scale, sum, pack"
    ),
    "in_step": Coefficient(
        2.0,
        "rule",
        "up to two warpgroups the warps of a scheduler do their maxima, exponentials and conversions at the same time, "
        "so that each is W times as long; a third hides maxima and conversions behind others' exponentials. Of four "
        "rules (hidden, once, W times, this) the one by which cycles a key agree at 64 and 128, W = 2 and 3",
    ),
}


def of(name: str) -> float:
    return TABLE[name].value
