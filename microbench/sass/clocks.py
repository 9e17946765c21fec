"""The clock of a kernel: the right one, read as often as declared, and nothing pending when it is read."""

from collections.abc import Iterator, Sequence

from microbench.probe import SassContract
from microbench.sass.instruction import Instruction
from microbench.sass.regions import at

# CS2R samples when it issues and raises no scoreboard; so does CS2UR, its uniform twin, which ptxas mixes in on sm_120.
_FIXED_LATENCY_CLOCKS = ("CS2R", "CS2UR")
_OTHER_CLOCKS = ("SR_GLOBALTIMERLO", "SR_GLOBALTIMERHI", "SR_CLOCKHI")


def wrong_clocks(contract: SassContract, instructions: Sequence[Instruction]) -> Iterator[str]:
    """A slow path to the clock, another clock, or another number of readings than is declared."""
    readings = [instruction for instruction in instructions if instruction.reads_clock]
    slow = [instruction for instruction in readings if instruction.head not in _FIXED_LATENCY_CLOCKS]
    if slow:
        yield f"{at(slow[0])} reads the clock by a slow path; use clock64, which becomes CS2R at both ends"
    short = [instruction for instruction in readings if "32" in instruction.modifiers]
    if short:
        yield f"{at(short[0])} reads half of the clock, which starts anew every two seconds; use clock64"
    others = [i for i in instructions if set(_OTHER_CLOCKS) & set(i.operands)]
    if others:
        yield f"{at(others[0])} reads another clock than the SM's; cycles are clock64's"
    if contract.region == "loop" and len(readings) != contract.clocks:  # a straight region is found by its two
        yield f"{len(readings)} readings of the clock where {contract.clocks} are declared"
    if contract.region == "kernel" and readings:
        yield f"{at(readings[0])} reads the clock in a kernel that is timed from outside"


def waits_from_outside(instructions: Sequence[Instruction], region: Sequence[Instruction]) -> Iterator[str]:
    """A wait for what was issued before the first clock read would be timed, unless ptx::settle has waited before.

    The first clock read itself may wait: CS2R samples the counter when it issues, after the wait.
    """
    first = next(place for place, instruction in enumerate(instructions) if instruction.reads_clock)
    pending: set[int] = set()
    for instruction in instructions[: first + 1]:
        pending = pending - instruction.waits | instruction.control.sets
    inside: set[int] = set()
    for instruction in instructions[first + 1 : first + 2 + len(region)]:
        foreign = {s for s in instruction.waits if s in pending or s not in inside}
        if foreign:
            boards = ", ".join(map(str, sorted(foreign)))
            yield f"{at(instruction)} waits for scoreboard {boards}, set before the clock read; settle its operands"
            return
        inside |= instruction.control.sets
