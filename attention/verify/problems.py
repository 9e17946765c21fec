"""Random attention problems for a build: sizes, features, memory layouts and kinds of values. No tensors here."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from attention.errors import ProblemError
from attention.kernels.common.family import VARLEN
from attention.problem import AttentionProblem
from attention.variant import by_path
from attention.verify.builds import ARCH, Build, builds_of, defines_of, fields_of

# (Sq, Skv) at which kernels were wrong before: those of FlashAttention's tests, and borders of tiles.
GRID = (
    *((1, 1), (64, 128), (128, 192), (239, 1), (799, 3), (1023, 1024), (1024, 1023), (4224, 4224)),
    *((1, 127), (1, 4224), (63, 65), (64, 64), (65, 63), (113, 203), (108, 256), (127, 129), (128, 128), (129, 113)),
    *((191, 193), (192, 176), (193, 177), (256, 512), (512, 256), (1, 339), (3, 1024), (2048, 2048), (4096, 4097)),
)


@dataclass(frozen=True)
class Limits:
    """Sizes to draw from: queries and keys of a sequence, score elements, elements of Q, K or V.

    `heads`, where given, are (batch, key heads, query heads to a key head) of every problem.
    """

    longest: int
    pairs: int
    elements: int
    shortest: int = 1
    heads: tuple[int, int, int] | None = None


WIDE = Limits(longest=4500, pairs=4 * 10**7, elements=2**24)  # 320 MB of float64 scores, a few ms of an H100
SMALL = Limits(longest=300, pairs=2 * 10**5, elements=2**20)

HEAD_DIMS: tuple[int, ...] = (
    *(1, 2, 7, 8, 16, 24, 32, 33, 40, 48, 59, 63),
    *(72, 80, 81, 88),
    *(100, 104, 111, 112, 120, 127),
)
HEAD_DIMS = (*HEAD_DIMS, *(136, 144, 160, 181), *(200, 208, 224, 255))
# Where a tensor lies: 'sliced' and 'sliced bshd' leave out parts of larger ones, 'misaligned' begins 2 bytes late,
# 'strided' has every second element of a row, 'transposed' rows as columns, 'expanded' one batch or head for all.
LAYOUTS = ("bhsd", "bshd", "sliced", "sliced bshd", "misaligned", "strided", "transposed", "expanded")
LAYOUT_SHARES = (0.25, 0.3, 0.12, 0.12, 0.06, 0.03, 0.04, 0.08)
# 'peaked': scores of standard deviation 4. 'rising' and 'falling': keys grow or shrink along the sequence, so that row
# maxima move from tile to tile. 'offset': every key has a part in common, and values have a mean.
VALUES = ("normal", "peaked", "rising", "falling", "offset")
VALUE_SHARES = (0.52, 0.15, 0.12, 0.09, 0.12)


@dataclass(frozen=True)
class Case:
    """One problem of the campaign, and everything that its tensors follow from."""

    index: int
    seed: int
    build: Build
    problem: AttentionProblem
    layouts: tuple[str, str, str]
    values: str
    lengths: tuple[tuple[int, int], ...] = ()  # (queries, keys) of packed sequences
    spare: tuple[int, int] = (0, 0)  # packed rows behind the last sequence
    stretched: str = "bhqk"  # axes of which operands have one index for all are 1 here; T: keys are rows in memory
    density: float = 1.0  # of a mask


def drawn(variants: tuple[str, ...], problems: int, seed: int, small: bool = False, arch: str = ARCH) -> list[Case]:
    """All problems of a campaign: every build gets its share, neighbours in the list the same build."""
    builds = [build for variant in variants for build in builds_of(variant, arch)]
    limits = SMALL if small else WIDE
    return [case_of(builds[i * len(builds) // problems], i, seed, limits) for i in range(problems)]


def case_of(build: Build, index: int, seed: int, limits: Limits) -> Case:
    """The first random problem that is legal for the build and compiled to it. An edge that hides nothing is none."""
    rng = np.random.default_rng([seed, index])
    variant, arch = by_path(build.variant), build.written_for
    wanted = build.defines
    for _ in range(1000):
        try:
            case = _attempt(build, index, seed, limits, rng)
        except ProblemError:
            continue
        problem = case.problem
        if variant.refusal(problem, arch) is not None:
            continue
        if variant.illegal is not None and variant.illegal(problem, build.config, arch) is not None:
            continue
        if defines_of(build.variant, problem, build.config) == wanted:
            return case
    raise AssertionError(f"no problem fits {build}")


def _attempt(build: Build, index: int, seed: int, limits: Limits, rng: np.random.Generator) -> Case:
    asked = build.asked
    lengths: tuple[tuple[int, int], ...] = ()
    spare = (0, 0)
    seq_q, seq_kv = _sequence(rng, limits)
    batch, heads_kv, group = int(rng.integers(1, 5)), int(rng.choice((1, 1, 2, 3, 4))), int(rng.choice((1, 1, 2, 4, 8)))
    head_dim = _head_dim(rng, build.bucket)
    batch, heads_kv, group = limits.heads or (batch, heads_kv, group)
    # Fewer heads, then fewer batches, until the oracle is quick.
    while batch * heads_kv * group > 1 and (
        batch * heads_kv * group * seq_q * seq_kv > limits.pairs
        or batch * heads_kv * group * max(seq_q, seq_kv) * head_dim > limits.elements
    ):
        heads_kv, group, batch = (
            (heads_kv // 2, group, batch)
            if heads_kv > 1
            else (heads_kv, group // 2, batch)
            if group > 2 or (group == 2 and batch == 1)
            else (heads_kv, group, batch - 1)
        )
    tokens = (0, 0)
    if build.few:
        seq_q = int(rng.integers(build.few // 2, build.few + 1)) // group or 1
    if build.dealt:
        heads_kv, group = min(2, heads_kv), min(2, group)
    if VARLEN in asked:
        lengths = (
            _uneven(rng, limits)
            if build.dealt
            else _lengths(rng, int(rng.integers(1, 7)), seq_q, seq_kv, build.few > 0)
        )
        batch = len(lengths)
        spare = (int(rng.integers(1, 100)), int(rng.integers(1, 100))) if rng.random() < 0.1 else (0, 0)
        totals = [sum(each) for each in zip(*lengths, strict=True)]
        if 0 in totals:
            raise ProblemError("nothing to do")
        tokens = (totals[0] + spare[0], totals[1] + spare[1])
        seq_q, seq_kv = (max(each) for each in zip(*lengths, strict=True))
        if rng.random() < 0.2:  # who calls may overstate the longest
            seq_q, seq_kv = seq_q + int(rng.integers(0, 200)), seq_kv + int(rng.integers(0, 200))
    problem = AttentionProblem(
        *(batch, heads_kv * group, heads_kv, seq_q, seq_kv, head_dim, build.value_dim),
        dtype=build.dtype,
        device="cuda",
        scale=_scale(rng),
        varlen=VARLEN in asked,
        tokens_q=tokens[0],
        tokens_kv=tokens[1],
        **fields_of(asked, rng),
    )
    layouts = rng.choice(LAYOUTS, 3, p=LAYOUT_SHARES)
    return Case(
        index=index,
        seed=seed,
        build=build,
        problem=problem,
        layouts=(str(layouts[0]), str(layouts[1]), str(layouts[2])),
        values=str(rng.choice(VALUES, p=VALUE_SHARES)),
        lengths=lengths,
        spare=spare,
        stretched=_stretched(rng),
        density=float(rng.choice((0.95, 0.6, 0.2, 0.01))),
    )


def _sequence(rng: np.random.Generator, limits: Limits) -> tuple[int, int]:
    if limits.shortest > 1:
        seq_q, seq_kv = rng.integers(limits.shortest, limits.longest + 1, 2)
        return int(seq_q), int(seq_kv)
    if rng.random() < 0.4:
        fitting = [pair for pair in GRID if max(pair) <= limits.longest]
        return fitting[rng.integers(len(fitting))]
    top = math.log(limits.longest + 1)
    seq_q, seq_kv = (int(math.exp(rng.random() * top)) for _ in range(2))
    shape = rng.random()
    if shape < 0.15:
        seq_q = 1  # decoding
    elif shape < 0.4:
        seq_kv = seq_q
    return max(1, seq_q), max(1, seq_kv)


def _head_dim(rng: np.random.Generator, bucket: tuple[int, int]) -> int:
    least, most = bucket
    drawn = rng.random()
    if drawn < 0.45:
        return most
    usual = [size for size in HEAD_DIMS if least <= size <= most]
    if drawn < 0.8 and usual:
        return int(rng.choice(usual))
    return int(rng.integers(least, most + 1))


def _lengths(rng: np.random.Generator, batch: int, seq_q: int, seq_kv: int, few: bool) -> tuple[tuple[int, int], ...]:
    """Lengths up to these over the whole batch, some of them 0; up to so many queries each where they are few."""

    def one(most: int) -> int:
        kind = rng.random()
        return 0 if kind < 0.15 else most if kind < 0.3 else int(rng.integers(1, most + 1))

    queries = seq_q if few else max(1, seq_q // batch)
    return tuple((one(queries), one(max(1, seq_kv // batch))) for _ in range(batch))


def _uneven(rng: np.random.Generator, limits: Limits) -> tuple[tuple[int, int], ...]:
    """Many short sequences, some of them empty, and a long one anywhere among them."""
    lengths = [(int(queries), int(keys)) for queries, keys in rng.integers(0, 9, (int(rng.integers(20, 60)), 2))]
    longest = int(rng.integers(200, max(201, limits.longest + 1)))
    lengths[int(rng.integers(len(lengths)))] = (longest, int(rng.integers(1, longest + 1)))
    return tuple(lengths)


def _scale(rng: np.random.Generator) -> float | None:
    return None if rng.random() < 0.75 else float(rng.choice((0.05, 0.125, 0.3)))


def _stretched(rng: np.random.Generator) -> str:
    kept = rng.random(4) < (0.6, 0.5, 0.75, 0.85)
    return "".join(name if keep else "1" for name, keep in zip("bhqk", kept, strict=True)) + "T" * int(
        rng.random() < 0.2
    )


def described(case: Case) -> dict[str, Any]:
    """A case in words, for its row."""
    return {
        "variant": case.build.variant,
        "config": str(case.build.config),
        "problem": str(case.problem),
        "head_dim": case.problem.head_dim,
        "dtype": case.problem.dtype,
        "features": list(case.problem.features) + (["causality"] if case.problem.edges.right is not None else []),
        "layouts": list(case.layouts),
        "values": case.values,
        "scale": case.problem.scale,
        "lengths": [list(pair) for pair in case.lengths],
        "mask": case.stretched if case.problem.mask != "none" else "",
    }
