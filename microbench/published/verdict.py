"""Our constants against the literature (`compare`) and against the bands they must lie in (`accept`).

Which rows speak about a constant is decided by data/published/quantities.csv and by each row's own fields, never by
whether the numbers fit:

    board       a quantity in cycles, bytes or per clock compares over every board of one chip; one that depends on a
                clock or on the memory fitted compares on the same board only
    trust       rows that their own flags disown (facts.UNTRUSTED) decide nothing
    method      rows whose flags say that something else was timed (facts.OTHER_METHOD) give 'method differs' at most
    best row    same board before same chip, then exact before read-from-figure before secondary

The verdict looks at all rows that remain: `agrees` where our interval meets their range, widened by the tolerance of
quantities.csv (5 % for latencies in cycles), `disagrees` where it does not.
"""

import re
from dataclasses import dataclass
from typing import Literal

from microbench.errors import UnknownArch
from microbench.machine.arch import Arch, by_name
from microbench.published import Published, load
from microbench.published.facts import OTHER_METHOD, Band, Fact, Gpu, Quantity
from microbench.published.machines import converted
from microbench.results.profile import Profile
from microbench.results.profile_constant import TWIN_SUFFIX, ProfileConstant

Verdict = Literal["agrees", "disagrees", "method differs", "no published value"]
# After the model, a slug holds the memory (where the source did not say it) and the cut: '-80gb', '-mig-1g.10gb'.
_BOARD = re.compile(r"(-\d+gb)?(?P<cut>-mig-.*)?")
_CONFIDENCE = ("exact", "read-from-figure", "secondary")


@dataclass(frozen=True)
class Comparison:
    """One constant, what was published of it (in our unit), and the verdict; `rows` counts what is behind the range."""

    constant: str
    verdict: Verdict
    value: float
    low: float
    high: float
    unit: str
    published: float | None = None
    published_low: float | None = None
    published_high: float | None = None
    rows: int = 0
    gpu: str = ""
    source: str = ""
    confidence: str = ""
    conditions: str = ""
    flags: tuple[str, ...] = ()
    tolerance: float | None = None
    why: str = ""


@dataclass(frozen=True)
class Acceptance:
    """One band and what was measured; value is None where the profile lacks the constant."""

    constant: str
    verdict: Literal["inside", "outside", "not measured"]
    value: float | None
    low: float | None
    high: float | None
    unit: str
    basis: str


@dataclass(frozen=True)
class Match:
    """A fact that speaks about a constant, in the constant's unit."""

    value: float
    fact: Fact
    rule: Quantity
    other_board: bool

    @property
    def method_differs(self) -> bool:
        """Whether the row's own flags say that something else was timed."""
        return bool(OTHER_METHOD.intersection(self.fact.flags) - {self.rule.needs})

    def rank(self) -> tuple[bool, bool, int, str, float]:
        """Sorts the best row first, and never leaves a tie to chance."""
        trust = _CONFIDENCE.index(self.fact.confidence)
        return self.method_differs, self.other_board, trust, self.fact.source, self.value


def compare(profile: Profile, published: Published | None = None) -> tuple[Comparison, ...]:
    """A verdict for every constant of the profile, in the profile's order. Raises DataError where a table is bad."""
    tables = published or load()
    machine = Place.of(profile, tables)
    facts = tuple(fact for fact in (*tables.facts, *documented(tables)) if fact.trusted)
    return tuple(_compare(c, about(_first_method(c), facts, machine, tables)) for c in profile.constants)


def accept(profile: Profile, published: Published | None = None) -> tuple[Acceptance, ...]:
    """Every band of the profile's machine and what was measured; a band of the board stands for the architecture's."""
    every = [band for band in (published or load()).bands if band.arch == profile.arch and _for_gpu(band, profile)]
    own = {band.constant for band in every if band.gpu}
    return tuple(_accept(band, profile) for band in every if band.gpu or band.constant not in own)


def _for_gpu(band: Band, profile: Profile) -> bool:
    return not band.gpu or f"{profile.gpu}-".startswith(f"{band.gpu}-")


def _accept(band: Band, profile: Profile) -> Acceptance:
    if band.constant not in profile:
        return Acceptance(band.constant, "not measured", None, band.low, band.high, band.unit, band.basis)
    value = profile.value(band.constant)
    inside = (band.low is None or value >= band.low) and (band.high is None or value <= band.high)
    verdict: Literal["inside", "outside"] = "inside" if inside else "outside"
    return Acceptance(band.constant, verdict, value, band.low, band.high, band.unit, band.basis)


