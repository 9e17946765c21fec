"""A stretch of a listing, and who in it waits for whom by scoreboard."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from microbench.errors import InputError
from microbench.sass.instruction import Instruction


@dataclass(frozen=True)
class Wait:
    """Instruction `waiter` waits for `scoreboard` (0 to 5), last raised by `setter`; both are places in the listing.

    `until` is what the scoreboard says: the result stands ('written'), or the operands have been read ('read').
    """

    setter: int
    waiter: int
    scoreboard: int
    until: Literal["written", "read"]


def between(instructions: Sequence[Instruction], first: str, last: str, lead: int = 0) -> tuple[Instruction, ...]:
    """From the first instruction with head `first` to the next one with head `last`, both included.

    `lead` is how many instructions before the first one come along.

    Raises InputError where there is no such stretch.
    """
    heads = [instruction.head for instruction in instructions]
    if first in heads:
        start = heads.index(first)
        if last in heads[start:]:
            return tuple(instructions[max(start - lead, 0) : heads.index(last, start) + 1])
    raise InputError(f"No {last} stands behind a {first} in this listing; it has {', '.join(sorted(set(heads)))}.")


def waits(instructions: Sequence[Instruction]) -> tuple[Wait, ...]:
    """Every setter of a scoreboard and the next instruction that waits for it, in order of the waiter.

    A scoreboard is a counter, so several setters may have one waiter. Branches are not followed: the stretch is read
    as it stands.
    """
    raised: dict[int, list[tuple[int, Literal["written", "read"]]]] = {}
    found = []
    for place, instruction in enumerate(instructions):
        for scoreboard in sorted(instruction.waits):
            found += [Wait(setter, place, scoreboard, until) for setter, until in raised.pop(scoreboard, [])]
        if instruction.control.write_barrier is not None:
            raised.setdefault(instruction.control.write_barrier, []).append((place, "written"))
        if instruction.control.read_barrier is not None:
            raised.setdefault(instruction.control.read_barrier, []).append((place, "read"))
    return tuple(found)
