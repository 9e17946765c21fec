"""explain() for the two functions with flash-attn's arguments. Arrays will do as well as tensors."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any

from attention.call import STARTS
from attention.choose.explain.explain import explain_call
from attention.choose.explain.explanation import Explanation
from attention.errors import UnsupportedError
from attention.frontends.flash_attn.arguments import (
    ROWS,
    extras_of,
    ignored_note,
    longest_of,
    options_of,
    refuse_dropout,
    refuse_others,
    rows_that_fit,
)
from attention.frontends.flash_attn.functions import flash_attn_func, flash_attn_varlen_func
from attention.judge.arguments import number, one_of
from attention.judge.call import judged
from attention.judge.shapes import FLASH, PACKED
from attention.problem import AttentionProblem

RANGED = "the rows that seqused and leftpad leave are read on the device, by the kernel itself"
CUT = "the rows that seqused and leftpad leave are computed as packed sequences, {} for each of the caller's"


def explain_flash_attn_func(*args: Any, gpu: str | None = None, passes: str = "forward", **options: Any) -> Explanation:
    """Which kernel serves this call of flash_attn_func and why; `gpu` names a profile, by default this machine's own.

    Everything else is given as to flash_attn_func. A note names the hints that the call ignores.
    Raises ProblemError, UnsupportedError, microbench.errors.UnknownGpu.
    """
    return _explained(flash_attn_func, args, options, gpu, passes)


def explain_flash_attn_varlen_func(
    *args: Any, gpu: str | None = None, passes: str = "forward", **options: Any
) -> Explanation:
    """Which kernel serves this call of flash_attn_varlen_func and why, as explain_flash_attn_func says it."""
    return _explained(flash_attn_varlen_func, args, options, gpu, passes)


@dataclass(frozen=True)
class Posed:
    """A call's problem, all of its arguments, and how many packed sequences each of the caller's is cut into.

    `ranged`: the same where a kernel reads which rows are used, and nothing is cut; None where all of them are.
    `empty`: there are no queries or no keys, which the problem counts as 1.
    """

    problem: AttentionProblem
    given: dict[str, Any]
    parts: int
    ranged: AttentionProblem | None = None
    empty: bool = False


def _explained(
    function: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any], gpu: str | None, passes: str
) -> Explanation:
    found = posed(function, args, named)
    given = found.given
    tensors = (given["q"], given["k"], given["v"])
    if found.ranged is not None and passes == "forward":
        with suppress(UnsupportedError):
            explained = explain_call(found.ranged, tensors, gpu=gpu, only=given["only"], passes=passes)
            if explained.choice.pick.owner == "smscope" and explained.choice.fallback is None:
                return replace(explained, notes=(*explained.notes, RANGED, *ignored_note(given)))
    explained = explain_call(found.problem, tensors, gpu=gpu, only=given["only"], passes=passes)
    cut = (CUT.format(found.parts),) if found.parts > 1 else ()
    return replace(explained, notes=(*explained.notes, *cut, *ignored_note(given)))


def posed(function: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]) -> Posed:
    """The problem that a call of one of the two functions poses. Raises ProblemError, UnsupportedError."""
    call = signature(function).bind(*args, **named)
    call.apply_defaults()
    given = call.arguments
    others = given.pop("others")
    refuse_others(f"explain_{function.__name__}", {"block_table": given.get("block_table"), **others})
    refuse_dropout(number("dropout_p", given["dropout_p"]))
    layout, starts, longest = FLASH, [given.get(name) for name in STARTS], (0, 0)
    if starts[0] is not None:
        layout = PACKED
        longest = (
            longest_of("max_seqlen_q", given["max_seqlen_q"], starts[0]),
            longest_of("max_seqlen_k", given["max_seqlen_k"], starts[1]),
        )
    sinks = one_of(**{name: given[name] for name in ("sinks", "s_aux", "learnable_sink")})
    extras = extras_of(given["alibi_slopes"], sinks, [given[name] for name in ROWS], others, starts)
    softmax_scale, causal, window_size, softcap = map(given.get, ("softmax_scale", "causal", "window_size", "softcap"))
    asked = options_of(softmax_scale, causal, window_size, softcap, others, longest)
    tensors = (given["q"], given["k"], given["v"])
    found = judged(layout, tensors, extras.operands, asked)
    rows_that_fit(layout, given["q"], extras, found.batch)
    problem = found.cut(extras.parts()).problem(asked, extras.operands)
    ranged = None if extras.parts() == 1 else found.problem(asked, extras.ranged())
    return Posed(problem, given | others, extras.parts(), ranged, found.empty)
