"""Our kernels on a GPU that nobody measured here, by published constants: a ranking that decides nothing.

Every legal configuration is predicted by the same model as elsewhere, with no timing to correct it: its times are the
least that the terms allow. Where no source gives a constant that a prediction needs, there is none, and the constants
are named; the other terms then still say what the kernel takes at least.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from attention.choose.candidates import Candidate, legal
from attention.choose.explain_tables import ConstantUsed
from attention.choose.model import Prediction, Unpredicted, predict
from attention.choose.published_speed import PublishedSpeed, speed
from attention.choose.published_torch import BesideTorch, beside_torch
from attention.problem import AttentionProblem
from attention.variant import MEMORY, Config, Demand, Tile, Variant, by_path, shipped
from microbench.machine.arch import by_name
from microbench.published.kinds import SM_CLOCK
from microbench.results.profile import Profile

OURS = "smscope"
PER_CLOCK = ("_per_clk_sm", "_cycles")


@dataclass(frozen=True)
class Foreseen:
    """One legal configuration: its prediction, or the `absent` constants for whose sake there is none.

    at_least    what the known terms alone take, where a constant is absent
    """

    variant: str
    config: Config
    prediction: Prediction | None
    unpredicted: str | None = None
    absent: tuple[str, ...] = ()
    at_least: Prediction | None = None

    @property
    def known(self) -> Prediction | None:
        """The prediction, or else the part of it that is known."""
        return self.prediction or self.at_least


@dataclass(frozen=True)
class PublishedRanking:
    """Our configurations, the fastest first, the constants behind the first, and its speed beside torch's.

    `modelled` are torch's kernels that the same constants predict; `without` says why ours have no configuration;
    `speed` is of the first.
    """

    kind: str
    board: str
    candidates: tuple[Foreseen, ...]
    constants: tuple[ConstantUsed, ...]
    beside_torch: BesideTorch
    modelled: tuple[Foreseen, ...] = ()
    without: str | None = None
    speed: PublishedSpeed | None = None


def ranking(
    profile: Profile,
    problem: AttentionProblem,
    torchs: Sequence[Candidate],
    *,
    passes: str = "forward",
    variants: tuple[Variant, ...] | None = None,
) -> PublishedRanking:
    """Rank by a published profile. `torchs` are torch's kernels that serve the problem, the preferred one first."""
    ours = tuple(each for each in (shipped(passes) if variants is None else variants) if each.owner == OURS)
    arch = by_name(profile.arch)
    allowed, refused = legal(problem, arch, ours)
    candidates = tuple(sorted((_foreseen(profile, problem, *each) for each in allowed), key=_order))
    without = None
    if not candidates:
        here = {each.path for each in ours if arch.name in each.archs}
        reasons = dict.fromkeys(f"{each.variant} {each.reason}" for each in refused if each.variant in here)
        without = "; ".join(reasons) or f"smscope has no {passes} kernel for {arch.name} yet"
    forward = passes == "forward" and problem.dtype in ("float16", "bfloat16") and not problem.features
    theirs = (_foreseen(profile, problem, by_path(each.variant), each.config) for each in torchs)
    best = candidates[0] if candidates else None
    terms = best.known.terms if best is not None and best.known is not None else ()
    return PublishedRanking(
        profile.gpu,
        profile.name,
        candidates,
        tuple(_used(profile, name) for name in dict.fromkeys(term.constant for term in terms)),
        beside_torch(profile, problem, (best.variant, best.config, best.prediction) if best else None, torchs),
        tuple(each for each in theirs if each.prediction is not None),
        without,
        speed(profile, problem, best.prediction) if best is not None and best.prediction and forward else None,
    )


def _foreseen(profile: Profile, problem: AttentionProblem, variant: Variant, config: Config) -> Foreseen:
    if variant.tile is None:
        return Foreseen(variant.path, config, None, "nothing is known of the inside of this kernel")
    tile = variant.tile(problem, config)
    absent = _absent(profile, tile)
    try:
        if not absent:
            return Foreseen(variant.path, config, predict(profile, problem, variant, config))
        missing = f"no source gives {' or '.join(absent)} of {profile.gpu}"
        known = replace(tile, demands=_known(tile.demands, absent), edge=_known(tile.edge, absent))
        at_least = None
        if known.demands or known.edge:
            at_least = predict(profile, problem, replace(variant, tile=lambda *_: known), config)
        return Foreseen(variant.path, config, None, missing, absent, at_least)
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


def _order(each: Foreseen) -> tuple[bool, float, str, tuple[int, ...]]:
    seconds = each.known.seconds if each.known else float("inf")
    return each.prediction is None, seconds, each.variant, tuple(value for _, value in each.config.values)


def _used(profile: Profile, name: str) -> ConstantUsed:
    constant = profile[name]
    label = f"{constant.label}, {', '.join(constant.sources or ())}: {constant.basis}"
    return ConstantUsed(name, constant.value, constant.low, constant.high, constant.unit, label)
