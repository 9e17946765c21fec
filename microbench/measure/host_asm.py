"""The host's contracts: what must stand in the machine code that LLVM made of a kernel, read from exactly what runs.

LLVM may unroll and interleave a loop, so how many elements one round serves is not known; but for each element a kernel
does a known number of multiply-adds and a known number of vector loads and stores. The ratio of the two counts is
therefore exact: one operation removed, added or fused changes it, and so does a spilled register.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

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
_SCALAR_FMA = re.compile(r"^\s+(?:vfn?m(?:add|sub)\d+ss\s|fn?m(?:add|sub)\s+s\d+)", re.MULTILINE)
_SCALAR_MULTIPLY = re.compile(r"^\s+(?:v?mulss\s|fmul\s+s\d+)", re.MULTILINE)


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


def require_scalar(kernel: Callable[..., Any], count: int) -> str:
    """Hold a scalar chain to loops of `count` fused f32 multiply-adds, and no separate multiply.

    LLVM may unroll: every loop must hold a multiple of `count`, and the shortest, which does what is left over, just
    `count`. Returns what was found. Raises ContractError.
    """
    loops = ["\n".join(loop) for loop in innermost_loops(assembly(kernel))]
    found = [(len(_SCALAR_FMA.findall(loop)), len(_SCALAR_MULTIPLY.findall(loop))) for loop in loops]
    arithmetic = [counts for counts in found if any(counts)]
    fused = sorted(fused for fused, _ in arithmetic)
    if not fused or fused[0] != count or any(n % count for n in fused) or any(split for _, split in arithmetic):
        raise ContractError(
            f"{kernel.__name__} declares a loop of {count} fused f32 multiply-adds, but LLVM made loops of "
            f"{arithmetic or 'none'} (fused, separate): its time is not that of the chain."
        )
    return f"{count} fma f32"


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
