"""The chosen configuration over length and head dim, by the constants of a profile alone or by timings beside them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from attention.choose import learned, turning
from attention.choose.candidates import Candidate
from attention.choose.choose import choose
from attention.choose.turning import Turn
from attention.compare.results import HOPPER
from attention.problem import AttentionProblem
from attention.variant import Config
from microbench.results.profile import Profile

TOKENS, HEADS = 65_536, 16
LENGTHS = tuple(2**power for power in range(7, 17))
HEAD_DIMS = tuple(range(16, 257, 16))  # those that the kernels compute: one between is computed at the next


@dataclass(frozen=True)
class Place:
    """One problem of the map: `ours` is the fastest of our kernels, `pick` what is chosen of all, torch's included."""

    problem: AttentionProblem
    ours: str
    config: Config
    seconds: float
    pick: str

    @property
    def at(self) -> tuple[int, int]:
        """Length and head dim."""
        return self.problem.seq_q, self.problem.head_dim

    @property
    def is_hopper(self) -> bool:
        return self.ours == HOPPER

    @property
    def is_torchs(self) -> bool:
        """Whether a kernel of torch's is chosen before ours."""
        return "torch_" in self.pick

    @property
    def tile(self) -> tuple[int, int, bool]:
        """Warpgroups, keys, and whether Q stays in registers: of the Hopper forward alone."""
        return self.config["warpgroups"], self.config["tile_keys"], bool(self.config["q_in_registers"])


def posed(length: int, head_dim: int, *, causal: bool) -> AttentionProblem:
    """One problem of the map: bfloat16, TOKENS in sequences of one length, HEADS heads."""
    batch = TOKENS // length
    return AttentionProblem(
        *(batch, HEADS, HEADS, length, length, head_dim), dtype="bfloat16", device="cuda", causal=causal
    )


@cache
def places(profile: Profile, causal: bool) -> tuple[Place, ...]:
    """The whole map of a mask, row by row."""
    every = (posed(length, head_dim, causal=causal) for head_dim in HEAD_DIMS for length in LENGTHS)
    return tuple(places_of(profile, every))


def places_of(profile: Profile, problems: Iterable[AttentionProblem]) -> Iterator[Place]:
    """By constants alone. Ours are chosen among ours, and then against torch's."""
    for problem in problems:
        ours = choose(profile, problem, only="smscope").pick
        assert ours.prediction is not None
        pick = choose(profile, problem).pick.variant
        yield Place(problem, ours.variant, ours.config, ours.prediction.seconds, pick)


def called(profile: Profile, place: Place) -> Candidate:
    """What a call of a place's problem runs: timings on file advise it beside the constants."""
    return learned.choice_on(profile, place.problem).pick


@dataclass(frozen=True)
class Change:
    """What another profile makes of one place: its configuration, and its predicted time over today's."""

    before: Place
    after: Place

    @property
    def changed(self) -> bool:
        return (self.before.ours, self.before.config) != (self.after.ours, self.after.config)

    @property
    def saved(self) -> float:
        """The share of the predicted time that goes."""
        return 1 - self.after.seconds / self.before.seconds


def changes(before: Iterable[Place], after: Iterable[Place]) -> tuple[Change, ...]:
    return tuple(Change(one, other) for one, other in zip(before, after, strict=True))


def turns(profile: Profile, problem: AttentionProblem, names: Iterable[str]) -> tuple[Turn, ...]:
    """Those of `names` that would change the pick among ours by constants alone."""
    return turning.turns(profile, names, lambda other: choose(other, problem, only="smscope").pick)
