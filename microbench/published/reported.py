"""What others published of our constants, for GPUs that need not have been measured here."""

from collections.abc import Sequence
from dataclasses import dataclass

from microbench.published import Published
from microbench.published.verdict import Match, Place, about, documented

# The unit that a constant's name ends in; the longer ending comes first.
UNITS = {
    "_bytes_per_clk_sm": "B/clk/SM",
    "_flops_per_clk_sm": "FLOP/clk/SM",
    "_per_clk_sm": "results/clk/SM",
    "_bytes_per_s": "B/s",
    "_flops_per_s": "FLOP/s",
    "_cycles": "cycles",
    "_bytes": "bytes",
    "_ns": "ns",
}


@dataclass(frozen=True)
class Reported:
    """The range that trustworthy rows give for one of our constants, in our unit; `source` is of the best row."""

    constant: str
    low: float
    high: float
    unit: str
    rows: int
    source: str


def reported(places: Sequence[Place], published: Published) -> tuple[Reported, ...]:
    """What was published of our constants for these boards, in the order of quantities.csv.

    Rows that timed something else by their own flags are left out.
    """
    facts = tuple(fact for fact in (*published.facts, *documented(published)) if fact.trusted)
    found = []
    for constant in dict.fromkeys(rule.constant for rule in published.quantities):
        every = (match for place in places for match in about(constant, facts, place, published))
        matches = {(match.fact, match.value): match for match in every if not match.method_differs}
        if matches:
            values, best = [value for _, value in matches], min(matches.values(), key=Match.rank)
            unit = next(unit for ending, unit in UNITS.items() if constant.endswith(ending))
            source = f"{best.fact.source} {best.fact.locator}".strip()
            found.append(Reported(constant, min(values), max(values), unit, len(matches), source))
    return tuple(found)
