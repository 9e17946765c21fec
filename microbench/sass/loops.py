"""The loops of a kernel: natural loops of its control-flow graph, instruction by instruction."""

from collections.abc import Sequence
from dataclasses import dataclass

from microbench.sass.instruction import Instruction

_ENDS = ("EXIT", "RET", "BRX", "JMX", "KILL")


@dataclass(frozen=True)
class Loop:
    """`body` in order of address, the closing branch last where ptxas lays the loop out in one piece."""

    body: tuple[Instruction, ...]
    closing: Instruction  # the (last) branch back to the head of the loop

    @property
    def start(self) -> int:
        return self.body[0].address

    @property
    def end(self) -> int:
        return self.body[-1].address

    def holds(self, instruction: Instruction) -> bool:
        return instruction in self.body


def loops(instructions: Sequence[Instruction]) -> tuple[Loop, ...]:
    """Every loop, an inner one beside the outer one that holds it.

    A backward branch alone is no loop: ptxas moves rare paths behind EXIT and lets them jump back, and ends every
    kernel with a branch to itself. Only where the target dominates the branch does the body repeat.
    """
    index = {instruction.address: at for at, instruction in enumerate(instructions)}
    before: list[list[int]] = [[] for _ in instructions]
    for at, instruction in enumerate(instructions):
        for successor in _successors(instruction, at, index):
            before[successor].append(at)
    bodies: dict[int, set[int]] = {}
    closing: dict[int, int] = {}
    for at, instruction in enumerate(instructions):
        head = index.get(-1 if instruction.target is None else instruction.target, at)
        if head < at and (body := _natural_loop(head, at, before)):
            bodies.setdefault(head, set()).update(body)
            closing[head] = at
    return tuple(
        Loop(tuple(instructions[at] for at in sorted(body)), instructions[closing[head]])
        for head, body in sorted(bodies.items())
    )


def falls_through(instruction: Instruction) -> bool:
    """Whether the next instruction may follow."""
    if instruction.target is not None:
        return instruction.conditional
    return instruction.predicate != "" or instruction.head not in _ENDS


def _successors(instruction: Instruction, at: int, index: dict[int, int]) -> list[int]:
    successors = []
    if instruction.target in index:
        successors.append(index[instruction.target])
    if falls_through(instruction) and instruction.address + 16 in index:
        successors.append(at + 1)
    return successors


def _natural_loop(head: int, tail: int, before: list[list[int]]) -> set[int]:
    """Everything that reaches `tail` without passing `head`; empty where the kernel's entry does."""
    body, open_ends = {head}, [tail]
    while open_ends:
        at = open_ends.pop()
        if at in body:
            continue
        if at == 0:
            return set()
        body.add(at)
        open_ends.extend(before[at])
    return body
