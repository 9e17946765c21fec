"""attention.record: the kinds of attention calls that a program makes, into a file that prewarm compiles from.

It is a mode of torch's, which torch looks for in any case: a program that records nothing pays nothing.
"""

import logging
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from inspect import signature
from pathlib import Path
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from attention.ahead import recorded
from attention.ahead.recorded import RecordedCall
from attention.choose.explain.explain import problem_of
from attention.errors import AttentionError
from attention.frontends.flash_attn import packed
from attention.frontends.flash_attn.explain import posed
from attention.frontends.flash_attn.functions import flash_attn_func, flash_attn_varlen_func
from attention.frontends.inputs import autocast
from attention.frontends.route import trained
from attention.frontends.sdpa import sdpa

_log = logging.getLogger("attention")
TORCHS = torch.nn.functional.scaled_dot_product_attention
FLASH = (flash_attn_func, flash_attn_varlen_func)
PACKED = (
    packed.flash_attn_qkvpacked_func,
    packed.flash_attn_kvpacked_func,
    packed.flash_attn_varlen_qkvpacked_func,
    packed.flash_attn_varlen_kvpacked_func,
)
NAMES = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal", "scale", "enable_gqa")
_SDPA = signature(sdpa)


@contextmanager
def record(path: str | Path) -> Iterator[Counter[RecordedCall]]:
    """Inside of this `with`, note each kind of eager call of this thread; at its end, append them to a file.

    Noted are sdpa, the functions with flash-attn's arguments, and torch's scaled_dot_product_attention, which
    attention.install() serves. Calls without queries or keys are not noted: they run no kernel. Calls that torch makes
    inside of another function that a mode may replace, as nn.MultiheadAttention's is, are hidden from every mode; those
    of a compiled graph may be.
    What was noted is written where the program fails, too. Raises DataError where the file cannot be written.
    """
    mode = _Recorder()
    try:
        with mode:
            yield mode.counts
    finally:
        recorded.append(Path(path), mode.counts)
        for why, count in mode.unread.items():
            _log.warning("Calls that %s lacks, %d in number: %s", Path(path).name, count, why)


class _Recorder(TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[RecordedCall] = Counter()
        self.unread: Counter[str] = Counter()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        options = kwargs or {}
        if func in PACKED:  # each splits its tensors and calls another, which is the one to note
            with self:
                return func.__wrapped__(*args, **options)
        result = func(*args, **options)  # a call that fails has no kernel
        if func is sdpa or func is TORCHS or func in FLASH:
            try:
                call = _flash(func, args, options) if func in FLASH else _plain(args, options)
                if call is not None:
                    self.counts[call] += 1
            except (AttentionError, TypeError, AttributeError) as error:  # nested tensors, shapes that are symbols
                self.unread[str(error)] += 1
        return result


def _plain(args: tuple[Any, ...], options: dict[str, Any]) -> RecordedCall | None:
    """None where there is nothing to compute: no kernel runs, and a problem counts a size of 0 as 1."""
    call = _SDPA.bind(*args, **options)
    call.apply_defaults()
    given = call.arguments
    query, key, value = autocast(given["query"], given["key"], given["value"])
    if 0 in (query.numel(), key.numel(), value.numel()):
        return None
    problem = problem_of(query, key, value, *(given[name] for name in NAMES[3:]))
    return RecordedCall(problem, "sdpa", trained(query, key, value), given["only"] or "")


def _flash(func: Any, args: tuple[Any, ...], options: dict[str, Any]) -> RecordedCall | None:
    """None as from _plain."""
    call = signature(func).bind(*args, **options)
    given = call.arguments
    given["q"], given["k"], given["v"] = autocast(given["q"], given["k"], given["v"])
    found = posed(func, call.args, call.kwargs)
    if found.empty:
        return None
    gradients = trained(given["q"], given["k"], given["v"])
    ranged = found.ranged if given["q"].is_cuda and not gradients else None
    return RecordedCall(ranged or found.problem, "flash_attn", gradients, found.given["only"] or "")
