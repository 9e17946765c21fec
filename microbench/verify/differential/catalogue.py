"""Every wrapper of sm70, sm80 and sm90a with random inputs that a GPU and the emulator are both given."""

from functools import cache

from microbench.verify.differential import boxes, formats, matrices, programs, small, tensor_cores, warpgroups, words
from microbench.verify.differential.case import Case

SEEDS = 200
CHUNK = 50  # seeds that are compared at a time


@cache
def cases() -> tuple[Case, ...]:
    """All of them, in the order of the report."""
    rooms = (tensor_cores, formats, matrices, words, small, boxes, warpgroups, programs)
    made = tuple(case for room in rooms for case in room.cases())
    assert len({case.key for case in made}) == len(made)
    return made


def chunks(seeds: int) -> list[range]:
    """So many seeds in parts."""
    return [range(first, min(first + CHUNK, seeds)) for first in range(0, seeds, CHUNK)]


def families(most: int = 57) -> list[tuple[int, ...]]:
    """Numbers of cases, by wrapper; the long families in parts, for processes of about the same length."""
    by_wrapper: dict[str, list[int]] = {}
    for number, case in enumerate(cases()):
        by_wrapper.setdefault(case.wrapper, []).append(number)
    return [tuple(of[at : at + most]) for of in by_wrapper.values() for at in range(0, len(of), most)]
