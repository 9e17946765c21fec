"""The main loop of a kernel on mma.sync as ptxas scheduled it: to which unit each instruction goes, and in which cycle.

ptxas spaces what it issues by the stall counts of SASS. Their running sum is the schedule of a warp that never waits:
scoreboards, barriers and the other warps of the sub-core come on top.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from microbench.sass.instruction import Instruction
from microbench.sass.loops import loops

Unit = Literal["scores", "values", "exponentials", "K and Q", "V", "fetch", "other"]


@dataclass(frozen=True)
class Issue:
    """One instruction of the loop; `scores` and `values` are the products Q K^T and p V."""

    cycle: int
    unit: Unit
    instruction: Instruction


@dataclass(frozen=True)
class Schedule:
    """One round of the main loop: a tile of keys. `cycles` is the sum of its stall counts."""

    issues: tuple[Issue, ...]
    cycles: int

    def count(self, *units: Unit) -> int:
        """How many instructions go to these units; all without an argument."""
        return sum(not units or issue.unit in units for issue in self.issues)


def schedule(instructions: Sequence[Instruction]) -> Schedule | None:
    """The main loop of a kernel; None where it cannot be read as it stands, because ptxas left a loop inside."""
    path = main_loop(instructions)
    if not path:
        return None
    units = _units(path)
    cycle, issues = 0, []
    for instruction, unit in zip(path, units, strict=True):
        issues.append(Issue(cycle, unit, instruction))
        cycle += instruction.control.stall
    return Schedule(tuple(issues), cycle)


def main_loop(instructions: Sequence[Instruction]) -> tuple[Instruction, ...]:
    """One round of the loop over tiles that every row sees, without what a vote of the warp has it skip; may be empty.

    Of the loops that multiply, fetch a tile and hold no other loop that multiplies, it has the most products; where two
    have as many, the one for tiles with a mask comes first.
    """
    found = [loop for loop in loops(instructions) if any(each.head == "HMMA" for each in loop.body)]
    inner = [loop for loop in found if not any(loop.start < other.start <= loop.end for other in found)]
    flat = [loop for loop in inner if any(each.head == "LDGSTS" for each in loop.body)]
    if not flat:
        return ()
    body = max(flat, key=lambda loop: (sum(each.head == "HMMA" for each in loop.body), loop.start)).body
    path: list[Instruction] = []
    vote, behind = "", 0
    for instruction in body:
        if instruction.address < behind:
            continue
        path.append(instruction)
        if instruction.head == "VOTE":
            (vote,) = instruction.writes
        elif vote and instruction.target is not None and instruction.predicate.lstrip("!") == vote:
            vote, behind = "", instruction.target
    return tuple(path)


def _units(path: Sequence[Instruction]) -> list[Unit]:
    """Products are told apart by B: of V it comes by a transposing ldmatrix, perhaps in the round before."""
    from_v: dict[str, bool] = {}
    units: list[Unit] = []
    for instruction in (*path, *path):
        unit: Unit = "other"
        if instruction.head == "LDSM":
            unit = "V" if "MT88" in instruction.modifiers else "K and Q"
            from_v |= dict.fromkeys(instruction.writes, unit == "V")
        elif instruction.head == "HMMA":
            unit = "values" if from_v.get(instruction.operands[2].partition(".")[0], False) else "scores"
        elif instruction.opcode == "MUFU.EX2":
            unit = "exponentials"
        elif instruction.head == "LDGSTS":
            unit = "fetch"
        units.append(unit)
    return units[len(path) :]
