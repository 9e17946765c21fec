"""Attention on Hopper: one producer warpgroup, two or three consumers on wgmma; what it serves and what a tile asks."""

from attention.kernels.sm90a.forward.warp_specialised.launch import (
    GROUP_ROWS,
    HEAD_DIMS,
    build_of,
    padded_head_dim,
    shape_of,
)
from attention.problem import AttentionProblem, Feature
from attention.variant import Config, Demand, Tile, Variant
from microbench.arch import Arch

# setmaxnreg's shares of 64 Ki registers among 384 and 512 threads, as in config.cuh.
CONSUMER_REGISTERS = {2: 240, 3: 160}
# Registers that tiles must leave for addresses, ring positions, softmax state and temporaries: where less is left,
# ptxas spills. Found with NVRTC 12.9 by compiling every configuration with each feature (`python -m attention check
# --all`); of several features the most demanding one counts. At head dim 192 ptxas spills 4 to 12 bytes where 60 to 72
# are left: why is not known.
OTHER_REGISTERS, AT_192 = 32, 28
BANDED_REGISTERS, WINDOW_REGISTERS, ALIBI_REGISTERS, MASK_REGISTERS, SOFTCAP_REGISTERS = 36, 48, 48, 56, 64

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
    if problem.softmax_scale < 0 or (problem.alibi and problem.softmax_scale == 0):
        return f"needs a positive softmax scale, not {problem.softmax_scale:g}"
    return None


def illegal(problem: AttentionProblem, config: Config, arch: Arch) -> str | None:
    """Registers of a consumer thread, shared memory of the block, and warpgroups that would have no rows."""
    shape = shape_of(problem, config)
    assert arch.limits is not None
    if shape.smem_bytes > arch.limits.smem_bytes_per_block:
        return f"needs {shape.smem_bytes} bytes of shared memory of {arch.limits.smem_bytes_per_block}"
    held = shape.head_dim // 2 + shape.tile_keys * 3 // 4  # out, scores, and p packed by two
    others = other_registers(problem)
    if held + others > CONSUMER_REGISTERS[shape.warpgroups]:
        return (
            f"holds {held} registers of tiles a thread and {others} others, of {CONSUMER_REGISTERS[shape.warpgroups]}"
        )
    if shape.warpgroups == 3 and problem.seq_q <= 2 * GROUP_ROWS:
        return f"two warpgroups already hold all {problem.seq_q} queries"
    return None


def other_registers(problem: AttentionProblem) -> int:
    """Registers of a consumer thread beside its tiles."""
    asked = (
        (problem.edges.right is not None, BANDED_REGISTERS),
        (problem.edges.left is not None, WINDOW_REGISTERS),
        (problem.alibi, ALIBI_REGISTERS),
        (problem.mask == "bool", MASK_REGISTERS),
        (problem.softcap > 0, SOFTCAP_REGISTERS),
    )
    most = max((registers for needed, registers in asked if needed), default=OTHER_REGISTERS)
    return most + (AT_192 if padded_head_dim(problem.head_dim) == 192 else 0)


def tile(problem: AttentionProblem, config: Config) -> Tile:
    """Every warpgroup reads K and V from shared memory, and its rows of Q for the first product."""
    shape = shape_of(problem, config)
    rows, columns, width = shape.tile_rows, shape.tile_keys, shape.head_dim
    kv_bytes = 2 * columns * width * 2
    operand_bytes = shape.warpgroups * kv_bytes + rows * width * 2
    return Tile(
        rows=rows,
        columns=columns,
        # A warpgroup passes over tiles that causality hides from it, but works on rows beyond the end.
        row_step=GROUP_ROWS if problem.causal else rows,
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
        ("tile_keys", (64, 80, 96, 112, 128, 144, 160, 176)),
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
