"""Set B: problems that nobody has timed, drawn from the hash of the commit that froze the model. A pure function of it.

Some of each class are of what is in no line of set A: a head dim, a pair of features, a class of (queries, keys). Those
are forced, not left to chance, and a draw that had none all the same would be refused.
"""

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from attention.campaign.posed import CLASSES, Class, Posed, posed, written
from attention.errors import ProblemError

COUNTS: dict[Class, int] = {"prefill": 14, "short": 8, "packed": 8, "decode": 10, "features": 8}
HEAD_DIMS = tuple(range(64, 257, 8))
USUAL_DIMS = (64, 96, 128, 192, 256)
HEADS = (1, 2, 4, 8, 16, 32)
GROUPS = (1, 1, 2, 4, 8)
# A configuration takes up to 10 ms of an H200, and its outputs, of all configurations at once, fit 80 GB.
MOST_FLOPS, MOST_BYTES = 3e12, 1 << 31
# Pairs that a model may pose, and no problem of set A does. Packed sequences have neither a mask nor slopes of a batch.
PAIRS = tuple(
    pair
    for pair in combinations(("window", "softcap", "mask", "alibi", "sinks", "packed"), 2)
    if pair not in (("mask", "packed"), ("alibi", "packed"))
)
# (queries, keys) of a chunk behind a cache, of cross attention, and of a draft on a short prompt.
RECTANGLES = (("short", "medium"), ("short", "long"), ("medium", "long"), ("long", "medium"), ("medium", "short"))
SPANS = {"one": (1, 1), "few": (2, 128), "short": (129, 512), "medium": (513, 4096), "long": (4097, 32768)}


@dataclass(frozen=True)
class New:
    """What a set has that another has in no problem."""

    head_dims: frozenset[int]
    pairs: frozenset[frozenset[str]]
    sizes: frozenset[tuple[str, str]]

    @property
    def lacks(self) -> str:
        """What is missing of two head dims, one pair of features and one class of (queries, keys); '' where nothing."""
        missing = (
            "two head dims" if len(self.head_dims) < 2 else "",
            "" if self.pairs else "a pair of features",
            "" if self.sizes else "a class of (queries, keys)",
        )
        return ", ".join(filter(None, missing))


def new_in(these: Iterable[Posed], others: Iterable[Posed]) -> New:
    """What is in some of these and in none of the others."""
    mine, theirs = _held(these), _held(others)
    return New(mine.head_dims - theirs.head_dims, mine.pairs - theirs.pairs, mine.sizes - theirs.sizes)


def drawn(commit: str, set_a: Sequence[Posed]) -> tuple[Posed, ...]:
    """Set B of a commit, by its full hash: as many of each class as COUNTS says, none of them in set A.

    Raises ProblemError where set A leaves nothing new to draw.
    """
    rng, known = random.Random(commit), _held(set_a)
    dims = [dim for dim in HEAD_DIMS if dim not in known.head_dims]
    pairs = [pair for pair in PAIRS if frozenset(pair) not in known.pairs]
    rectangles = [sizes for sizes in RECTANGLES if sizes not in known.sizes]
    if len(dims) < 2 or not pairs or not rectangles:
        raise ProblemError("set A holds so much that a draw has no new head dims, pairs of features or rectangles.")
    fresh = _Fresh(tuple(rng.sample(dims, 3)), tuple(rng.sample(pairs, 2)), tuple(rng.sample(rectangles, 2)))
    found: dict[str, Posed] = {}
    taken = {str(each) for each in set_a}
    for kind in CLASSES:
        for number in range(COUNTS[kind]):
            problem = next(each for each in _attempts(rng, kind, number, fresh) if str(each) not in taken)
            taken.add(str(problem))
            found[str(problem)] = problem
    missing = new_in(found.values(), set_a).lacks
    if missing:
        raise ProblemError(f"the draw of {commit} holds nothing new in {missing}.")
    return tuple(found.values())


@dataclass(frozen=True)
class _Fresh:
    """What a draw takes beside the usual."""

    dims: tuple[int, ...]
    pairs: tuple[tuple[str, str], ...]
    rectangles: tuple[tuple[str, str], ...]


def _held(problems: Iterable[Posed]) -> New:
    problems = tuple(problems)
    return New(
        frozenset(each.problem.head_dim for each in problems),
        frozenset(frozenset(pair) for each in problems for pair in combinations(sorted(each.features), 2)),
        frozenset(each.sizes for each in problems),
    )


