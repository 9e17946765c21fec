"""The instructions that a contract times, cut out of a kernel."""

from collections.abc import Iterator, Sequence

from microbench.errors import ContractError
from microbench.probe import OpCount, SassContract
from microbench.sass.instruction import Instruction
from microbench.sass.loops import Loop, loops
from microbench.sass.match import is_op, matches

Instructions = Sequence[Instruction]

_CONTROL_FLOW = ("BRA", "BRX", "JMP", "CALL", "RET", "EXIT", "BSSY", "BSYNC", "BREAK", "KILL", "WARPSYNC")


def timed_region(contract: SassContract, instructions: Instructions) -> tuple[Instruction, ...]:
    """The instructions that are timed, by the contract's `region`. Raises ContractError where there is no such region.

    straight    strictly between the two clock reads
    loop        the body of the one loop that holds the declared ops, without its closing branch
    kernel      all of it, without the last EXIT and the padding behind: for kernels that are timed from outside
    """
    if contract.region == "straight":
        return _between_clocks(instructions)
    if contract.region == "loop":
        loop = _the_loop(contract, instructions)
        return tuple(instruction for instruction in loop.body if instruction is not loop.closing)
    if contract.region == "kernel":
        last = max((at for at, i in enumerate(instructions) if i.head == "EXIT"), default=len(instructions))
        outlined = [i for i in instructions[last + 1 :] if i.head != "NOP" and i.target != i.address]
        return (*instructions[:last], *outlined)
    raise ContractError(f"A contract's region is 'straight', 'loop' or 'kernel', not {contract.region!r}")


def declared(contract: SassContract, instruction: Instruction) -> OpCount | None:
    """The declared op that this instruction is."""
    return next((op for op in contract.ops if is_op(instruction, op)), None)


def strays(contract: SassContract, instructions: Instructions, region: Instructions) -> Iterator[str]:
    """Declared ops beside the timed loop: in a loop around it, or between the clock reads but peeled off."""
    inside = set(region)
    around = {i for loop in loops(instructions) if inside < set(loop.body) for i in loop.body}
    clocks = [instruction.address for instruction in instructions if instruction.reads_clock]
    start, end = min(i.address for i in inside), max(i.address for i in inside)
    if clocks and not any(start < clock < end for clock in clocks) and not clocks[0] < start < end < clocks[-1]:
        yield f"the timed loop at {start:04x} does not stand between the clock reads"
    for instruction in instructions:
        timed = instruction in around or (bool(clocks) and clocks[0] < instruction.address < clocks[-1])
        if timed and instruction not in inside and declared(contract, instruction):
            yield f"{at(instruction)} stands beside the timed loop: ptxas peeled or unrolled part of it"
            return


def second_branches(contract: SassContract, instructions: Instructions) -> Iterator[str]:
    """A second branch in a timed loop: part of it may run less often than the loop goes round.

    One way out is the loop's own: its closing branch, or where that one has no condition an EXIT, or a CALL that ptxas
    writes for a long jump. To ask again for what has not come leaves nothing out.
    """
    loop = _the_loop(contract, instructions)
    asking = _asking_again(contract, loop, instructions)
    branches = [i for i in loop.body if i.head in _CONTROL_FLOW and i is not loop.closing and i not in asking]
    leaves = branches[:1] if not loop.closing.conditional and branches and branches[0].head in ("EXIT", "CALL") else []
    for instruction in branches[len(leaves) :][:1]:
        yield f"{at(instruction)} is a second branch in the timed loop; what it leaves out would count as done"


def _asking_again(contract: SassContract, loop: Loop, instructions: Instructions) -> set[Instruction]:
    """Branches into, around and out of loops within this one that hold the contract's wait and nothing else."""
    if not contract.asked_again:
        return set()
    idle = [each for each in loops(instructions) if set(each.body) < set(loop.body) and _is_idle(each, contract)]
    within = {i for each in idle for i in each.body}
    inner = {i.address for i in within}
    behind = {each.end + 16 for each in idle}
    return {
        i
        for i in loop.body
        if i in within or i.target in inner or (i.head == "BRA" and not i.conditional and i.address in behind)
    }


def _is_idle(loop: Loop, contract: SassContract) -> bool:
    others = [i for i in loop.body if i is not loop.closing and i.head not in ("YIELD", "NOP")]
    return bool(others) and all(matches(i, contract.asked_again) for i in others)


def unanswered(contract: SassContract, instructions: Instructions) -> Iterator[str]:
    """A closing branch that does not read what the loop's wait answers: the loop goes on before the answer has come."""
    loop = _the_loop(contract, instructions)
    waits = [i for i in loop.body if contract.closed_by and matches(i, contract.closed_by)]
    if contract.closed_by and not any(wait.writes & loop.closing.reads for wait in waits):
        yield f"{at(loop.closing)} does not ask for the answer of {contract.closed_by}, so nobody waits for it"


def at(instruction: Instruction) -> str:
    """An instruction, as a message shows it."""
    return f"{instruction.address:04x} {instruction.text}"


def _between_clocks(instructions: Instructions) -> tuple[Instruction, ...]:
    clocks = [place for place, instruction in enumerate(instructions) if instruction.reads_clock]
    if len(clocks) != 2:
        raise ContractError(f"a straight region lies between two clock reads; this kernel has {len(clocks)}")
    first, second = clocks
    region = tuple(instructions[first + 1 : second])
    for instruction in region:
        if instruction.head in _CONTROL_FLOW:
            raise ContractError(f"{at(instruction)} leaves the straight line between the clock reads")
    inside = range(instructions[first].address + 16, instructions[second].address + 1)
    for instruction in instructions:
        if instruction.target is not None and instruction.target in inside:  # a range looks for None place by place
            raise ContractError(f"{at(instruction)} jumps between the clock reads")
    return region


def _the_loop(contract: SassContract, instructions: Instructions) -> Loop:
    names = ", ".join(op.opcode for op in contract.ops) or "nothing"
    holding = [loop for loop in loops(instructions) if any(declared(contract, i) for i in loop.body)]
    clocks = [i.address for i in instructions if i.reads_clock]
    if len(clocks) == 2:  # a loop that warms the caches before the first reading is not timed
        holding = [loop for loop in holding if clocks[0] < loop.end and loop.start < clocks[1]]
    inner = [a for a in holding if not any(b is not a and set(b.body) < set(a.body) for b in holding)]
    if not inner:
        raise ContractError(
            f"no loop {'between the clock reads ' if clocks else ''}holds {names}: ptxas unrolled, moved or removed "
            "it, or made another instruction of it; give it a run-time trip count"
        )
    if len(inner) > 1:
        where = " and ".join(f"{loop.start:04x}-{loop.end:04x}" for loop in inner)
        raise ContractError(f"{len(inner)} loops hold {names} (at {where}): ptxas split or copied the timed loop")
    return inner[0]
