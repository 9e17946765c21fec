"""Who waits for whom in a timed region: each operation for one before it, or for none."""

from collections.abc import Iterator, Sequence
from itertools import islice

from microbench.probe import SassContract
from microbench.sass.instruction import Instruction
from microbench.sass.regions import at, declared

_SHOWN = 3
_LAPS = 4  # a sum of one trip may move the counter of the next, and that one an address of the third


def wrong_distances(contract: SassContract, region: Sequence[Instruction]) -> Iterator[str]:
    """Where the nearest op that an op waits for does not stand `distance` places before it, one sentence each.

    A result counts at first hand or through overhead: an index chase waits through the LEA between two loads. In a
    loop it may lie behind the back edge.
    """
    if contract.distance is not None:
        yield from islice(_each(contract, region, contract.distance), _SHOWN)


def continued(
    contract: SassContract, instructions: Sequence[Instruction], region: Sequence[Instruction]
) -> Iterator[str]:
    """An op behind the second clock read that goes on with what was timed: part of the work is not in the time."""
    clocks = [instruction.address for instruction in instructions if instruction.reads_clock]
    timed = {name for instruction in region if declared(contract, instruction) for name in instruction.writes}
    for instruction in instructions:
        if not clocks or instruction.address <= clocks[-1]:
            continue
        goes_on = bool(instruction.reads & timed)
        if goes_on and declared(contract, instruction):
            yield f"{at(instruction)} goes on with what was timed, behind the second clock read"
            return
        timed = timed | instruction.writes if goes_on else timed - instruction.writes


def _each(contract: SassContract, region: Sequence[Instruction], distance: int) -> Iterator[str]:
    laps = _LAPS if contract.region == "loop" else 1
    source: dict[str, int | None] = {}  # of each register: the place of the last op that its value came through
    place = 0
    ops = sum(declared(contract, instruction) is not None for instruction in region)
    unchecked = ops * (laps - 1) if laps > 1 else distance
    for instruction in tuple(region) * laps:
        nearest = max((found for name in instruction.reads if (found := source.get(name)) is not None), default=None)
        is_op = declared(contract, instruction) is not None
        if is_op and place >= unchecked and (place - nearest if nearest is not None else 0) != distance:
            yield _sentence(instruction, place, nearest, distance)
        source.update(dict.fromkeys(instruction.writes, place if is_op else nearest))
        place += is_op


def _sentence(instruction: Instruction, place: int, nearest: int | None, distance: int) -> str:
    if nearest is None:
        return f"{at(instruction)} reads no result of the op {distance} before it"
    asked = f", not {distance}" if distance else ", where no op may wait for another"
    return f"{at(instruction)} reads the op {place - nearest} before it{asked}"
