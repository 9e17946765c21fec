"""What a board is held against: the profile of its kind, else that of the nearest board of its architecture."""

from dataclasses import dataclass

from microbench.errors import UnknownGpu
from microbench.results.profile import Profile, advising
from microbench.results.record import Environment


@dataclass(frozen=True)
class Reference:
    """What a board is held against, and what a reader is told of it. `same_kind`: measured on boards of its kind."""

    profile: Profile
    told: str
    same_kind: bool = True


def reference_of(told: Environment) -> Reference:
    """The reference for the board that a run's first line describes. Raises UnknownGpu where nothing is like it."""
    try:
        kind = Profile.load(told.gpu)
        if kind.board is None or kind.board != told.board:
            return Reference(kind, f"the reference of {kind.gpu} ({_boards(kind)})")
    except UnknownGpu:
        pass
    like = [each for each in advising() if each.arch == told.arch and each.gpu != told.gpu]
    if not like:
        raise UnknownGpu(
            f"No {told.name} and no other {told.arch} GPU has a profile here: "
            "there is nothing to hold this one against but its data sheet."
        )
    nearest = min(like, key=lambda each: (abs(each.sm_count - told.sm_count), each.gpu))
    return Reference(nearest, f"{nearest.gpu}, of the same architecture,", same_kind=False)


def _boards(kind: Profile) -> str:
    several = max((len(constant.boards) for constant in kind.constants), default=0)
    return f"{several} boards" if several > 1 else "one board"
