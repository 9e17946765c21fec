"""Attention on Blackwell's tensor memory: a role for every warp; what it serves and what a tile asks."""

from dataclasses import replace

from attention.kernels.common.family import (
    SERVED,
    STEP,
    asked_defines,
    notes_of,
    padded_head_dim,
    readers,
    refuses_but_value_dims,
    too_large,
)
from attention.kernels.common.halves import in_halves
from attention.kernels.sm100a.forward.tensor_memory.arguments import (
    SCORE_COLUMNS,
    VALUE_STEP,
    Shape,
    build_of,
    shape_of,
)
from attention.kernels.sm100a.forward.tensor_memory.asked import turns, units
from attention.problem import AttentionProblem
from attention.tile import Demand, Tile
from attention.variant import Config, Variant
from microbench.machine.arch import Arch

LEAST_STAGES = 2  # p V of one tile of keys and Q K^T of the next
AMPLE_MUFU = 32  # results a clock: exponentials take half as long as products of head dim 128
AMPLE_STAGES = 4  # the two that are worked on, and the next two


def illegal(problem: AttentionProblem, config: Config, arch: Arch) -> str | None:
    """Shared memory of the block, pairs that share little, needless polynomials, and small tiles that need not be."""
    shape = shape_of(problem, config)
    assert arch.limits is not None
    if too_much := too_large(shape.smem_bytes, arch):
        return too_much
    if shape.cta_group == 2 and (why := _why_no_pair(problem, shape)):
        return why
    if shape.polynomial and arch.limits.mufu_lanes >= AMPLE_MUFU:
        return f"has no use for polynomials beside {arch.limits.mufu_lanes} exponentials a clock"
    if shape.polynomial > 4 and problem.mask != "none":
        return "has no registers for as many polynomials beside the addresses of a mask"
    most_keys = SCORE_COLUMNS // 2 if _masked_in_company(problem) else SCORE_COLUMNS
    if shape.tile_keys > most_keys:
        return f"has registers for {most_keys} scores of a row beside a mask and what comes with it"
    if shape.stages < LEAST_STAGES:
        return f"has room for {shape.stages} tiles of K and V, where products work on {LEAST_STAGES}"
    larger = replace(shape, tile_keys=2 * shape.tile_keys)
    if larger.tile_keys <= most_keys and larger.stages >= AMPLE_STAGES:
        return f"meets its barriers every {shape.tile_keys} keys, where {larger.stages} tiles of twice as many fit"
    return None


def _masked_in_company(problem: AttentionProblem) -> bool:
    """Whether a mask stands beside what takes registers too.

    Of 128 scores a row ptxas spilled 48 bytes beside ALiBi, and 16 where a mask of bytes stands beside causality.
    """
    others = asked_defines(problem) - {"CAUSAL", "MASK", "BIAS", "BIAS32"}
    return problem.mask != "none" and (bool(others) or asked_defines(problem) >= {"CAUSAL", "MASK"})


def _why_no_pair(problem: AttentionProblem, shape: Shape) -> str | None:
    """A pair halves K and V for both blocks; what it costs is that they go over the same keys at the same time."""
    if shape.dynamic:
        return "hands a pair of blocks their tiles by number, and has no counter that both of them ask"
    if shape.held_values % VALUE_STEP:
        return f"cuts the columns of V in halves of {VALUE_STEP}, which {shape.value_dim} columns are not"
    if problem.varlen and problem.ranges and shape.head_dim == 256 and shape.query_tiles == 2:
        return "has no register left in its correction for the parts of packed sequences that are used, at head dim 256"
    rows = problem.mean_lengths[0]
    if not problem.edges.open:
        # At each edge one block of the two has the other one's rows' keys as well: half of the rows that many more.
        edges = (problem.edges.left is not None) + (problem.edges.right is not None)
        keys = problem.scores / (problem.batch * problem.heads_q * rows)
        more = edges * shape.block_rows / 2 / max(keys, 1)
        return (
            f"has both blocks of a pair go over every key that either sees, of this band up to {more:.1%} more: "
            "products and exponentials, which bound it, and not the reading of K and V, which a pair halves"
        )
    if rows <= shape.block_rows:
        return f"shares K and V between two tiles of {shape.block_rows} rows, where a head has {rows} rows"
    return None


def tile(problem: AttentionProblem, config: Config) -> Tile:
    """Both operands of Q K^T, and V, come from shared memory for each query tile; P from tensor memory.

    Of one block: of a pair each reads half of K and V, for both. What the two wait for each other no source gives.
    """
    shape = shape_of(problem, config)
    rows, columns, both = shape.block_rows, shape.tile_keys, shape.head_dim + shape.value_dim
    kv_bytes = columns * both * 2 // shape.cta_group
    from_dram = 2 * columns * both / readers(problem, rows)
    operand_bytes = shape.query_tiles * kv_bytes + rows * shape.head_dim * 2
    return Tile(
        rows=rows,
        columns=columns,
        row_step=rows,
        column_step=columns,
        demands=(
            Demand("products on tcgen05", "tile", 2 * rows * columns * both, "tcgen05_bf16_burst_flops_per_s"),
            *units(shape, columns),
            *turns(shape, columns),
            Demand("operands from shared memory", "tile", operand_bytes, "smem_bandwidth_bytes_per_clk_sm"),
            Demand("K and V from L2", "tile", kv_bytes, "l2_bandwidth_bytes_per_s"),
            Demand("K and V from DRAM", "tile", from_dram, "dram_bandwidth_bytes_per_s"),
        ),
        edge=(Demand("Q and out", "edge", 2 * rows * both, "dram_bandwidth_bytes_per_s"),),
        unpriced="what a pair's blocks wait for each other" if shape.cta_group == 2 else "",
    )


ONE_LAUNCH = Variant(
    summary="TMA, tcgen05 with scores, P and outputs in tensor memory, a role for every warp",
    owner="smscope",
    archs=("sm100a", "sm103a"),
    features=SERVED,
    refuses=refuses_but_value_dims(STEP),
    space=(("tile_keys", (64, 128)), ("polynomial", (0, 4, 6, 8)), ("dynamic", (0, 1)), ("cta_group", (1, 2))),
    illegal=illegal,
    tile=tile,
    builds=lambda problem, config: (build_of(problem, config),),
    unproven=True,
    signature=("UTCHMMA", "LDTM", "STTM", "UTMALDG", "SYNCS", "USETMAXREG"),
    pads=padded_head_dim,
    rank=-1,
    notes=notes_of(padded_head_dim),
)
VARIANT = in_halves(ONE_LAUNCH)
