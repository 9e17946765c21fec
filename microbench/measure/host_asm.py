"""The host's contracts: what must stand in the machine code that LLVM made of a kernel, read from exactly what runs.

LLVM may unroll and interleave a loop, so how many elements one round serves is not known; but for each element a kernel
does a known number of multiply-adds and a known number of vector loads and stores. The ratio of the two counts is
therefore exact: one operation removed, added or fused changes it, and so does a spilled register.

A scalar chain is held to three things instead: its loops do nothing to a float but fused multiply-adds, each takes the
result of the one before it, and a run of the very same code counts how many there are.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from microbench.errors import ContractError

_LABEL = re.compile(r"^(\.?L\w+):")
_JUMP = re.compile(r"^\s+(?:j\w+|b(?:\.\w+)?|cbn?z\s.*,|tbn?z\s.*,)\s+(\.?L\w+)\s*$")


@dataclass(frozen=True)
class Registers:
    """One kind of vector register: how its packed f32 multiply-adds and its memory operands are written."""

    name: str
    fma: re.Pattern[str]
    memory: re.Pattern[str]  # one match for each register loaded or stored; not constants, nor broadcasts of one value


def _x86(name: str) -> Registers:
    operand = rf"^(?!.*(?:%rip|\{{1to|broadcast))(?=.*%{name}\d).*\(%r"
    return Registers(name, re.compile(rf"^\s+vfn?m(?:add|sub)\d+[ps]+\s.*%{name}"), re.compile(operand))


# Widest first. On Arm a pair instruction moves two registers: each q or v of a load or store counts.
KINDS = (
    _x86("zmm"),
    Registers("z", re.compile(r"^\s+fn?m(?:la|ls|ad|sb)\s+z\d+\.s"), re.compile(r"(?<=[{ ])z\d+\.s(?=[ }].*\[)")),
    _x86("ymm"),
    _x86("xmm"),
    Registers("v", re.compile(r"^\s+fml[as]\s+v\d+\.4s"), re.compile(r"\bq\d+(?=.*\[)|(?<=[{ ])v\d+\.4s(?=[, }].*\[)")),
)
# What reads or writes an f32 register by arithmetic; operands follow, in AT&T order on x86 (the result last).
_SCALAR_FMA = re.compile(r"^\s+(?:vfn?m(?:add|sub)\d+ss|fn?m(?:add|sub)(?=\s+s\d))\s+(?P<operands>.*)$")
_SCALAR_OTHER = re.compile(r"^\s+(?:v?(?:mul|add|sub)ss\s|f(?:n?mul|add|sub)\s+s\d+)")
_SCALAR_MOVE = re.compile(r"^\s+(?:v?mov(?:ap[sd]|dqa|ss)|fmov|ldr)\s+(?P<operands>.*,.*)$")
_REGISTER = re.compile(r"%xmm\d+|\bs\d+\b")


COUNTED_LAPS = (1, 7)  # one too few for an unrolled loop, and one with a remainder


@dataclass(frozen=True)
class LoopContract:
    """Per element of the vector loop: this many multiply-adds, and this many registers loaded or stored."""

    fma: int
    memory: int


def require_loop(kernel: Callable[..., Any], contract: LoopContract) -> str:
    """Hold a kernel's vector loop to its contract; returns what was found: '32 fma zmm'. Raises ContractError."""
    return check_loop(assembly(kernel), contract, kernel.__name__)


def check_loop(text: str, contract: LoopContract, name: str) -> str:
    """As `require_loop`, of assembly in AT&T (x86) or Arm syntax."""
    loops = list(innermost_loops(text))
    for kind in KINDS:
        counts = [(_count(kind.fma, loop), _count(kind.memory, loop)) for loop in loops]
        counts = [(fma, memory) for fma, memory in counts if fma]
        for fma, memory in counts:
            if fma * contract.memory != memory * contract.fma:
                raise ContractError(
                    f"{name} declares {contract.fma} multiply-adds to {contract.memory} vector loads and stores, but "
                    f"its loop holds {fma} to {memory} ({kind.name}): one was removed, added, fused or spilled. Change "
                    "the kernel until LLVM keeps them."
                )
        if counts:
            return f"{max(counts)[0]} fma {kind.name}"
    raise ContractError(
        f"LLVM compiled {name} for this CPU without one packed multiply-add in a loop, so its time would not be that "
        "of SIMD arithmetic; the CPU may have no FMA instruction."
    )


