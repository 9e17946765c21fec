"""The classes of problems that a program poses, the most frequent first: what `smscope tune` is asked to time.

attention.record keeps shapes and counts, and no lengths that lie on the device. Of packed sequences one is taken to be
the longest, and the others as long as each other; of a cache every sequence is taken to use its whole slot.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from attention.ahead.recorded import RecordedCall
from attention.campaign.posed import Class, Posed
from attention.choose.tunings_file import key_of
from attention.errors import UnsupportedError
from attention.kernels.torch.common.limits import needs_positive_scale
from attention.problem import AttentionProblem
from attention.variant import FEW_QUERIES

SHORT = 512  # queries and keys, at most
OF_FEATURES = ("softcap", "ALiBi", "attention sinks", "sliding window", "bool mask", "float mask")


@dataclass(frozen=True)
class Frequent:
    """One class: its key, the problem that stands for it, and how often its calls were recorded; 0 for a named one."""

    key: str
    posed: Posed
    calls: int = 0


@dataclass(frozen=True)
class Found:
    """The classes, and of calls that cannot be timed a sentence each, without a full stop."""

    classes: tuple[Frequent, ...]
    left_out: tuple[str, ...] = ()


def classes_of(named: Iterable[Posed], recorded: Mapping[RecordedCall, int]) -> Found:
    """Named problems first, as they stand; then the classes of recorded ones, each by its most frequent problem."""
    found: dict[str, Frequent] = {}
    for each in named:
        key = key_of(each.problem)
        found.setdefault(key, Frequent(key, each))
    problems: Counter[AttentionProblem] = Counter()
    for call, count in recorded.items():
        problems[replace(call.problem.on("cuda"), enable_gqa=True)] += count
    calls: Counter[str] = Counter()
    stand_for: dict[str, Posed] = {}
    left_out: list[str] = []
    for problem, count in problems.most_common():
        try:
            posed = posed_of(problem)
        except UnsupportedError as error:
            left_out.append(f"{problem}: {error}")
            continue
        key = key_of(problem)
        calls[key] += count
        stand_for.setdefault(key, posed)
    for key, count in calls.most_common():
        found[key] = Frequent(key, found[key].posed if key in found else stand_for[key], count)
    return Found(tuple(found.values()), tuple(left_out))


def posed_of(problem: AttentionProblem) -> Posed:
    """A recorded problem with lengths of its own. Raises UnsupportedError, which says why it cannot be timed."""
    if problem.dropout_p > 0:
        raise UnsupportedError("dropout is torch's alone")
    if reason := needs_positive_scale(problem):
        raise UnsupportedError(f"every kernel {reason}")
    if problem.window != (-1, -1) and problem.alignment == "top_left" and problem.seq_q != problem.seq_kv:
        raise UnsupportedError("no oracle is set up for a window that begins top-left")
    if problem.varlen:
        return _packed(problem)
    return Posed(kind_of(problem), problem, used=(problem.seq_kv,) * problem.batch if problem.ranges else ())


def _packed(problem: AttentionProblem) -> Posed:
    if problem.ranges:
        raise UnsupportedError("packed sequences that use a part of their rows are not set up")
    if (problem.seq_q, problem.tokens_q) != (problem.seq_kv, problem.tokens_kv):
        raise UnsupportedError("packed sequences with other lengths of keys than of queries are not set up")
    longest = min(problem.seq_q, problem.tokens_q)
    others, rest = problem.batch - 1, min(problem.tokens_q - longest, (problem.batch - 1) * longest)
    each = [rest // others + (number < rest % others) for number in range(others)]
    lengths = (longest, *each)
    sizes: dict[str, Any] = {"seq_q": longest, "seq_kv": longest, "tokens_q": sum(lengths), "tokens_kv": sum(lengths)}
    return Posed("packed", replace(problem, **sizes), lengths)


def kind_of(problem: AttentionProblem) -> Class:
    """The class of a problem whose sequences are not packed."""
    if any(word in OF_FEATURES for word in problem.features):
        return "features"
    if problem.seq_q <= FEW_QUERIES:
        return "decode"
    return "short" if max(problem.seq_q, problem.seq_kv) <= SHORT else "prefill"
