"""Every wrapper of sm70, sm80, sm90a and sm100a with random inputs that a GPU and the emulator are both given."""

from collections.abc import Iterable
from functools import cache

from microbench.verify.differential import (
    boxes,
    formats,
    matrices,
    programs,
    small,
    tensor_cores,
    tensor_memory,
    warpgroups,
    words,
)
from microbench.verify.differential.case import Case

SEEDS, QUICK_SEEDS = 200, 20
CHUNK = 50  # seeds that are compared at a time
_ROOMS = (tensor_cores, formats, matrices, words, small, boxes, warpgroups, programs, tensor_memory)
ROOMS = tuple(room.__name__.rpartition(".")[2] for room in _ROOMS)


@cache
def rooms() -> dict[str, range]:
    """The numbers of each room's cases, in the order of the report."""
    ends = [0]
    for room in _ROOMS:
        ends.append(ends[-1] + len(room.cases()))
    return {name: range(*ends[at : at + 2]) for at, name in enumerate(ROOMS)}


@cache
def cases() -> tuple[Case, ...]:
    """All of them."""
    made = tuple(case for room in _ROOMS for case in room.cases())
    assert len({case.key for case in made}) == len(made)
    return made


def chunks(seeds: int) -> list[range]:
    """So many seeds in parts."""
    return [range(first, min(first + CHUNK, seeds)) for first in range(0, seeds, CHUNK)]


def families(numbers: Iterable[int], most: int = 43) -> list[tuple[int, ...]]:
    """These cases by wrapper; the long families in parts, for processes of about the same length."""
    by_wrapper: dict[str, list[int]] = {}
    for number in numbers:
        by_wrapper.setdefault(cases()[number].wrapper, []).append(number)
    return [tuple(of[at : at + most]) for of in by_wrapper.values() for at in range(0, len(of), most)]