def require_chain(kernel: Callable[..., Any], count: int) -> str:
    """Hold `kernel(value, factor, add, laps)` to `count` dependent fused f32 multiply-adds a lap.

    Returns what was found: '64 fma f32'. Raises ContractError.
    """
    check_chain(assembly(kernel), kernel.__name__)
    # From 0, times 1 plus 1: f32 counts the steps exactly, and the compiler knows none of the three.
    zero, one = np.float32(0), np.float32(1)
    steps = [float(kernel(zero, one, one, laps)) for laps in COUNTED_LAPS]
    if steps != [float(count * laps) for laps in COUNTED_LAPS]:
        raise ContractError(
            f"{kernel.__name__} declares {count} multiply-adds a lap, but did {' and '.join(f'{n:g}' for n in steps)} "
            f"in {' and '.join(str(laps) for laps in COUNTED_LAPS)} laps: its time is not that of the chain."
        )
    return f"{count} fma f32"


def check_chain(text: str, name: str) -> None:
    """The part of `require_chain` that the machine code shows, in AT&T (x86) or Arm syntax. Raises ContractError."""
    found = False
    for loop in innermost_loops(text):
        fused = [line for line in loop if _SCALAR_FMA.match(line)]
        if any(_SCALAR_OTHER.match(line) for line in loop):
            raise ContractError(
                f"{name} declares fused f32 multiply-adds, but LLVM left separate ones in its loop: its time is not "
                "that of the chain; the CPU may have no FMA instruction."
            )
        if fused and not _is_chain(loop):
            raise ContractError(
                f"{name} declares a chain, but not every multiply-add of its loop takes the result of the one before "
                "it: its time is not a latency."
            )
        found |= bool(fused)
    if not found:
        raise ContractError(f"{name} declares a loop of fused f32 multiply-adds, but LLVM made none.")


def _is_chain(loop: list[str]) -> bool:
    """True where each multiply-add reads a register that holds the result of the one before, around the loop."""
    held: set[str] = set()
    for turn in range(2):  # the first turn finds what the loop begins with
        for line in loop:
            if match := _SCALAR_FMA.match(line):
                registers = _REGISTER.findall(match["operands"])
                result = registers[-1] if "%" in line else registers[0]
                # On x86 the result's register is an operand too; on Arm it is only written.
                sources = registers if "%" in line else registers[1:]
                if held.isdisjoint(sources) and (turn or held):
                    return False
                held = {result}
            elif match := _SCALAR_MOVE.match(line):
                first, last = (part.strip() for part in match["operands"].rsplit(",", 1))
                source, target = (first, last) if "%" in line else (last, first)
                (held.add if source in held else held.discard)(target)
    return True


def assembly(kernel: Callable[..., Any]) -> str:
    """The machine code of every signature a `provable` kernel was called with."""
    return "\n".join(kernel.inspect_asm().values())  # type: ignore[attr-defined]


def innermost_loops(text: str) -> Iterator[list[str]]:
    """The bodies of the loops that hold no other: from a label to the last jump back to it."""
    lines = text.splitlines()
    labels: dict[str, int] = {}
    ends: dict[int, int] = {}
    for number, line in enumerate(lines):
        if label := _LABEL.match(line):
            labels[label.group(1)] = number
        elif (jump := _JUMP.match(line)) and jump.group(1) in labels:
            ends[labels[jump.group(1)]] = number
    for start, end in ends.items():
        if not any(start < other <= end for other in ends):
            yield lines[start : end + 1]


def _count(pattern: re.Pattern[str], lines: list[str]) -> int:
    return sum(len(pattern.findall(line)) for line in lines)
