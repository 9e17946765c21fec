"""One SASS instruction: its words, its scheduling control bits, and the registers it writes and reads.

The control bits of the 128-bit word (Volta to Blackwell), as CuAssembler, turingas and Mesa NAK agree on them:

    105-108  stall           cycles before the next issue
    109      yield           0 = the scheduler may turn to another warp
    110-112  write barrier   scoreboard raised until the result stands; 7 = none
    113-115  read barrier    scoreboard raised until the operands are read; 7 = none
    116-121  wait mask       scoreboards 0 to 5 to wait for
    122-125  reuse           operand slots kept in the reuse cache
"""

import re
from dataclasses import dataclass
from functools import cached_property

from microbench.sass import operands

STALL_BIT, STALL_MAX = 105, 15
_NO_BARRIER = 7
_LINE = re.compile(r"^\s*/\*(?P<address>[0-9a-f]{4,})\*/\s+(?P<text>.*?)\s*;?\s*$", re.MULTILINE)
_WORDS = re.compile(r"(?:@(?P<predicate>!?U?P[T\d])\s+)?(?P<opcode>\S+)\s*(?P<operands>.*)", re.DOTALL)


@dataclass(frozen=True)
class Control:
    stall: int
    yield_: bool
    write_barrier: int | None
    read_barrier: int | None
    wait_mask: int
    reuse: int

    @classmethod
    def of(cls, word: int) -> "Control":
        """The control bits of a 128-bit instruction word."""
        write, read = word >> 110 & 7, word >> 113 & 7
        return cls(
            stall=word >> STALL_BIT & STALL_MAX,
            yield_=not word >> 109 & 1,
            write_barrier=None if write == _NO_BARRIER else write,
            read_barrier=None if read == _NO_BARRIER else read,
            wait_mask=word >> 116 & 0x3F,
            reuse=word >> 122 & 0xF,
        )

    @property
    def waits(self) -> frozenset[int]:
        return frozenset(number for number in range(6) if self.wait_mask >> number & 1)

    @property
    def sets(self) -> frozenset[int]:
        return frozenset(b for b in (self.write_barrier, self.read_barrier) if b is not None)


@dataclass(frozen=True)
class Instruction:
    """`text` is nvdisasm's line without address and semicolon; `predicate` is '!P0' or ''."""

    address: int
    opcode: str
    predicate: str
    operands: tuple[str, ...]
    text: str
    control: Control
    word: int

    @classmethod
    def parse(cls, address: int, text: str, word: int) -> "Instruction":
        """One line of nvdisasm and its 128-bit word. Raises ValueError where the line is no instruction."""
        words = _WORDS.fullmatch(text)
        if words is None:
            raise ValueError(f"{text!r} is no SASS instruction")
        parts = tuple(part.strip() for part in words["operands"].split(",") if part.strip())
        return cls(address, words["opcode"], words["predicate"] or "", parts, text, Control.of(word), word)

    @property
    def head(self) -> str:
        """LDG of LDG.E.64."""
        return self.opcode.partition(".")[0]

    @property
    def modifiers(self) -> tuple[str, ...]:
        """('E', '64') of LDG.E.64."""
        return tuple(self.opcode.split(".")[1:])

    @property
    def writes(self) -> frozenset[str]:
        """Registers written: R4, UR5, P0; a 64-bit result in R4 is R4 and R5. RZ and PT are nobody's."""
        return self._flow[0]

    @property
    def reads(self) -> frozenset[str]:
        """Registers read, the guarding predicate among them."""
        return self._flow[1]

    @cached_property
    def _flow(self) -> tuple[frozenset[str], frozenset[str]]:
        written, read = operands.flow(self.head, self.modifiers, self.predicate, self.operands)
        return frozenset(written), frozenset(read)

    @property
    def waits(self) -> frozenset[int]:
        """Scoreboards it waits for, by its wait mask or because it is a DEPBAR."""
        named = [int(o[2:]) for o in self.operands if self.head == "DEPBAR" and re.fullmatch(r"SB\d", o)]
        return self.control.waits | frozenset(named)

    @property
    def reads_clock(self) -> bool:
        return "SR_CLOCKLO" in self.operands

    @property
    def conditional(self) -> bool:
        """Whether a branch may not be taken: by its predicate, or by an operand as in BRA.U UP0, 0x1b0."""
        return bool(self.predicate) or len(self.operands) > 1

    @property
    def target(self) -> int | None:
        """Where a direct branch goes; None for everything else."""
        if self.head not in ("BRA", "JMP") or not self.operands:
            return None
        last = self.operands[-1]
        return int(last, 16) if last.startswith("0x") else None


def parse(listing: str, code: bytes) -> tuple[Instruction, ...]:
    """A listing of nvdisasm and the code it was made from, as instructions. Raises ValueError where they disagree."""
    lines = {int(line["address"], 16): line["text"] for line in _LINE.finditer(listing)}
    if sorted(lines) != list(range(0, len(code), 16)):
        raise ValueError(f"the listing has {len(lines)} instructions, the code {len(code) // 16}")
    return tuple(
        Instruction.parse(address, text, int.from_bytes(code[address : address + 16], "little"))
        for address, text in sorted(lines.items())
    )