def _attempts(rng: random.Random, kind: Class, number: int, fresh: _Fresh) -> Iterator[Posed]:
    """Problems of a class, without end, of which none is too large.

    No kernel is asked whether it serves them: the draw must come out the same in a later tree.
    """
    while True:
        try:
            found = _one(rng, kind, number, fresh)
        except ProblemError:
            continue
        if found.flops <= MOST_FLOPS and bytes_of(found) <= MOST_BYTES:
            yield found


def bytes_of(found: Posed) -> int:
    problem = found.problem
    rows, keys = (problem.tokens_q, problem.tokens_kv) if found.lengths else (problem.seq_q, problem.seq_kv)
    batch = 1 if found.lengths else problem.batch
    elements = batch * 2 * (problem.heads_q * rows + problem.heads_kv * keys) * problem.head_dim
    mask = int(rows * keys) if problem.mask != "none" else 0
    return int(elements * problem.element_bytes) + mask


def _one(rng: random.Random, kind: Class, number: int, fresh: _Fresh) -> Posed:
    """The first of a class have one of each that is fresh, and others meet it by chance."""
    dim = fresh.dims[number] if number < len(fresh.dims) else rng.choice(rng.choice((USUAL_DIMS, HEAD_DIMS)))
    heads_kv = rng.choice(HEADS)
    heads_q = heads_kv * rng.choice(GROUPS)
    dtype, causal = rng.choice(("bf16", "bf16", "f16")), rng.choice((["causal"], []))
    batch = 1 << rng.randrange(0, 8)
    if kind == "packed":
        words = [*causal, *_words(rng, _pair_with_packed(fresh) if number == 0 else ())]
        lengths = _lengths(rng)
        return posed(kind, (0, heads_q, heads_kv, 0, 0, dim), dtype, [*words, f"lengths={written(lengths)}"])
    queries = keys = 0
    if kind == "decode":
        queries, keys = rng.choice((1, 1, rng.randint(2, 128))), size_between(rng, 512, 65536)
        causal = []
    elif kind == "short":
        queries = keys = rng.randint(64, 512)
    elif kind == "prefill" and number < len(fresh.rectangles):
        queries, keys = (size_between(rng, *SPANS[size]) for size in fresh.rectangles[number])
        causal = causal if queries <= keys else []
    else:
        queries = keys = size_between(rng, 513, 32768)
    words = list(causal)
    if kind == "features":
        pair = fresh.pairs[number] if number < len(fresh.pairs) else rng.choice((rng.sample(PAIRS, 1)[0], ("",)))
        asked = tuple(each for each in pair if each != "packed")
        words += _words(rng, asked if any(asked) else (rng.choice(("window", "softcap", "mask", "alibi", "sinks")),))
        if "packed" in pair:
            words.append(f"lengths={written(_lengths(rng))}")
    return posed(kind, (batch, heads_q, heads_kv, queries, keys, dim), dtype, words)


def _pair_with_packed(fresh: _Fresh) -> tuple[str, ...]:
    """What goes with packed sequences in a fresh pair."""
    return tuple(name for pair in fresh.pairs if "packed" in pair for name in pair if name != "packed")[:1]


def _words(rng: random.Random, features: Iterable[str]) -> list[str]:
    values = {"window": f"window={size_between(rng, 64, 4096)}", "softcap": f"softcap={rng.choice((15, 20, 30, 50))}"}
    return [values.get(name, name) for name in features if name]


def size_between(rng: random.Random, low: int, high: int) -> int:
    """A size, every octave as likely; half of them whole tiles."""
    found: int = round(low * (high / low) ** rng.random())
    step: int = rng.choice((1, min(128, max(1, high // 8))))
    return max(low, min(high, found // step * step))


def _lengths(rng: random.Random) -> tuple[int, ...]:
    """Lengths of packed sequences: all alike, each its own, or one that is far longer than the others."""
    count, even = rng.choice((4, 8, 16, 32, 64)), size_between(rng, 128, 2048)
    how = rng.choice(("even", "drawn", "skewed"))
    if how == "even":
        return (even,) * count
    if how == "skewed":
        return (size_between(rng, 4096, 16384), *(size_between(rng, 64, 256),) * (4 * count))
    return tuple(size_between(rng, 64, 4096) for _ in range(count))
