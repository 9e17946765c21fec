"""One machine beside another one, constant by constant, and beside the literature."""

from collections.abc import Sequence

from microbench.console import si
from microbench.console.si import counted
from microbench.health.standing import Pair, counts
from microbench.published.verdict import Comparison


def pair_rows(pairs: Sequence[Pair]) -> list[tuple[str, ...]]:
    """One line for each constant: both values in one unit, there over here, what repeats, which is better, the word."""
    return [_row(pair) for pair in pairs]


def _row(pair: Pair) -> tuple[str, ...]:
    like = pair.here if pair.here is not None else pair.there
    by = si.scale(like or 0.0, pair.unit)
    here, there = ("" if value is None else si.digits(value / by.divisor) for value in (pair.here, pair.there))
    ratio = "" if pair.ratio is None else f"{pair.ratio:.3f}"
    return pair.constant, by.unit, here, there, ratio, repeats(pair), pair.better, pair.standing


def repeats(pair: Pair) -> str:
    """How far two measurements may lie apart and be SAME, and whose doing it is where that is not the GPU alone."""
    within = f"{pair.tolerance:.0%}"
    return f"{within}, {pair.governed_by}" if pair.governed_by else within


def summary(pairs: Sequence[Pair], here: str, there: str) -> str:
    """How many of each word: 'h200-sxm-141gb against h100-sxm-80gb: 3 SLOWER, 20 FASTER, 52 SAME.'."""
    told = ", ".join(f"{count} {word}" for word, count in counts(pairs).items())
    return f"{there} against {here}: {told or counted(0, 'constant')}."


def published_rows(compared: Sequence[Comparison]) -> list[tuple[str, ...]]:
    """One line for each constant that somebody has published: the range, its best row, and why the verdict is that."""
    lines: list[tuple[str, ...]] = []
    for found in compared:
        if found.published_low is None or found.published_high is None:
            continue
        by = si.scale(found.value, found.unit)
        ours = f"{si.digits(found.value / by.divisor)} {si.interval(found.low, found.high, found.value, found.unit)}"
        low, high = (si.digits(end / by.divisor) for end in (found.published_low, found.published_high))
        span = low if low == high else f"{low} to {high}"
        where = ", ".join(filter(None, (found.gpu, found.source, found.confidence)))
        lines.append((found.constant, by.unit, ours, span, str(found.rows), where, found.verdict, found.why))
    return lines
