"""Attention that is chosen by what was measured of this machine.

    attention.sdpa(query, key, value, ...)      torch's signature and layout; imports torch at its first use
    attention.explain(query, key, value, ...)   which kernel, with which configuration, and why
    attention.explain(problem, gpu="...")       the same from a committed profile, without torch

Nothing here imports torch before a tensor comes in.
"""

from typing import TYPE_CHECKING, Any

from microbench import needs

with needs.one_sentence():
    from attention.choose import Choice, choose
    from attention.errors import (
        AttentionError,
        EnvironmentLacks,
        FallbackWarning,
        ProblemError,
        UnsupportedError,
    )
    from attention.explain import Explanation, explain
    from attention.problem import AttentionProblem

if TYPE_CHECKING:
    from attention.op import sdpa

__all__ = [
    "AttentionError",
    "AttentionProblem",
    "Choice",
    "EnvironmentLacks",
    "Explanation",
    "FallbackWarning",
    "ProblemError",
    "UnsupportedError",
    "choose",
    "explain",
    "sdpa",
]


def __getattr__(name: str) -> Any:
    if name != "sdpa":
        raise AttributeError(f"module 'attention' has no attribute {name!r}")
    try:
        import torch  # noqa: F401
    except ImportError as error:
        raise EnvironmentLacks(
            "attention.sdpa needs torch, which is not installed here; `pip install torch` adds it, as `make lab` does."
        ) from error
    from attention.op import sdpa

    globals()["sdpa"] = sdpa
    return sdpa
