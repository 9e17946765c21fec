"""Loads from shared memory that an arrival at an mbarrier may overtake, and so give away what is still to be read.

Both are issued in order, but an arrival does not wait in the queue of loads and stores: on an H100 and an H200 a load
behind the stores of other warps came later than an arrival, the other block's answer to it, and that one's write
(data/experiments, "Numbers that were misheard").
"""

from collections.abc import Iterator, Sequence

from microbench.sass.instruction import Instruction
from microbench.sass.loops import falls_through

_LOADS = ("LDS", "LDSM")
_FENCES = ("MEMBAR",)  # fence.proxy.async has one too, and behind it no row was read late (H200)


def overtaken(instructions: Sequence[Instruction]) -> Iterator[tuple[Instruction, Instruction]]:
    """Each arrival with the last load that nothing before it waits for, by scoreboard or fence.

    Branches are not followed: what lies behind one without a condition is another path.
    """
    pending: dict[int, Instruction] = {}
    for instruction in instructions:
        for scoreboard in instruction.waits:
            pending.pop(scoreboard, None)
        if instruction.head in _FENCES or not falls_through(instruction):
            pending.clear()
        elif instruction.head in _LOADS and instruction.control.write_barrier is not None:
            pending[instruction.control.write_barrier] = instruction
        elif instruction.head == "SYNCS" and "ARRIVE" in instruction.opcode and pending:
            yield max(pending.values(), key=lambda load: load.address), instruction
