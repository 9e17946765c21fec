"""The instructions that a warp usually passes, where branches leave a choice.

A rare path (scores that overflow, a masked tile) does less of what a kernel is for, or goes a longer way round: the
usual path is the one with most work (tensor instructions, exponentials, copies, barriers), and of those the shortest.
"""

import re
from collections.abc import Collection, Sequence

from microbench.errors import BuildError
from microbench.sass.instruction import Instruction
from microbench.sass.loops import Loop

WORK = re.compile(r"[A-Z]*MMA|MUFU|LDG|LDGSTS|LDGDEPBAR|BAR|DEPBAR|STG")
_ENDS = ("EXIT", "RET", "BRX", "JMX", "KILL")


def through_loop(loop: Loop) -> tuple[Instruction, ...]:
    """The usual path of one trip, from the head of a loop to its closing branch. Raises BuildError."""
    head = loop.closing.target
    return usual(loop.body, head if head is not None else loop.start, {loop.closing.address})


def usual(
    instructions: Sequence[Instruction], first: int, last: Collection[int], avoid: Collection[int] = ()
) -> tuple[Instruction, ...]:
    """The usual path from address `first` to one of `last`, both included, past no address of `avoid`.

    Every branch back is left out, so that an inner loop is passed once. Raises BuildError where no path leads there.
    """
    by_address = {each.address: each for each in instructions if each.address not in avoid}
    best: dict[int, tuple[int, int]] = {}
    following: dict[int, int] = {}
    for address in _children_first(by_address, first, last):
        work = int(bool(WORK.fullmatch(by_address[address].head)))
        if address in last:
            best[address] = (work, -1)
            continue
        known = [(best[after], after) for after in _successors(by_address[address], by_address) if after in best]
        if known:
            (more, length), following[address] = max(known)
            best[address] = (more + work, length - 1)
    if first not in best:
        raise BuildError(f"No path leads from instruction {first:#x} to the end of its stretch; is this code whole?")
    path = [first]
    while path[-1] not in last:
        path.append(following[path[-1]])
    return tuple(by_address[address] for address in path)


def _children_first(by_address: dict[int, Instruction], first: int, last: Collection[int]) -> list[int]:
    """Addresses that `first` reaches, each behind those that it leads to; branches back do not count."""
    done: list[int] = []
    state = {first: False}  # whether everything behind an address is done
    open_ends = [(first, iter(_successors(by_address[first], by_address)))]
    while open_ends:
        address, children = open_ends[-1]
        child = None if address in last else next(children, None)
        if child is None:
            state[address] = True
            done.append(address)
            open_ends.pop()
        elif child not in state:
            state[child] = False
            open_ends.append((child, iter(_successors(by_address[child], by_address))))
    return done


def _successors(instruction: Instruction, by_address: dict[int, Instruction]) -> list[int]:
    jumps = instruction.target is not None
    falls = instruction.conditional if jumps else bool(instruction.predicate) or instruction.head not in _ENDS
    to = [instruction.address + 16] if falls else []
    return [each for each in (*to, instruction.target) if each is not None and each in by_address]
