"""Who chooses: the model by one set of constants or another, timings of other problems, and tables that know no GPU.

Each is a function of a problem and of what was timed of it, and gives one of these configurations.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from attention.campaign.posed import Posed
from attention.campaign.regret import Chooser, Judged, Pick, Predictor
from attention.choose.calibration import Sample, calibrated
from attention.choose.candidates import Candidate, predicted, preference, ties
from attention.choose.corrections import Corrections
from attention.choose.model import predict
from attention.choose.prediction import Unpredicted
from attention.variant import Config, Variant, by_path
from microbench.errors import DataError
from microbench.machine.arch import by_name
from microbench.results.profile import Profile

NO_TIMINGS = Corrections()
# FlashAttention-4's forward on sm_90: the largest head dim, rows, keys full, causal, under a window
# (flash_attn/cute/interface.py, _tile_size_fwd_sm90, of github.com/Dao-AILab/flash-attention@5835c733).
FLASH_ATTENTION_4 = (
    *((64, 192, 128, 128, 128), (96, 192, 144, 128, 128), (128, 128, 128, 128, 128)),
    *((192, 128, 112, 112, 96), (256, 128, 80, 80, 64)),
)


def by_constants(profile: Profile, timings: Corrections = NO_TIMINGS) -> Chooser:
    """The model's pick, tie band and all, by the constants of a profile; with `timings`, by those too.

    Not of kernels that others outdo on the architecture of the newest, whosever constants these are.
    """

    def choose(posed: Posed, picks: Sequence[Pick]) -> Pick:
        every = [(by_path(path), config) for path, config in picks]
        arch = by_name(max((variant for variant, _ in every), key=_generation).archs[0])
        tiles = [each for each in every if not each[0].outdone(posed.problem, arch)] or every
        found = min(
            ties(predicted(profile, posed.problem, tiles, timings, posed.counted, posed.l2_written)), key=preference
        )
        return found.variant, found.config

    return choose


def predictor(profile: Profile, timings: Corrections = NO_TIMINGS) -> Predictor:
    """The seconds that the model predicts; None where it predicts none."""

    def of(posed: Posed, pick: Pick) -> float | None:
        path, config = pick
        variant = by_path(path)
        try:
            timed = timings.nearest(variant, config, posed.problem)
            return predict(profile, posed.problem, variant, config, timed, posed.counted, posed.l2_written).seconds
        except Unpredicted:
            return None

    return of


@dataclass(frozen=True)
class Timings:
    """What was timed, as the model learns from it: a sample for each configuration of each problem."""

    of: tuple[tuple[Posed, tuple[Sample, ...]], ...]

    def without(self, alike: Callable[[Posed], bool]) -> Corrections:
        """What all problems teach but those."""
        return calibrated(sample for posed, samples in self.of if not alike(posed) for sample in samples)


def timings_of(profile: Profile, problems: Iterable[Judged]) -> Timings:
    """Every configuration's mean beside the model's own promise."""
    of = predictor(profile)

    def samples(each: Judged) -> Iterable[Sample]:
        for pick in each.picks:
            promised, seconds = of(each.posed, pick), each.mean(pick)
            if promised is not None:
                yield Sample(by_path(pick[0]), pick[1], each.posed.problem, promised, seconds, seconds, seconds)

    return Timings(tuple((each.posed, tuple(samples(each))) for each in problems))


def by_timings(profile: Profile, timings: Timings, alike: Callable[[Posed, Posed], bool]) -> Chooser:
    """The model corrected by the timings of every problem that is not `alike` the one that is asked."""
    kept: dict[frozenset[int], Chooser] = {}  # problems of one head dim leave the same ones out

    def choose(posed: Posed, picks: Sequence[Pick]) -> Pick:
        out = frozenset(at for at, (other, _) in enumerate(timings.of) if alike(posed, other))
        if out not in kept:
            kept[out] = by_constants(profile, timings.without(lambda other: alike(posed, other)))
        return kept[out](posed, picks)

    return choose


def twins(one: Posed, other: Posed) -> bool:
    """Whether they differ in dtype or grouping of heads at most."""
    return one.twin == other.twin


def of_one_head_dim(one: Posed, other: Posed) -> bool:
    return one.problem.head_dim == other.problem.head_dim


def flash_attention_4(posed: Posed, picks: Sequence[Pick]) -> Pick:
    """The legal tile nearest to FlashAttention-4's, of the newest architecture's kernel among those."""
    problem = posed.problem
    row = next(row for row in FLASH_ATTENTION_4 if problem.head_dim <= row[0])
    rows, keys = row[1], row[4 if problem.edges.left is not None else 3 if problem.edges.right is not None else 2]

    def distance(pick: Pick) -> tuple[object, ...]:
        variant = by_path(pick[0])
        tile = _tile(variant, posed, pick[1])
        sizes = tuple(value for _, value in pick[1].values)
        off = abs(math.log2(tile[0] / rows)), abs(tile[1] - keys)
        # Its scores are of Q in shared memory, as ours are with an axis of 0.
        return -_generation(variant), off, sizes

    return min(picks, key=distance)


def one_tile_each(problems: Iterable[Judged]) -> Chooser:
    """For each (head dim as padded, causal) the tile that loses least in the mean of `problems`: the best in hindsight.

    A tile that is not legal for a problem gives way to the next; a head dim that no problem had, to the nearest one's.
    """
    lost: dict[tuple[int, bool], dict[Pick, list[float]]] = defaultdict(lambda: defaultdict(list))
    for each in problems:
        for pick in each.picks:
            lost[_key(each.posed, pick)][pick].append(each.regret(pick))
    if not lost:
        raise DataError("There is no problem to take the best tile of.")
    most = {key: max(map(len, of.values())) for key, of in lost.items()}

    def choose(posed: Posed, picks: Sequence[Pick]) -> Pick:
        wanted = _key(posed, picks[0])
        key = min(lost, key=lambda each: (each[1] != wanted[1], abs(each[0] - wanted[0]), each))
        of = lost[key]

        def loses(pick: Pick) -> tuple[object, ...]:
            known = of.get(pick, ())
            mean = sum(known) / len(known) if known else math.inf
            # One that few problems could take shows less than one that all could.
            return not known, 2 * len(known) < most[key], mean, pick[0], pick[1].values

        return min(picks, key=loses)

    return choose


def best_in(problems: Iterable[Judged]) -> Chooser:
    """The best of each problem that was timed: a regret of 0 on these, and nothing to say of others."""
    best = {str(each.posed): each.best for each in problems}
    return lambda posed, picks: best[str(posed)]


def used(profile: Profile, problems: Iterable[Judged]) -> tuple[str, ...]:
    """The constants that stand in a term of some prediction, by name."""
    names: set[str] = set()
    for each in problems:
        tiles = [(by_path(path), config) for path, config in each.picks]
        found: Iterable[Candidate] = predicted(profile, each.posed.problem, tiles, NO_TIMINGS, each.posed.counted)
        names |= {name for one in found if one.prediction for term in one.prediction.terms for name in term.constants}
    return tuple(sorted(names))


def _key(posed: Posed, pick: Pick) -> tuple[int, bool]:
    return by_path(pick[0]).pads(posed.problem.head_dim), posed.problem.edges.right is not None


def _tile(variant: Variant, posed: Posed, config: Config) -> tuple[int, int]:
    """Rows and keys."""
    assert variant.tile is not None
    tile = variant.tile(posed.problem, config)
    return tile.rows, tile.columns


def _generation(variant: Variant) -> int:
    return int("".join(filter(str.isdigit, variant.archs[0])))
