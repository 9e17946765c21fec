"""The loop that a Hopper kernel spends its time in, as the compiler wrote it: what a thread runs for a tile of keys."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from attention.compare.results import HOPPER
from attention.kernels.launch.loaded import cubin_of
from attention.problem import AttentionProblem
from attention.variant import Config, by_path
from microbench.machine.arch import by_name
from microbench.sass.instruction import Instruction


@dataclass(frozen=True)
class Loop:
    """How often each opcode stands in the loop over tiles that are seen in full: run each time, or behind a branch."""

    problem: AttentionProblem
    tile: Config
    always: Counter[str]
    seldom: Counter[str]


def loop_of(problem: AttentionProblem, tile: Config) -> Loop:
    """Compile one configuration and read its loop. Raises BuildError, ValueError where it has none."""
    variant = by_path(HOPPER)
    (step,) = variant.steps(problem, tile)
    instructions = cubin_of(variant.folder, step, by_name("sm90a")).instructions()
    begin, end = innermost(instructions)
    body = instructions[begin:end]
    rare = passed_over(body)
    always = Counter(each.head for i, each in enumerate(body) if i not in rare)
    return Loop(problem, tile, always, Counter(body[i].head for i in rare))


def innermost(instructions: Sequence[Instruction]) -> tuple[int, int]:
    """First instruction of the shortest loop that multiplies and takes exponentials, and the one after its last."""
    at = {instruction.address: i for i, instruction in enumerate(instructions)}
    found = []
    for end, instruction in enumerate(instructions):
        begin = end if instruction.target is None else at.get(instruction.target, end)
        if {"HGMMA", "MUFU"} <= {each.head for each in instructions[begin:end]}:
            found.append((begin, end + 1))
    if not found:
        raise ValueError("no loop of this kernel holds both HGMMA and MUFU")
    return min(found, key=lambda loop: loop[1] - loop[0])


def passed_over(body: Sequence[Instruction]) -> set[int]:
    """Instructions that a branch inside a loop may pass over; a branch out of the loop passes over none."""
    found: set[int] = set()
    for i, instruction in enumerate(body):
        if instruction.predicate and instruction.target is not None and instruction.target <= body[-1].address:
            found |= {j for j in range(i + 1, len(body)) if body[j].address < instruction.target}
    return found
