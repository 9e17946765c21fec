"""The nearest call that a tuned kernel serves: the fewest changes to a problem that none does."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from typing import Any

from attention.problem import WORDS, AttentionProblem
from attention.variant import Variant
from microbench.machine.arch import Arch

MOST_CHANGES = 4
DTYPES = ("bfloat16", "float16", "float32")
HEAD_DIM_MAX = 256


def nearest(problem: AttentionProblem, arch: Arch, tuned: tuple[Variant, ...]) -> str | None:
    """'without softcap, in bfloat16', or None where no few changes will do."""
    here = [variant for variant in tuned if arch.name in variant.archs]
    changes = list(_changes(problem)) if here else []
    for count in range(1, MOST_CHANGES + 1):
        for some in combinations(changes, count):
            changed = replace(problem, **{name: value for _, change in some for name, value in change.items()})
            if any(_serves(variant, changed, arch) for variant in here):
                return ", ".join(words for words, _ in some)
    return None


def _serves(variant: Variant, problem: AttentionProblem, arch: Arch) -> bool:
    if variant.refusal(problem, arch) is not None:
        return False
    return variant.illegal is None or any(variant.illegal(problem, each, arch) is None for each in variant.configs())


def _changes(problem: AttentionProblem) -> Iterator[tuple[str, dict[str, Any]]]:
    """Single changes, those first that cost the caller least."""
    for dtype in DTYPES:
        if dtype != problem.dtype:
            yield f"in {dtype}", {"dtype": dtype}
    if problem.softmax_scale <= 0:
        yield "with a positive scale", {"scale": None}
    yield from (way for word in WORDS if word.asked(problem) for way in word.without)
    widest = max(problem.head_dim, problem.head_dim_v)
    if widest > HEAD_DIM_MAX:
        yield f"with head dims up to {HEAD_DIM_MAX}", {"head_dim": HEAD_DIM_MAX, "head_dim_v": HEAD_DIM_MAX}
    if problem.head_dim != problem.head_dim_v and widest <= HEAD_DIM_MAX:
        yield f"with one head dim, {widest}, by padding", {"head_dim": widest, "head_dim_v": widest}
