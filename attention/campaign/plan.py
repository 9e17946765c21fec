"""What a campaign has to time, in which order, and how long that should take by the model's predictions."""

import os
import random
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from attention.campaign.doors import Door
from attention.campaign.posed import Posed
from attention.campaign.rows import ProblemTiming
from attention.choose.candidates import legal, predicted
from attention.choose.corrections import Corrections
from attention.compare.candidates import Candidate
from attention.kernels.launch.source import sources_of
from attention.timed.identity import text_sha256
from attention.variant import Config, Variant, shipped
from microbench.compile import Source, is_kept
from microbench.machine.arch import by_name
from microbench.results.profile import Profile

# Of the host, for the estimate alone: a kernel's compile on one core (sm90a, NVRTC 12.9, 3.2 s here), reading, loading
# and capturing one, the flush and the stamps around a sample, and inputs and oracle of a problem.
COMPILE_S, PREPARE_S, SAMPLE_S, PROBLEM_S = 3.5, 0.05, 3e-4, 1.0
UNSAMPLED = 5  # calls of a configuration before its samples: one is checked, three before the capture, one captured
SAMPLES = 11
EAGER_S = 0.5  # rows of calls outside of graphs, where a problem has some
SLOW_FLOPS_PER_S = 1e14  # of what nothing predicts


@dataclass(frozen=True)
class Job:
    """A problem, and what is timed of it: configurations of our kernels, all that are legal or some, and peers.

    `picked` are the candidates that calls choose, where that was asked; `doors` the functions that are called, as their
    users call them; `use` what it is a use of; `jit_s` what peers compile before they run.
    """

    posed: Posed
    tiles: tuple[tuple[Variant, Config], ...]
    predicted_s: float  # of everything, a call each
    arch: str
    picked: tuple[tuple[Variant, Config], ...] = ()
    peers: tuple[Candidate, ...] = ()
    doors: tuple[Door, ...] = ()
    use: str | None = None
    jit_s: float = 0.0

    @property
    def estimate_s(self) -> float:
        """What checking and timing it should take."""
        calls = (UNSAMPLED + SAMPLES) * self.predicted_s
        count = len(self.tiles) + len(self.peers) + len(self.doors)
        eager = EAGER_S if self.doors else 0.0
        return PROBLEM_S + self.jit_s + eager + calls + count * (PREPARE_S + SAMPLES * SAMPLE_S)

    @cached_property
    def sources(self) -> tuple[Source, ...]:
        """What NVRTC compiles for it."""
        arch, problem = by_name(self.arch), self.posed.problem
        each = (source for variant, config in self.tiles for source in sources_of(variant, problem, config, arch))
        return tuple(dict.fromkeys(each))


def variants(arch: str) -> tuple[Variant, ...]:
    """Our forwards that are written for an architecture, or for an earlier one, and run on it."""
    return tuple(each for each in shipped() if each.owner == "smscope" and arch in each.archs)


def texts(arch: str) -> dict[str, str]:
    """The hash of each kernel's text, its first 16 digits."""
    return {each.path: text_sha256(each.path)[:16] for each in variants(arch)}


def jobs(problems: Iterable[Posed], profile: Profile) -> tuple[Job, ...]:
    """Every problem that a kernel of ours serves, with its configurations."""
    every = (job_of(posed, profile) for posed in problems)
    return tuple(job for job in every if job.tiles)


def job_of(posed: Posed, profile: Profile) -> Job:
    """A problem with every configuration of ours that is legal, if any is."""
    tiles, _ = legal(posed.problem, by_name(profile.arch), variants(profile.arch), outdone=True)
    slow = posed.flops / SLOW_FLOPS_PER_S
    candidates = predicted(profile, posed.problem, tiles, Corrections(), posed.counted)
    each = (slow if one.prediction is None else one.prediction.seconds for one in candidates)
    return Job(posed, tuple(tiles), sum(each), profile.arch)


def ordered(every: Sequence[Job], seed: str) -> tuple[Job, ...]:
    """In an order of this seed."""
    order = list(every)
    random.Random(seed).shuffle(order)
    return tuple(order)


def left(every: Iterable[Job], done: Collection[ProblemTiming]) -> tuple[Job, ...]:
    """The jobs of which no line holds every configuration of ours; one without any, that no line is of.

    A peer that a line lacks is timed where its problem is timed again, in another campaign.
    """
    known = {str(row.posed) for row in done}
    timed = {(str(row.posed), (each.variant, tuple(each.config.items()))) for row in done for each in row.tiles}
    return tuple(
        job
        for job in every
        if str(job.posed) not in known
        or any((str(job.posed), (variant.path, config.values)) not in timed for variant, config in job.tiles)
    )


@dataclass(frozen=True)
class Estimate:
    """Of some jobs: kernels that are to be compiled, and seconds."""

    missing: tuple[Source, ...]
    compile_s: float
    timing_s: float

    @property
    def seconds(self) -> float:
        return self.compile_s + self.timing_s


def estimate(some: Sequence[Job], kept: dict[Source, bool]) -> Estimate:
    """`kept` remembers which kernels the cache was found to hold."""
    sources = dict.fromkeys(source for job in some for source in job.sources)
    for source in sources:
        if source not in kept:
            kept[source] = is_kept(source)
    missing = tuple(source for source in sources if not kept[source])
    cores = os.cpu_count() or 1
    return Estimate(missing, -(-len(missing) // cores) * COMPILE_S, sum(job.estimate_s for job in some))
