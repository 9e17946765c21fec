"""Attention on Hopper: one producer warpgroup, two or three consumers on wgmma; what it serves and what a tile asks."""

from functools import lru_cache

from attention.kernels.common.family import SERVED, notes, padded_head_dim, readers, refuses
from attention.kernels.sm90a.forward.warp_specialised.arguments import GROUP_ROWS, SETTLED, Shape, build_of, shape_of
from attention.problem import AttentionProblem
from attention.variant import Config, Demand, Tile, Variant
from microbench.machine.arch import Arch

# (head dim, warpgroups, 1 where Q is in registers), and for each the most keys of a tile whose scores ptxas holds in a
# consumer's registers without a spill, by what is asked for. Found with NVRTC 12.9 by compiling each: `python -m
# attention check --combined` compiles all that these figures allow, and names every one that spills.
SHAPES = (
    *((64, 2, 0), (64, 3, 0), (96, 2, 0), (96, 3, 0), (128, 2, 0), (128, 3, 0), (192, 2, 0), (256, 2, 0)),
    *((64, 2, 1), (64, 3, 1), (96, 2, 1), (128, 2, 1)),
)
PLAIN, SEVERAL = "", "several features"
MOST_KEYS = {
    PLAIN: (176, 128, 176, 96, 176, 80, 112, 80, 176, 112, 176, 144),
    "sliding window": (176, 128, 176, 96, 176, 80, 112, 80, 176, 96, 160, 128),
    "ALiBi": (176, 128, 176, 96, 176, 80, 112, 80, 176, 96, 176, 128),
    "softcap": (176, 112, 176, 80, 160, 80, 112, 80, 160, 96, 144, 128),
    "bool mask": (176, 128, 176, 96, 176, 80, 112, 80, 176, 112, 176, 128),
    SEVERAL: (160, 96, 144, 80, 128, 48, 80, 48, 176, 80, 128, 96),
}
# Of exactly these features together, fewer. An edge to the right hides keys right of a band, causal or not.
RIGHT, LEFT, PACKED = "an edge to the right", "an edge to the left", "variable lengths"
TOGETHER: dict[tuple[tuple[int, int, int], frozenset[str]], int] = {
    ((64, 2, 1), frozenset({RIGHT, LEFT, "softcap", "ALiBi"})): 144,
    ((64, 2, 1), frozenset({RIGHT, LEFT, PACKED, "softcap", "ALiBi"})): 144,
    # At 144 these two spill, and at 160 not.
    ((64, 2, 1), frozenset({RIGHT, "softcap"})): 128,
    ((64, 2, 1), frozenset({RIGHT, PACKED, "softcap"})): 128,
    ((64, 3, 1), frozenset({RIGHT, PACKED, "softcap"})): 64,
    ((64, 3, 1), frozenset({RIGHT, PACKED, "softcap", "ALiBi"})): 64,
    ((96, 3, 0), frozenset({RIGHT, LEFT, PACKED, "softcap", "ALiBi"})): 64,
    ((128, 2, 1), frozenset({RIGHT, "softcap"})): 80,  # at 96 it spills, and at 112 not
    ((256, 2, 0), frozenset({RIGHT, LEFT, PACKED, "softcap"})): 32,
    ((256, 2, 0), frozenset({RIGHT, LEFT, PACKED, "softcap", "ALiBi"})): 32,
}
FREE = {"bottom-right causality", "attention sinks"}  # no register in the loop, in any company


def illegal(problem: AttentionProblem, config: Config, arch: Arch) -> str | None:
    """Shared memory of the block, registers of a consumer thread, and warpgroups that would have no rows."""
    shape = shape_of(problem, config)
    assert arch.limits is not None
    if shape.smem_bytes > arch.limits.smem_bytes_per_block:
        return f"needs {shape.smem_bytes} bytes of shared memory of {arch.limits.smem_bytes_per_block}"
    most, asked = most_keys(problem, shape)
    group = f"{shape.warpgroups} warpgroups{', Q in registers' if shape.q_in_registers else ''}"
    if not most:
        return f"spills registers at head dim {shape.head_dim} ({group})"
    if shape.tile_keys > most:
        with_it = f" with {asked}" if asked else ""
        return f"spills registers beyond {most} keys at head dim {shape.head_dim}{with_it} ({group})"
    if shape.tile_keys < min(64, most):
        return f"takes turns too often, where {min(64, most)} keys fit registers"
    if shape.warpgroups == 3 and problem.seq_q <= 2 * GROUP_ROWS:
        return f"two warpgroups already hold all {problem.seq_q} queries"
    return None


