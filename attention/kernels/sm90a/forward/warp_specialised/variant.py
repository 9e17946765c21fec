"""Attention on Hopper: one producer warpgroup, two or three consumers on wgmma; what it serves and what a tile asks."""

from attention.kernels.sm90a.forward.warp_specialised.launch import (
    GROUP_ROWS,
    HEAD_DIMS,
    Shape,
    build_of,
    padded_head_dim,
    shape_of,
)
from attention.problem import AttentionProblem, Feature
from attention.variant import Config, Demand, Tile, Variant
from microbench.arch import Arch

# The most keys of a tile whose scores ptxas holds in a consumer's registers without a spill, by head dim and
# warpgroups, and by what is asked for. Found with NVRTC 12.9 by compiling each: `python -m attention check --all`
# compiles all that these figures allow, and names every one that spills.
SHAPES = ((64, 2), (64, 3), (96, 2), (96, 3), (128, 2), (128, 3), (192, 2), (256, 2))
MOST_KEYS = {
    "full": (176, 128, 176, 80, 160, 80, 112, 80),
    "causality": (176, 112, 176, 80, 160, 64, 96, 80),
    "variable lengths": (176, 128, 176, 80, 160, 80, 112, 64),
    "sliding window": (176, 96, 176, 64, 160, 48, 80, 48),
    "ALiBi": (176, 112, 144, 80, 160, 64, 96, 64),
    "softcap": (176, 96, 144, 64, 144, 64, 96, 64),
    "bool mask": (176, 112, 176, 64, 160, 64, 80, 64),
    "several features": (160, 112, 160, 48, 128, 48, 80, 32),
}

FEATURES: frozenset[Feature] = frozenset(
    {"bool mask", "bottom-right causality", "sliding window", "softcap", "ALiBi", "attention sinks", "variable lengths"}
)


def refuses(problem: AttentionProblem, arch: Arch) -> str | None:
    """What the kernel is not written for."""
    if problem.dtype not in ("float16", "bfloat16"):
        return f"serves float16 and bfloat16, not {problem.dtype}"
    if problem.head_dim != problem.head_dim_v:
        return f"needs one head dim for all, not {problem.head_dim} and {problem.head_dim_v}"
    if problem.head_dim > HEAD_DIMS[-1]:
        return f"serves head dims up to {HEAD_DIMS[-1]}, not {problem.head_dim}"
    if problem.softmax_scale <= 0:  # 0 times the -inf of a hidden key is NaN
        return f"needs a positive softmax scale, not {problem.softmax_scale:g}"
    return None


def illegal(problem: AttentionProblem, config: Config, arch: Arch) -> str | None:
    """Shared memory of the block, registers of a consumer thread, and warpgroups that would have no rows."""
    shape = shape_of(problem, config)
    assert arch.limits is not None
    if shape.smem_bytes > arch.limits.smem_bytes_per_block:
        return f"needs {shape.smem_bytes} bytes of shared memory of {arch.limits.smem_bytes_per_block}"
    most, asked = most_keys(problem, shape)
    if shape.tile_keys > most:
        return f"spills registers beyond {most} keys at head dim {shape.head_dim} with {asked}"
    if shape.tile_keys < min(64, most):
        return f"takes turns too often, where {min(64, most)} keys fit registers"
    if shape.warpgroups == 3 and problem.seq_q <= 2 * GROUP_ROWS:
        return f"two warpgroups already hold all {problem.seq_q} queries"
    return None


def most_keys(problem: AttentionProblem, shape: Shape) -> tuple[int, str]:
    """The most keys of a tile without a spill, and what asks for so few; 0 where no tile does."""
    if (shape.head_dim, shape.warpgroups) not in SHAPES:
        return 0, f"{shape.warpgroups} warpgroups"
    at = SHAPES.index((shape.head_dim, shape.warpgroups))
    features = [feature for feature in problem.features if feature in MOST_KEYS]
    asked = ["full", *(["causality"] if problem.edges.right is not None and not features else []), *features]
    asked += ["several features"] if len(features) > 1 else []
    return min((MOST_KEYS[each][at], each) for each in asked)


def tile(problem: AttentionProblem, config: Config) -> Tile:
    """Every warpgroup reads K and V from shared memory, and its rows of Q for the first product."""
    shape = shape_of(problem, config)
    rows, columns, width = shape.tile_rows, shape.tile_keys, shape.head_dim
    kv_bytes = 2 * columns * width * 2
    operand_bytes = shape.warpgroups * kv_bytes + rows * width * 2
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
            # Products of a step are taken in turns, and the first of a turn starts behind the last of the one before.
            Demand("turns", "turns", 2, "wgmma_n128_bf16_latency_cycles"),
        ),
        edge=(Demand("Q and out", "edge", 4 * rows * width, "dram_bandwidth_bytes_per_s"),),
    )


def notes(problem: AttentionProblem) -> tuple[str, ...]:
    """Padding and copies."""
    said = [
        "a tensor is copied first where its last dimension is not contiguous, or its base or a stride is no multiple "
        "of 16 bytes"
    ]
    padded = padded_head_dim(problem.head_dim)
    if padded != problem.head_dim:
        said.append(f"head dim {problem.head_dim} is padded to {padded} in shared memory")
    if problem.head_dim % 8:
        said.append("head dims that are no multiple of 8 are padded by a copy of Q, K and V")
    return tuple(said)


VARIANT = Variant(
    summary="TMA producer, wgmma consumers, softmax of one tile beside the products of another",
    owner="smscope",
    archs=("sm90a",),
    features=FEATURES,
    refuses=refuses,
    space=(
        ("tile_keys", (32, 48, 64, 80, 96, 112, 128, 144, 160, 176)),
        ("warpgroups", (2, 3)),
        ("stages", (2,)),
    ),
    illegal=illegal,
    tile=tile,
    build=build_of,
    signature=("HGMMA", "UTMALDG", "SYNCS", "USETMAXREG"),
    rank=-1,
    notes=notes,
)
