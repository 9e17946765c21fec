"""Which configurations can serve a problem, how fast each is predicted to be, and which of them are equals."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import Annotated, NamedTuple

from pydantic import PlainSerializer

from attention.choose.corrections import Corrections
from attention.choose.floor import floors
from attention.choose.lengths import UNKNOWN, Lengths
from attention.choose.model import predict
from attention.choose.prediction import Efficiency, Prediction, Unpredicted
from attention.forwarded import Wanted
from attention.problem import AttentionProblem
from attention.variant import Config, Owner, Variant, shipped
from microbench.machine.arch import Arch
from microbench.results.profile import Profile

KEY_SPLITS = "key_splits"  # the axis of a kernel whose blocks may share keys
# Predictions this close are equal, and what relies least on overlap goes first. Of a quarter, a half, 1 and 2 % a half
# loses least on 21 sets b of an H200, among all kernels and each architecture's; of 2,190 calls of sets of use 22 to
# 32 96.4 % are within 3 % of the best, and by 1 % 96.2.
TIE_BAND = 0.005
# Torch's seconds are off by 6 to 10 % in the mean, as little is known of its inside, and ours by 5 % (corrections.py).
# A wrong pick of torch's costs up to half of a short call, and the host three times ours. Of 3,789 calls of use 22 to
# 41 (H200, each set by the timings of others) 6 are below 0.9 of the best with 0.15, 5 with 0.25 and with 0.4; 97.0 %
# are within 3 % with any. Of the 800 problems of use 4 to 7 (H100) 6 are below with 0.15, 7 with 0.2, and 9 without.
DOUBT_OF_TORCH = 0.25


@dataclass(frozen=True)
class Candidate:
    """One legal configuration; `prediction` is None where the profile does not suffice, and `unpredicted` says why.

    `doubtful` is the constant that it would have to be predicted by, where that one is in doubt.
    """

    variant: str  # its folder under kernels/
    owner: Owner
    config: Config
    prediction: Prediction | None
    unpredicted: str | None = None
    doubtful: str | None = None


class Refusal(NamedTuple):  # like Term: a choice makes seventy
    """A variant, or some of its configurations, that cannot serve, and the reason."""

    variant: str
    config: Config | None
    reason: str


Refusals = tuple[Annotated[Refusal, PlainSerializer(Refusal._asdict)], ...]
Timed = tuple[Variant, Config, Efficiency | None]  # what can serve, and what timings say of it
Judged = tuple[tuple[float, float, str, tuple[int, ...]], Candidate]  # by what candidates are sorted


def legal(
    problem: AttentionProblem,
    arch: Arch,
    variants: tuple[Variant, ...],
    only: str | None = None,
    withheld: tuple[Refusal, ...] = (),
    outdone: bool = False,
) -> tuple[list[tuple[Variant, Config]], tuple[Refusal, ...]]:
    """Every (variant, configuration) that can serve, and every refusal with its reason.

    Not those of kernels that others of ours outdo, unless `only` names them; with `outdone` those too.
    """
    allowed: list[tuple[Variant, Config]] = []
    refused: list[Refusal] = []
    left_out = {each.variant: each.reason for each in withheld}
    behind: dict[str, str] = {}
    for variant in variants:
        reason = _outside(variant, arch, only) or variant.refusal(problem, arch) or left_out.get(variant.path)
        if reason:
            refused.append(Refusal(variant.path, None, reason))
            continue
        if not outdone and only != variant.name and (why := variant.outdone(problem, arch)):
            behind[variant.path] = why
        lasting = variant.lasting
        stands = lasting.stands_for(problem) if lasting else None
        launched, rest = (variant.launch_of(problem), lasting.rest) if lasting else (problem, variant.illegal)
        ever, never = _by_kind(variant, stands, arch)
        refused += never
        for config in ever:
            if rest and (against := rest(launched, config, arch)):
                refused.append(Refusal(variant.path, config, against))
            else:
                allowed.append((variant, config))
    ahead = [each for each in allowed if each[0].path not in behind] if behind else []
    if not any(variant.owner == "smscope" and variant.fused for variant, _ in ahead):
        return allowed, tuple(refused)
    return ahead, (*refused, *(Refusal(path, None, why) for path, why in behind.items()))


def predicted(
    profile: Profile,
    problem: AttentionProblem,
    candidates: list[tuple[Variant, Config]],
    efficiencies: Corrections,
    lengths: Lengths = UNKNOWN,
    l2_written: bool = False,
) -> tuple[Candidate, ...]:
    """Candidates with their predictions, fastest first; those without one last, in the order of their rank."""
    asked = [
        (variant, config, timed)
        for variant, configs in _by_variant(candidates)
        for config, timed in zip(configs, efficiencies.of_each(variant, configs, problem), strict=True)
    ]
    return _fastest_first([_judged(profile, problem, each, lengths, l2_written) for each in asked])


def leading(
    profile: Profile,
    problem: AttentionProblem,
    candidates: list[tuple[Variant, Config]],
    efficiencies: Corrections,
    lengths: Lengths = UNKNOWN,
) -> tuple[tuple[Candidate, ...], Callable[[], tuple[Candidate, ...]]]:
    """Torch's candidates, and those of ours that may be picked or tie; and how to ask for all, as predicted() has them.

    Left out is what by its floor lies beyond the tie band of one of ours, or beyond that and DOUBT_OF_TORCH of torch's:
    neither ties() nor rather_ours() tells whether it was there. Torch's are all predicted, as unjudged() asks for them,
    and then the lowest floors, so that there soon is a fast one.
    """
    waiting: list[tuple[float, Timed]] = []
    for variant, configs in _by_variant(candidates):
        ours = variant.owner == "smscope"
        least = floors(profile, problem, variant, configs, lengths) if ours else [0.0] * len(configs)
        for floor, config, timed in zip(least, configs, efficiencies.of_each(variant, configs, problem), strict=True):
            corrected = floor / timed.value + timed.overhead_seconds if floor and timed else floor
            waiting.append((corrected, (variant, config, timed)))
    waiting.sort(key=itemgetter(0))
    judged: list[Judged] = []
    limit = math.inf
    for floor, each in waiting:
        if floor > limit:
            break
        (seconds, *_), candidate = found = _judged(profile, problem, each, lengths)
        judged.append(found)
        doubt = 0.0 if candidate.owner == "smscope" else DOUBT_OF_TORCH
        limit = min(limit, seconds * (1 + doubt) * (1 + TIE_BAND))

    def every() -> tuple[Candidate, ...]:
        others = [_judged(profile, problem, each, lengths) for _, each in waiting[len(judged) :]]
        return _fastest_first([*judged, *others])

    return _fastest_first(judged), every


def _by_variant(candidates: list[tuple[Variant, Config]]) -> Iterator[tuple[Variant, tuple[Config, ...]]]:
    for _, pairs in groupby(candidates, key=lambda pair: pair[0].path):
        variants, configs = zip(*pairs, strict=True)
        yield variants[0], configs


def _judged(
    profile: Profile, problem: AttentionProblem, each: Timed, lengths: Lengths, l2_written: bool = False
) -> Judged:
    variant, config, timed = each
    path = variant.path
    try:
        prediction = predict(profile, problem, variant, config, timed, lengths, l2_written)
    except Unpredicted as reason:
        candidate = Candidate(path, variant.owner, config, None, str(reason), reason.doubtful)
        return (math.inf, variant.rank, path, config.sizes), candidate
    return (prediction.seconds, 0, path, config.sizes), Candidate(path, variant.owner, config, prediction)


def _fastest_first(judged: list[Judged]) -> tuple[Candidate, ...]:
    return tuple(candidate for _, candidate in sorted(judged, key=itemgetter(0)))


def ties(ordered: tuple[Candidate, ...]) -> tuple[Candidate, ...]:
    """The candidates whose predictions lie within TIE_BAND of the fastest; the first alone where none is predicted."""
    fastest = ordered[0].prediction
    if fastest is None:
        return ordered[:1]
    limit = fastest.seconds * (1 + TIE_BAND)
    return tuple(each for each in ordered if each.prediction is not None and each.prediction.seconds <= limit)


def rather_ours(ordered: tuple[Candidate, ...]) -> tuple[Candidate, ...]:
    """Without torch's, where one of ours is predicted to take no more than DOUBT_OF_TORCH longer than the fastest."""
    ours = tuple(each for each in ordered if each.owner == "smscope")
    if not ours or ours[0].prediction is None or ordered[0].prediction is None:
        return ordered
    near = ours[0].prediction.seconds <= ordered[0].prediction.seconds * (1 + DOUBT_OF_TORCH)
    return ours if near else ordered


