"""What our CUDA forward kernels have alike: the problems they serve, and how a problem reaches defines and `Launch`.

Tiles, registers and pipelines are each kernel's own. No torch here.
"""

import math
from collections.abc import Callable
from dataclasses import fields, replace
from functools import cache, lru_cache
from operator import attrgetter
from typing import Any

from attention.features import FEATURES
from attention.features.mask import WIDE
from attention.problem import LARGEST, AttentionProblem
from microbench.machine.arch import Arch

DTYPES = ("float16", "bfloat16")
HEAD_DIMS = (64, 96, 128, 192, 256)  # that kernels are tuned at
STEP = 16  # of head dims: the K of one product of 16-bit numbers
MOST_VALUES = 2 * HEAD_DIMS[-1]  # value dims: what two launches hold (common/halves.py)
VARLEN = "VARLEN"  # the define by which sequences are packed
SERVED = frozenset({"variable lengths", *(word for each in FEATURES if each.device for word in each.device.serves)})
# Tiles of rows of a grid for each of a dealt one. Of 2.1 to 2.6 an H200 took 0 to 11 % less time of the fastest tile
# where they were dealt (data/experiments, dealt_rows.csv); packings of fewer were not timed so.
MOST_EMPTY = 2
LOG2_E = math.log2(math.e)
LEAST_ROWS, MOST_ROWS = 64, 256  # of a tile
MASKED_SECTION = 16  # heads of a section that have a mask of float32 in common
# Softmax scales between which neither 8 / scale nor an ALiBi slope in units of raw scores overflows float32.
LEAST_SCALE, LARGEST_SCALE = 2.0**-60, 2.0**60
LONG = 1 << 24  # queries or keys: no edge of a band lies beyond so many
_ROW_BYTES = tuple(each.device.row_bytes for each in FEATURES if each.device and each.device.row_bytes)
Sizes = tuple[int, ...]
Strides = tuple[int, ...]  # in elements


@cache
def padded_head_dim(head_dim: int) -> int:
    """The next head dim that kernels are tuned at: what takes no more registers takes its rules and limits."""
    return next(size for size in HEAD_DIMS if head_dim <= size)


