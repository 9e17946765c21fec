"""Is this instruction that operation? Exactly, for what is timed; by its head and some parts, for what stands beside.

Under @!PT everything is a NOP: ptxas pads Volta's loops with such a SHFL, LDGSTS with such LDS, and HMMA (CUDA 13) with
UIADD3 under @!UPT.
"""

from microbench.probe import OpCount
from microbench.sass.instruction import Instruction
from microbench.sass.operands import kinds

# IMAD's forms are instructions of their own: a contract that says IMAD does not mean a register move by IMAD.MOV.
_FORMS = {"IMAD": frozenset({"MOV", "SHL", "IADD", "X", "WIDE", "HI"})}
# How a result is rounded. The pipe and its rate are the same.
_ROUNDING = frozenset({"FTZ", "SAT", "RZ", "RM", "RP"})


def name(instruction: Instruction) -> str:
    """Its opcode, as a message names it."""
    return f"@{instruction.predicate} {instruction.opcode}" if _is_nothing(instruction) else instruction.opcode


def is_op(instruction: Instruction, op: OpCount) -> bool:
    """All modifiers as declared, but for the rounding, and operands of the declared kinds.

    LDG.E.64.STRONG.GPU passes the L1, LDG.E.64.CONSTANT is a texture's way and LDS.U8 loads a byte: none is LDG.E.64.
    """
    if _is_nothing(instruction):
        return op.opcode == "NOP"
    given = ".".join((instruction.head, *(each for each in instruction.modifiers if each not in _ROUNDING)))
    if given != op.opcode and given not in op.also:
        return False
    return not op.operands or kinds(instruction.operands) == op.operands


def matches(instruction: Instruction, opcode: str) -> bool:
    """LDG.64 matches LDG.E.64.SYS: the same head, all parts present, and no form of IMAD that was not asked for."""
    head, *parts = opcode.split(".")
    if _is_nothing(instruction):
        return opcode == "NOP"
    forms = _FORMS.get(head, frozenset()) & set(instruction.modifiers)
    return instruction.head == head and set(parts) <= set(instruction.modifiers) and forms <= set(parts)


def _is_nothing(instruction: Instruction) -> bool:
    return instruction.predicate in ("!PT", "!UPT")
