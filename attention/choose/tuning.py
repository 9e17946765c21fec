"""What `smscope tune` timed of one class of problems, and which candidate that decides for.

A call whose pick is torch's goes to torch's function whole, which takes its own first kernel; past that, attention.sdpa
reaches for FlashAttention-2 alone, where it has a prediction (attention.op.plan). What a call could not get to decides
nothing, however fast it was.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from attention.choose.candidates import Candidate
from attention.problem import AttentionProblem
from attention.timed.timing import PEER
from attention.variant import Config, by_path

REACHED = "torch_flash"


@dataclass(frozen=True)
class Measured:
    """A candidate that was right: its variant's path, or of torch's its name in data; median seconds of `n` calls."""

    variant: str
    config: Config
    seconds: float
    n: int

    def is_of(self, candidate: Candidate) -> bool:
        """Whether it was this candidate that was timed."""
        if candidate.owner == "torch":
            return self.variant == f"{PEER}{_name(candidate)}"
        return (self.variant, self.config) == (candidate.variant, candidate.config)

    def __str__(self) -> str:
        return f"{self.variant} ({self.config})" if self.config.values else self.variant


@dataclass(frozen=True)
class Tuning:
    """Timings of one class by one of its problems, the fastest first. They hold for this driver and torch."""

    problem: AttentionProblem
    measured: tuple[Measured, ...]
    driver: str
    torch: str
    measured_utc: str

    @property
    def kernels(self) -> frozenset[str]:
        """Our kernels that ran, and were right."""
        return frozenset(each.variant for each in self.measured if not each.variant.startswith(PEER))

    def of(self, candidate: Candidate) -> Measured | None:
        """The timing of a candidate."""
        return next((each for each in self.measured if each.is_of(candidate)), None)


def ranked(tuning: Tuning, candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """Those of these that were timed and that a call gets to, the fastest first."""
    timed = [(found.seconds, each) for each in candidates if (found := tuning.of(each)) is not None]
    torchs = [each for _, each in timed if each.owner == "torch"]
    first = min(torchs, key=lambda each: by_path(each.variant).rank, default=None)
    able = [pair for pair in timed if pair[1].owner == "smscope" or pair[1] is first or _reached(pair[1])]
    return tuple(each for _, each in sorted(able, key=lambda pair: pair[0]))


def _reached(candidate: Candidate) -> bool:
    return _name(candidate) == REACHED and candidate.prediction is not None


def _name(candidate: Candidate) -> str:
    return candidate.variant.rpartition("/")[2]
