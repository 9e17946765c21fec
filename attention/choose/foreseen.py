"""One configuration of ours by published constants: what it takes at least, or which constant no source gives.

The model is the same as elsewhere, with no timing to correct it: its times are the least that the terms allow. Where no
source gives a constant that a prediction needs, there is none, and the constants are named; the other terms then still
say what the kernel takes at least.

Each time is the fast end of an interval, whose slow end is far off (published/band.py). A configuration with a cost
that no constant prices is therefore no match for one without: it follows, whatever its terms say.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from attention.choose.candidates import Candidate
from attention.choose.model import predict
from attention.choose.prediction import Prediction, Unpredicted
from attention.problem import AttentionProblem
from attention.tile import Demand, Tile
from attention.variant import MEMORY, Config, Variant, by_path
from microbench.published.kinds import SM_CLOCK
from microbench.results.profile import Profile

PER_CLOCK = ("_per_clk_sm", "_cycles")


@dataclass(frozen=True)
class Foreseen:
    """One legal configuration: its prediction, or the `absent` constants for whose sake there is none.

    at_least    what the known terms alone take, where a constant is absent
    unpriced    a cost that no term counts, in words
    """

    variant: str
    config: Config
    prediction: Prediction | None
    unpredicted: str | None = None
    absent: tuple[str, ...] = ()
    at_least: Prediction | None = None
    unpriced: str = ""

    @property
    def known(self) -> Prediction | None:
        """The prediction, or else the part of it that is known."""
        return self.prediction or self.at_least


def foreseen(profile: Profile, problem: AttentionProblem, variant: Variant, config: Config) -> Foreseen:
    if variant.tile is None:
        return Foreseen(variant.path, config, None, "nothing is known of the inside of this kernel")
    tile = variant.tile(problem, config)
    absent = _absent(profile, tile)
    try:
        if not absent:
            prediction = predict(profile, problem, variant, config)
            return Foreseen(variant.path, config, prediction, unpriced=tile.unpriced)
        missing = f"no source gives {' or '.join(absent)} of {profile.gpu}"
        known = replace(tile, demands=_known(tile.demands, absent), edge=_known(tile.edge, absent))
        at_least = None
        if known.demands or known.edge:
            at_least = predict(profile, problem, replace(variant, tile=lambda *_: known, residents=None), config)
        return Foreseen(variant.path, config, None, missing, absent, at_least, tile.unpriced)
    except Unpredicted as reason:  # its sources disagree by too much
        return Foreseen(variant.path, config, None, str(reason), (reason.doubtful,) if reason.doubtful else ())


def _absent(profile: Profile, tile: Tile) -> tuple[str, ...]:
    """The constants that this tile asks for and the profile lacks."""
    needed = [_constant(each) for each in (*tile.demands, *tile.edge)]
    if any(name.endswith(PER_CLOCK) for name in needed):
        needed.append(SM_CLOCK)
    return tuple(dict.fromkeys(name for name in needed if name not in profile))


def _known(demands: tuple[Demand, ...], absent: tuple[str, ...]) -> tuple[Demand, ...]:
    unclocked = PER_CLOCK if SM_CLOCK in absent else ()
    names = ((each, _constant(each)) for each in demands)
    return tuple(each for each, name in names if name not in absent and not name.endswith(tuple(unclocked)))


def _constant(demand: Demand) -> str:
    return "dram_bandwidth_bytes_per_s" if demand.rate == MEMORY else demand.rate


def order(each: Foreseen) -> tuple[bool, bool, float, float, str, tuple[int, ...]]:
    """Fastest first, behind all others what has an unpriced cost; of equals the one with the least work to hide.

    Beyond that the model cannot tell.
    """
    return each.prediction is None, *judged(each), each.variant, tuple(value for _, value in each.config.values)


def judged(each: Foreseen) -> tuple[bool, float, float]:
    """All that the model has to say of a configuration: whether a cost is unpriced, seconds, and those of all terms."""
    seconds = (each.known.seconds, each.known.unhidden_seconds) if each.known else (float("inf"), float("inf"))
    return bool(each.unpriced), *seconds


def ranks(ordered: Sequence[Foreseen]) -> tuple[str, ...]:
    """The place of each, '1=' where it shares it with others of which the model says the same."""
    told = [judged(each) for each in ordered]
    return tuple(f"{told.index(each) + 1}{'=' if told.count(each) > 1 else ''}" for each in told)


def reordered(ordered: tuple[Candidate, ...], problem: AttentionProblem, published: Profile) -> tuple[Candidate, ...]:
    """The same candidates, those of ours that nothing else predicts in the order of published constants."""
    ours = [at for at, each in enumerate(ordered) if each.owner == "smscope" and each.prediction is None]
    fastest = sorted(ours, key=lambda at: order(_of(ordered[at], problem, published)))
    moved = dict(zip(ours, (ordered[at] for at in fastest), strict=True))
    return tuple(moved.get(at, each) for at, each in enumerate(ordered))


def _of(candidate: Candidate, problem: AttentionProblem, published: Profile) -> Foreseen:
    return foreseen(published, problem, by_path(candidate.variant), candidate.config)