def held_head_dim(head_dim: int) -> int:
    """The head dim that shared memory and products have."""
    return -(-head_dim // STEP) * STEP


def refuses(problem: AttentionProblem, arch: Arch) -> str | None:
    """What none of these kernels is written for, and value dims unlike head dims."""
    if problem.dtype in DTYPES and problem.head_dim != problem.head_dim_v:
        return f"needs one head dim for all, not {problem.head_dim} and {problem.head_dim_v}"
    return _refuses_of_any(problem)


def refuses_but_value_dims(step: int) -> Callable[[AttentionProblem, Arch], str | None]:
    """The same of a kernel that takes value dims unlike head dims where they are multiples of `step`.

    They are held as they are: what is padded of V would be columns of out that nobody asked for. Those beyond what one
    launch holds come here as a half of them.
    """

    def refuses_some(problem: AttentionProblem, arch: Arch) -> str | None:
        unlike = problem.head_dim != problem.head_dim_v
        if problem.dtype in DTYPES and unlike and (problem.head_dim_v % step or problem.head_dim_v > HEAD_DIMS[-1]):
            return (
                f"serves value dims unlike head dims where they are multiples of {step} up to {MOST_VALUES}, "
                f"not {problem.head_dim_v}"
            )
        return _refuses_of_any(problem)

    return refuses_some


def _refuses_of_any(problem: AttentionProblem) -> str | None:
    if problem.dtype not in DTYPES:
        return f"serves float16 and bfloat16, not {problem.dtype}"
    if problem.head_dim > HEAD_DIMS[-1]:
        return f"serves head dims up to {HEAD_DIMS[-1]}, not {problem.head_dim}"
    if row_tiles(problem, LEAST_ROWS) * problem.batch * problem.heads_q > LARGEST:
        return f"counts up to {LARGEST} tiles of {LEAST_ROWS} rows"
    return _why_not_scaled(problem)


@lru_cache(maxsize=64)
def of_any_length(problem: AttentionProblem) -> AttentionProblem:
    """What stands for all problems whose tiles are alike: no length, no batch and no number of heads decides on those.

    Of heads it keeps whether there are pairs. Rules are asked once about it, and not again by each class of lengths.
    Its rows are so long that blocks share K and V where any do, and take 56 bytes of shared memory more.
    """
    heads = 2 - problem.heads_q % 2
    rows = {"tokens_q": LONG, "tokens_kv": 2 * LONG} if problem.varlen else {}
    return resized(problem, batch=1, heads_q=heads, heads_kv=heads, seq_q=LONG, seq_kv=2 * LONG, **rows)


def resized(problem: AttentionProblem, **sizes: int) -> AttentionProblem:
    """The problem with other sizes; itself where these would hide other keys, or ask for other features.

    One object for all problems that differ in these alone: a hundred rules of a choice are looked up by it.
    """
    kind = (*sizes.items(), problem.features, *_all_but(tuple(sizes))(problem))
    if kind not in _of_kind:
        if len(_of_kind) >= MOST_KEPT:
            _of_kind.clear()
        changes: dict[str, Any] = dict(sizes)
        found = replace(problem, **changes)
        _of_kind[kind] = found if (found.features, found.edges) == (problem.features, problem.edges) else None
    return _of_kind[kind] or problem


MOST_KEPT = 4096
# By all that a resized problem follows from, which is less work to look up than to make; None where it is no such.
_of_kind: dict[tuple[Any, ...], AttentionProblem | None] = {}


@cache
def _all_but(names: tuple[str, ...]) -> Callable[[AttentionProblem], tuple[Any, ...]]:
    """The values of all other fields: a problem's edges follow from these too."""
    return attrgetter(*(each.name for each in fields(AttentionProblem) if each.name not in names))


def too_large(smem_bytes: int, arch: Arch) -> str | None:
    """Why a block that asks for so much shared memory cannot be launched."""
    assert arch.limits is not None
    most = arch.limits.smem_bytes_per_block
    return f"needs {smem_bytes} bytes of shared memory of {most}" if smem_bytes > most else None


def _why_not_scaled(problem: AttentionProblem) -> str | None:
    scale = problem.softmax_scale
    if scale <= 0:  # 0 times the -inf of a hidden key is NaN
        return f"needs a positive softmax scale, not {scale:g}"
    if not LEAST_SCALE <= scale <= LARGEST_SCALE:
        return f"serves softmax scales from {LEAST_SCALE:.2g} to {LARGEST_SCALE:.2g}, not {scale:g}"
    return next((why for feature in FEATURES if (why := feature.refuses(problem))), None)


def notes_of(pads: Callable[[int], int]) -> Callable[[AttentionProblem], tuple[str, ...]]:
    """What a kernel that computes with the head dim `pads(head_dim)` says of padding and copies."""

    def notes(problem: AttentionProblem) -> tuple[str, ...]:
        said = [
            "a tensor is copied first where its last dimension is not contiguous, or its base or a stride is no "
            "multiple of 16 bytes"
        ]
        padded = pads(problem.head_dim)
        if padded != problem.head_dim:
            said.append(f"head dim {problem.head_dim} is padded to {padded} in shared memory")
        if dealt(problem):
            said.append("tiles are dealt by each sequence's own length, as the longest is far from the others")
        if problem.head_dim % 8:
            said.append("head dims that are no multiple of 8 are padded by a copy of Q, K and V")
        return tuple(said)

    return notes


def held_value_dim(problem: AttentionProblem, pads: Callable[[int], int] = held_head_dim) -> int:
    """The value dim that shared memory and outputs hold: as padded as the head dim, or what is unlike it as it is."""
    return pads(problem.head_dim) if problem.head_dim == problem.head_dim_v else problem.head_dim_v


def value_defines(problem: AttentionProblem) -> tuple[tuple[str, int], ...]:
    """VALUE_DIM where value dims are unlike: other builds have no such word, and keep their machine code."""
    return () if problem.head_dim == problem.head_dim_v else (("VALUE_DIM", problem.head_dim_v),)


def lead_defines(problem: AttentionProblem) -> tuple[tuple[str, int], ...]:
    """LEAD where rows may begin inside of a sector, with so many columns to spare: others keep their machine code."""
    dims = problem.head_dim, problem.head_dim_v
    return (("LEAD", STEP // 2),) if any(dim % STEP == STEP // 2 for dim in dims) else ()


def late(dim: int, strides: Strides) -> int:
    """1 where rows (B, H, S, `dim`) of every other head begin inside of a sector of 32 bytes (common/lead.cuh).

    Of a tensor that itself begins so it is the other ones, which are then read as they lie.
    """
    _, of_head, of_row, _ = strides
    return int(dim % STEP == of_head % STEP == STEP // 2 and of_row % STEP == 0)


def schedule_defines(problem: AttentionProblem) -> tuple[tuple[str, int], ...]:
    """DEALT where tiles are dealt by the sequences' own lengths: other builds have no such word."""
    return (("DEALT", 1),) if dealt(problem) else ()


def feature_defines(problem: AttentionProblem) -> tuple[tuple[str, int], ...]:
    """The dtype, and everything that may be asked for: each a constant of the generated launch.cuh."""
    devices = [feature.device for feature in FEATURES if feature.device]
    return (
        ("BF16", int(problem.dtype == "bfloat16")),
        (VARLEN, int(problem.varlen)),
        *((define.name, int(define.asked(problem))) for device in devices for define in device.defines),
    )


def ahead_row(problem: AttentionProblem, keys: int) -> int:
    """Bytes of shared memory that a feature keeps of a query row, of what it reads ahead of a tile of so many keys."""
    return max(row_bytes(problem, keys) for row_bytes in _ROW_BYTES)


def ahead_defines(problem: AttentionProblem, keys: int) -> tuple[tuple[str, int], ...]:
    """AHEAD_ROW where there are such rows: other builds have no such word, and keep their machine code."""
    row = ahead_row(problem, keys)
    return (("AHEAD_ROW", row),) if row else ()


@lru_cache(maxsize=64)
def asked_defines(problem: AttentionProblem) -> frozenset[str]:
    """The switches that a problem turns on, VARLEN among them."""
    return frozenset(name for name, value in feature_defines(problem)[1:] if value)


def fill(launch: Any, problem: AttentionProblem, query: Sizes, key: Sizes, tile_rows: int, group: int = 1) -> int:
    """Write the fields that every `Launch` has and that follow from a problem; gives its tiles of rows.

    `query` and `key` are the shapes (B, H, S, D) that the kernel reads, of packed sequences (1, H, T, D). Heads of a
    `group` share a tile's rows, and count as one.
    """
    launch.batch, launch.heads = problem.batch, problem.heads_q // group
    launch.queries, launch.keys = query[-2], key[-2]
    launch.heads_per_kv, launch.head_dim = problem.heads_q // problem.heads_kv, query[-1]
    launch.row_tiles = tiles_of_head(problem, tile_rows, group)
    launch.tiles = launch.row_tiles * heads_of(problem) // group
    launch.section = section_of(problem)
    scales = (scale for feature in FEATURES if (scale := feature.scale(problem)) is not None)
    launch.scale_log2 = next(scales, problem.softmax_scale) * LOG2_E
    for feature in FEATURES:
        if feature.device and any(define.asked(problem) for define in feature.device.defines):
            for field in feature.device.fields:
                setattr(launch, field.name, field.of(problem, launch.scale_log2))
    return int(launch.tiles)


def row_tiles(problem: AttentionProblem, tile_rows: int, group: int = 1) -> int:
    """Tiles of rows of the longest sequence, which is no longer than all packed ones together."""
    rows = min(problem.seq_q, max(1, problem.tokens_q)) if problem.varlen else problem.seq_q
    return -(-rows * group // tile_rows)


@lru_cache(maxsize=64)
def dealt(problem: AttentionProblem) -> bool:
    """Whether packed sequences are so unlike that tiles are dealt by their own lengths (common/work.cuh).

    A grid that gives each sequence as many tiles as the longest one has costs a block's hand-over for each that is
    empty: of 511 sequences of 256 rows and one of 8192 they are 97 % of all.
    """
    if not problem.varlen or problem.tokens_q + MOST_ROWS * problem.batch > LARGEST:
        return False
    return row_tiles(problem, LEAST_ROWS) * problem.batch > MOST_EMPTY * dealt_tiles(problem, LEAST_ROWS)


def dealt_tiles(problem: AttentionProblem, tile_rows: int) -> int:
    """Tiles of rows of a head where each sequence has those of its own rows, and at most one more."""
    return problem.tokens_q // tile_rows + problem.batch


def tiles_of_head(problem: AttentionProblem, tile_rows: int, group: int = 1) -> int:
    """Tiles of rows of a head of a launch, or of a group's heads that share them: of dealt ones none does."""
    return dealt_tiles(problem, tile_rows) if dealt(problem) else row_tiles(problem, tile_rows, group)


def heads_of(problem: AttentionProblem) -> int:
    """Heads of a launch: those of each sequence, or where tiles are dealt of all sequences together."""
    return problem.heads_q if dealt(problem) else problem.batch * problem.heads_q


def tiles_of(problem: AttentionProblem, tile_rows: int, group: int = 1) -> int:
    """Tiles of rows of a launch."""
    return tiles_of_head(problem, tile_rows, group) * heads_of(problem) // group


def readers(problem: AttentionProblem, tile_rows: int, group: int = 1) -> int:
    """How many tile rows read the same keys, one of them from DRAM: those of a head, and of the others of its group."""
    return row_tiles(problem, tile_rows, group) * (problem.heads_q // problem.heads_kv // group)


def section_of(problem: AttentionProblem) -> int:
    """Heads that a section of a schedule by sections takes together.

    About 32, as far as their K and V fit 32 MB of the L2, but about 16 where they do not: fewer leave SMs idle at the
    end of a section, and more bring too many heads' K and V from DRAM at a time. From two thirds to four thirds of
    that, the number that leaves the last section fullest. (Measured with the sm90a kernel on an H100 at 4 to 256 heads,
    512 to 16384 keys and head dims 64, 128 and 256.)

    Beside a mask in float32 that is not causal 16, which bring the fewest bytes of K, V and the mask at a time.
    """
    if problem.mask_dtype == WIDE and not problem.causal:
        return MASKED_SECTION
    heads, both = heads_of(problem), padded_head_dim(problem.head_dim) + held_value_dim(problem, padded_head_dim)
    keys = max(1, problem.tokens_kv) if dealt(problem) else problem.mean_lengths[1]
    kv_bytes = 2 * keys * both * problem.heads_kv / problem.heads_q  # a query head's share
    wanted = min(32, max(16, int((32 << 20) / kv_bytes)))
    if heads <= 4 * wanted // 3:
        return heads
    return min(range(2 * wanted // 3, 4 * wanted // 3 + 1), key=lambda each: (-heads % each / each, abs(each - wanted)))
