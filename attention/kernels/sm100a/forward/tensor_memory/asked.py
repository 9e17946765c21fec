"""What a tile asks of an SM: of its units, which overlap, and of a query tile's turn, in which one waits for the other.

Turns: the issuer multiplies p V of a query tile and then its next scores, and a softmax warpgroup can begin when those
are done; while it works, the issuer has the other query tile's products. So a turn is the products of one query tile
and its softmax, one after the other, and two turns go on at a time. The exponentials of a turn take as long as MUFU, or
as the instructions among which they stand, whichever is longer: a chain for each.

Instructions are counted in the machine code (tests/compile/test_softmax_sm100a.py): for two scores a maximum of three,
the scale, the sum and the conversion, and two MUFU; or for those two the polynomial, 13 of which 9 are of f32x2. A
clock issues as many lanes as there are FFMA: `ffma_per_clk_sm`. No published rate prices scores to registers and back.
"""

from attention.kernels.sm100a.forward.tensor_memory.arguments import ROWS, Shape
from attention.tile import Demand

INSTRUCTION_K = 16  # of one product
PER_SCORE = 1.5  # scale, sum and conversion, each of two scores; MUFU comes on top
MAXIMUM = 0.5
POLYNOMIAL = 6.5  # in place of a MUFU
FMA_LANES, POLYNOMIAL_LANES = 2.0, 9.0  # f32x2 takes the FMA pipe twice as long
BY_MUFU, BY_INSTRUCTIONS = "turns by their exponentials", "turns by their instructions"


def units(shape: Shape, columns: int) -> tuple[Demand, ...]:
    """Of all scores of a tile: exponentials, issue slots and the FMA pipe."""
    scores, share = shape.block_rows * columns, shape.polynomial / 32
    lanes, issued = FMA_LANES + POLYNOMIAL_LANES * share, MAXIMUM + _exponentials(share)
    return (
        Demand("exponentials", "tile", scores * (1 - share), "mufu_ex2_per_clk_sm"),
        Demand("instructions of the softmax", "tile", scores * issued, "ffma_per_clk_sm"),
        Demand("FMA of the softmax", "tile", scores * lanes, "ffma_per_clk_sm"),
    )


def turns(shape: Shape, columns: int) -> tuple[Demand, ...]:
    """Of one query tile. Where a block has no second one its products are not waited for: scores have two buffers."""
    scores, share, both = ROWS * columns, shape.polynomial / 32, (BY_MUFU, BY_INSTRUCTIONS)
    links = [Demand("maxima", "tile", scores * MAXIMUM, "ffma_per_clk_sm", chains=both)]
    if shape.query_tiles > 1:
        flops = 2 * scores * (shape.head_dim + shape.value_dim - INSTRUCTION_K)
        pair = "_pair" if shape.cta_group == 2 else ""
        links += [
            Demand("products but the last", "tile", flops, "tcgen05_bf16_burst_flops_per_s", chains=both),
            Demand("the last product's way", "tile", 1, f"tcgen05_bf16{pair}_latency_cycles", chains=both),
        ]
    return (
        *links,
        Demand("exponentials", "tile", scores * (1 - share), "mufu_ex2_per_clk_sm", chains=(BY_MUFU,)),
        Demand("instructions", "tile", scores * _exponentials(share), "ffma_per_clk_sm", chains=(BY_INSTRUCTIONS,)),
    )


def _exponentials(share: float) -> float:
    """Instructions of a score behind its maximum."""
    return PER_SCORE + (1 - share) + POLYNOMIAL * share
