"""The nearest call that a tuned kernel serves: the fewest changes to a problem that none does."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from typing import Any

from attention.problem import AttentionProblem, Feature
from attention.variant import Variant
from microbench.arch import Arch

MOST_CHANGES = 4
WITHOUT: dict[Feature, tuple[str, dict[str, Any]]] = {
    "dropout": ("without dropout", {"dropout_p": 0.0}),
    "bool mask": ("without the mask", {"mask": "none"}),
    "float mask": ("with a bool mask", {"mask": "bool"}),
    "bottom-right causality": ("aligned top-left", {"alignment": "top_left"}),
    "sliding window": ("without a window", {"window": (-1, -1)}),
    "softcap": ("without softcap", {"softcap": 0.0}),
    "ALiBi": ("without ALiBi", {"alibi": False}),
    "attention sinks": ("without sinks", {"sinks": False}),
    "variable lengths": ("one sequence at a time", {"varlen": False, "batch": 1}),
}
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
    for feature in problem.features:
        yield WITHOUT[feature]
    if problem.mask == "float":
        yield "without the mask", {"mask": "none"}
    widest = max(problem.head_dim, problem.head_dim_v)
    if widest > HEAD_DIM_MAX:
        yield f"with head dims up to {HEAD_DIM_MAX}", {"head_dim": HEAD_DIM_MAX, "head_dim_v": HEAD_DIM_MAX}
    if problem.head_dim != problem.head_dim_v and widest <= HEAD_DIM_MAX:
        yield f"with one head dim, {widest}, by padding", {"head_dim": widest, "head_dim_v": widest}
