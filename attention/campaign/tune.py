"""What `smscope tune` times of each class, and the line that it keeps: attention.choose.tunings_file.

The timer is the campaigns': every candidate is checked by the oracle, captured, and timed in turns with the others.
"""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from attention.campaign.plan import SLOW_FLOPS_PER_S, Job
from attention.campaign.recorded_classes import Frequent
from attention.campaign.rows import TileTiming
from attention.choose import learned, learned_key
from attention.choose.candidates import Candidate
from attention.choose.classes import representative
from attention.choose.contenders import Contenders, contenders
from attention.choose.here import Here
from attention.choose.tunings_file import TEXT_DIGITS, Line, TimedCandidate
from attention.compare.candidates import memory_efficient, of_torch
from attention.errors import UnsupportedError
from attention.problem import AttentionProblem
from attention.timed.timing import PEER
from attention.variant import by_path
from microbench.machine.stamp import Commit
from microbench.results.profile import Profile


@dataclass(frozen=True)
class Tuned:
    """A class, what is timed of it, and what a call of it runs before that."""

    of: Frequent
    job: Job
    was: Candidate

    @property
    def seed(self) -> str:
        """Of the order of its candidates."""
        return f"tune {self.job.posed}"


def jobs(classes: Iterable[Frequent], profile: Profile) -> tuple[tuple[Tuned, ...], tuple[str, ...]]:
    """What is timed of each class, in their order; and of those that leave nothing to decide a sentence each."""
    found: list[Tuned] = []
    left_out: list[str] = []
    for each in classes:
        who = contenders(profile, each.posed.problem)
        if len(who.every) > 1 and who.ours:
            found.append(_tuned(each, who, profile))
        else:
            served = f"{who.every[0].variant} alone serves it" if len(who.every) == 1 else "no kernel of ours serves it"
            left_out.append(f"{each.posed}: {served}")
    return tuple(found), tuple(left_out)


def pick_of(profile: Profile, problem: AttentionProblem) -> Candidate:
    """What a call runs, as attention.sdpa chooses. Raises UnsupportedError."""
    with suppress(UnsupportedError):
        return learned.choice_on(profile, representative(problem)).pick
    return learned.choice_on(profile, problem).pick


def _tuned(frequent: Frequent, who: Contenders, profile: Profile) -> Tuned:
    was = pick_of(profile, frequent.posed.problem)
    ours = tuple(dict.fromkeys((*([was] if was.owner == "smscope" else []), *who.ours)))
    tiles = tuple((by_path(each.variant), each.config) for each in ours)
    names = {f"{PEER}{each.variant.rpartition('/')[2]}" for each in who.torchs}
    peers = tuple(each for each in (*of_torch(), memory_efficient()) if each.name in names)
    slow = frequent.posed.flops / SLOW_FLOPS_PER_S
    seconds = sum(each.prediction.seconds if each.prediction else slow for each in (*ours, *who.torchs))
    return Tuned(frequent, Job(frequent.posed, tiles, seconds, profile.arch, peers=peers), was)


def line_of(
    tuned: Tuned, here: Here, timed: tuple[TileTiming, ...], flags: tuple[str, ...], wall_s: float, commit: Commit
) -> Line:
    """What is kept of a class that was timed."""
    texts = learned_key.texts()
    posed = tuned.job.posed
    return Line(
        key=tuned.of.key,
        gpu=here.gpu,
        driver=here.driver,
        torch=here.torch,
        texts={path: texts[path][:TEXT_DIGITS] for path in dict.fromkeys(each.path for each, _ in tuned.job.tiles)},
        problem=posed.problem,
        lengths=posed.lengths,
        used=posed.used,
        calls=tuned.of.calls,
        measured_utc=datetime.now(UTC).isoformat(timespec="seconds"),
        wall_s=round(wall_s, 3),
        seed=tuned.seed,
        commit=commit.sha,
        dirty=commit.dirty,
        flags=flags,
        candidates=tuple(map(_kept, timed)),
    )


def _kept(each: TileTiming) -> TimedCandidate:
    return TimedCandidate.model_validate(each.model_dump(exclude={"picked", "names", "eager_seconds"}))