@dataclass(frozen=True)
class Place:
    """The profile's place among the published boards; chip is empty where no source knows it."""

    slug: str
    chip: str
    arch: Arch | None
    geforce: bool = False

    @classmethod
    def of(cls, profile: Profile, published: Published) -> "Place":
        try:
            arch = by_name(profile.arch)
        except UnknownArch:
            return cls(profile.gpu, "", None)
        same = [gpu for gpu in published.gpus if gpu.compute_capability == arch.capability]
        named = {gpu.chip for gpu in same if _BOARD.fullmatch(_rest(profile.gpu, gpu.slug))}
        chips = named or {gpu.chip for gpu in same}
        return cls(profile.gpu, chips.pop() if len(chips) == 1 else "", arch, "geforce" in profile.name.lower())

    def is_board(self, gpu: Gpu) -> bool:
        """The same model; a cut of it (MIG) has other bandwidths and is not."""
        board = _BOARD.fullmatch(_rest(self.slug, gpu.slug))
        return board is not None and not board["cut"]


def _rest(slug: str, start: str) -> str:
    """What follows `start` in `slug`; 'no' where it does not start so, or nobody knows how it starts."""
    return slug.removeprefix(start) if start and slug.startswith(start) else "no"


def _first_method(constant: ProfileConstant) -> str:
    """The second method measures the same quantity, so the same rows speak about it."""
    return constant.name.removesuffix(TWIN_SUFFIX) if constant.method == "numba" else constant.name


def _compare(constant: ProfileConstant, matches: list[Match]) -> Comparison:
    ours = (constant.value, constant.low, constant.high, constant.unit)
    if not matches:
        return Comparison(
            constant.name, "no published value", *ours, why="no trustworthy row speaks about this machine"
        )
    best = min(matches, key=Match.rank)
    peers = [match.value for match in matches if match.method_differs == best.method_differs]
    low, high = min(peers), max(peers)
    verdict, why = _judge(constant, best, low, high)
    return Comparison(
        constant.name,
        verdict,
        *ours,
        published=best.value,
        published_low=low,
        published_high=high,
        rows=len(peers),
        gpu=best.fact.gpu,
        source=f"{best.fact.source} {best.fact.locator}".strip(),
        confidence=best.fact.confidence,
        conditions=best.fact.conditions,
        flags=best.fact.flags,
        tolerance=best.rule.tolerance,
        why=why,
    )


def _judge(constant: ProfileConstant, best: Match, low: float, high: float) -> tuple[Verdict, str]:
    tolerance = best.rule.tolerance
    if best.method_differs:
        return "method differs", f"the row's own flags say so: {', '.join(best.fact.flags)}"
    if constant.low > high * (1 + tolerance):
        return "disagrees", f"ours is {constant.low / high - 1:.0%} above the highest published value"
    if constant.high < low * (1 - tolerance):
        return "disagrees", f"ours is {1 - constant.high / low:.0%} below the lowest published value"
    return "agrees", f"our interval meets the published range, widened by {tolerance:.0%}"


def about(name: str, facts: tuple[Fact, ...], machine: Place, published: Published) -> list[Match]:
    """The facts that speak about the constant called `name` on this machine."""
    found = []
    for rule in (rule for rule in published.quantities if rule.constant == name and rule.compared):
        for fact in (fact for fact in facts if fact.quantity == rule.quantity):
            if rule.needs and rule.needs not in fact.flags and rule.needs not in fact.conditions:
                continue
            other_board = _other_board(fact.gpu, machine, published)
            if other_board is None or (other_board and rule.scope == "sku"):
                continue
            if _other_rate(rule, fact.gpu, machine, published):
                continue
            value = converted(fact, rule, published)
            if value is not None:
                found.append(Match(value, fact, rule, other_board))
    return found


def _other_board(gpu_name: str, machine: Place, published: Published) -> bool | None:
    """False: the profile's own board; True: another one of its chip; None: another chip."""
    if machine.arch is None:
        return None
    major, minor = machine.arch.compute_capability
    if gpu_name in (f"compute capability {major}.{minor}", f"compute capability {major}.x"):
        return True
    gpu = published.gpu(gpu_name)
    if gpu is None or not machine.chip or gpu.chip != machine.chip:
        return None
    return not machine.is_board(gpu)


def _other_rate(rule: Quantity, gpu_name: str, machine: Place, published: Published) -> bool:
    """True where the tensor cores of the same chip run at another rate: a GeForce beside a professional board."""
    gpu = published.gpu(gpu_name)
    return "_flops_per_" in rule.constant and gpu is not None and (gpu.line == "GeForce") != machine.geforce


def documented(published: Published) -> tuple[Fact, ...]:
    return tuple(
        Fact(
            gpu=f"compute capability {rate.compute_capability}",
            quantity=f"documented_{rate.operation}",
            unit="thread-inst/clk/SM",
            source=rate.source,
            confidence=rate.confidence,
            value=rate.results_per_clk_sm,
            conditions=rate.note,
            locator=rate.locator,
        )
        for rate in published.rates
    )