def most_keys(problem: AttentionProblem, shape: Shape) -> tuple[int, str]:
    """The most keys of a tile without a spill, 0 where every tile spills, and which feature asks for so few."""
    built = (shape.head_dim, shape.warpgroups, int(shape.q_in_registers))
    if built not in SHAPES:
        return 0, ""
    asked, together = _asked(problem)
    at = SHAPES.index(built)
    fewest = min((MOST_KEYS[each][at], each) for each in asked)
    known = TOGETHER.get((built, together))
    return fewest if known is None else min(fewest, (known, "these features"))


@lru_cache(maxsize=64)
def _asked(problem: AttentionProblem) -> tuple[tuple[str, ...], frozenset[str]]:
    """The rows of MOST_KEYS that count, and what tells one build of a dtype from another: sinks take no register."""
    features = [feature for feature in problem.features if feature not in FREE]
    rows = (PLAIN, *(each for each in features if each in MOST_KEYS), *([SEVERAL] if len(features) > 1 else []))
    edges = problem.edges
    asked = {
        RIGHT: edges.right is not None,
        LEFT: edges.left is not None,
        PACKED: problem.varlen,
        "softcap": problem.softcap > 0,
        "ALiBi": problem.alibi,
        "bool mask": problem.mask == "bool",
    }
    return rows, frozenset(name for name, is_asked in asked.items() if is_asked)


def tile(problem: AttentionProblem, config: Config) -> Tile:
    """Every warpgroup reads K and V from shared memory, and its rows of Q unless it keeps them."""
    shape = shape_of(problem, config)
    rows, columns, width = shape.tile_rows, shape.tile_keys, shape.head_dim
    kv_bytes = 2 * columns * width * 2
    operand_bytes = shape.warpgroups * kv_bytes + (0 if shape.q_in_registers else rows * width * 2)
    return Tile(
        rows=rows,
        columns=columns,
        # A warpgroup passes over tiles of keys that causality hides from it, but those that share K and V then wait for
        # the one with the most: on an H100 three of them lose to two where sequences are short.
        row_step=rows,
        column_step=columns,
        demands=(
            Demand("products on wgmma", "tile", 4 * rows * columns * width, "wgmma_bf16_flops_per_s"),
            Demand("exponentials", "tile", rows * columns, "mufu_ex2_per_clk_sm"),
            Demand("operands from shared memory", "tile", operand_bytes, "smem_bandwidth_bytes_per_clk_sm"),
            Demand("K and V from L2", "tile", kv_bytes, "l2_bandwidth_bytes_per_s"),
            Demand("K and V from DRAM", "tile", kv_bytes / readers(problem, rows), "dram_bandwidth_bytes_per_s"),
            # Products of a step are taken in turns, and the first of a turn starts behind the last of the one before.
            Demand("turns", "turns", 2, "wgmma_n128_bf16_latency_cycles"),
        ),
        edge=(Demand("Q and out", "edge", 4 * rows * width, "dram_bandwidth_bytes_per_s"),),
    )


VARIANT = Variant(
    summary="TMA producer, wgmma consumers, softmax of one tile beside the products of another",
    owner="smscope",
    archs=("sm90a",),
    features=SERVED,
    refuses=refuses,
    space=(
        ("tile_keys", (32, 48, 64, 80, 96, 112, 128, 144, 160, 176)),
        ("warpgroups", (2, 3)),
        ("stages", (2,)),
        ("q_in_registers", (0, 1)),
    ),
    settled=SETTLED,
    illegal=illegal,
    tile=tile,
    builds=lambda problem, config: (build_of(problem, config),),
    signature=("HGMMA", "UTMALDG", "SYNCS", "USETMAXREG"),
    pads=padded_head_dim,
    rank=-1,
    notes=notes,
)
