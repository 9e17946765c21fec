"""Who is timed by `smscope tune` on a class of problems: the first few of ours by prediction, and what torch serves.

FlashAttention-4 is none of them: attention.sdpa cannot run it. Nor is torch's slow path, which is never preferred.
"""

from contextlib import suppress
from dataclasses import dataclass

from attention.choose import learned
from attention.choose.candidates import Candidate
from attention.choose.choose import Choice
from attention.choose.classes import representative
from attention.errors import UnsupportedError
from attention.problem import AttentionProblem
from attention.variant import by_path
from microbench.results.profile import Profile

FEW = 4  # of ours, and the first of each of our kernels that is not among them


@dataclass(frozen=True)
class Contenders:
    """Of one class: ours, the pick among ours first, and torch's."""

    ours: tuple[Candidate, ...]
    torchs: tuple[Candidate, ...]

    @property
    def every(self) -> tuple[Candidate, ...]:
        return *self.ours, *self.torchs


def contenders(profile: Profile, problem: AttentionProblem) -> Contenders:
    """None of ours, or none of torch's, where no kernel of theirs serves."""
    ours, torchs = (_choice(profile, problem, owner) for owner in ("smscope", "torch"))
    fused = [each for each in torchs.candidates if by_path(each.variant).fused] if torchs else []
    return Contenders(_first(ours) if ours else (), tuple(fused))


def _choice(profile: Profile, problem: AttentionProblem, owner: str) -> Choice | None:
    """As attention.sdpa chooses: for the class of the problem, or for it alone where nothing serves that."""
    for asked in (representative(problem), problem):
        with suppress(UnsupportedError):
            return learned.choice_on(profile, asked, only=owner)
    return None


def _first(choice: Choice) -> tuple[Candidate, ...]:
    ordered = tuple(dict.fromkeys((choice.pick, *choice.candidates)))
    best: dict[str, Candidate] = {}
    for each in ordered:
        best.setdefault(each.variant, each)
    return tuple(dict.fromkeys((*ordered[:FEW], *best.values())))