def preference(candidate: Candidate) -> tuple[int, bool, int, float, str, tuple[int, ...]]:
    """Among equals what was timed near the problem goes first, the fastest of it; then what was timed at all.

    Of others our own goes before torch's, and what relies least on overlap to hide its work. Of any two, a row's keys
    are rather shared by fewer blocks: what bringing their parts together takes is hidden only while memory is busy.
    """
    shared = max((size for axis, size in candidate.config.values if axis == KEY_SPLITS), default=1)
    sizes = tuple(size for _, size in candidate.config.values)
    found = candidate.prediction
    if found is not None and found.efficiency.near:
        return 0, False, shared, found.seconds, candidate.variant, sizes
    timed = found is not None and found.efficiency.timings > 0
    work = found.unhidden_seconds if found else 0.0
    return 1 if timed else 2, candidate.owner != "smscope", shared, work, candidate.variant, sizes


def unjudged(ordered: tuple[Candidate, ...]) -> tuple[Candidate, ...]:
    """Torch's first kernel alone, where constants in doubt leave none of torch's predicted; else none.

    Ours would win such a race for want of a rival, and the constant in doubt would have chosen it.
    """
    torchs = [each for each in ordered if each.owner == "torch"]
    doubted = [each for each in torchs if each.doubtful]
    return () if any(each.prediction for each in torchs) else tuple(doubted[:1])


def withheld_from(wanted: Wanted, passes: str, arch: str) -> tuple[Refusal, ...]:
    """The variants of a pass on an architecture that this process leaves out for such a call, by torch's switches."""
    here = (variant for variant in shipped(passes) if arch in variant.archs)
    return tuple(Refusal(each.path, None, reason) for each in here if (reason := each.withheld(wanted)))


@lru_cache(maxsize=256)
def _by_kind(
    variant: Variant, stands: AttentionProblem | None, arch: Arch
) -> tuple[tuple[Config, ...], tuple[Refusal, ...]]:
    """The configurations that can serve a problem of the kind that one `stands` for, and why others never can."""
    ever, never = [], []
    for config in variant.configs():
        against = variant.lasting.rule(stands, config, arch) if variant.lasting and stands else None
        if against:
            never.append(Refusal(variant.path, config, against))
        else:
            ever.append(config)
    return tuple(ever), tuple(never)


def _outside(variant: Variant, arch: Arch, only: str | None) -> str | None:
    if arch.name not in variant.archs:
        return f"runs on {', '.join(variant.archs)}, not on {arch.name}"
    return None if named(variant, only) else f"left out by only={only!r}"


def named(variant: Variant, only: str | None) -> bool:
    return not only or only in (variant.owner, variant.name, variant.path)
