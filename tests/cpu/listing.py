"""SASS written by hand: instructions for tests that need no compiler."""

from microbench.sass.cubin import Resources
from microbench.sass.instruction import Instruction

FITS = Resources(
    registers=32, smem_bytes=0, local_bytes=0, spill_store_bytes=0, spill_load_bytes=0, barriers=0, code_bytes=0
)


def word(stall: int = 1, write: int = 7, read: int = 7, waits: tuple[int, ...] = (), reuse: int = 0) -> int:
    """A 128-bit word that holds nothing but control bits."""
    mask = sum(1 << board for board in waits)
    return stall << 105 | write << 110 | read << 113 | mask << 116 | reuse << 122


def assemble(*lines: str | tuple[str, int]) -> tuple[Instruction, ...]:
    """Instructions at 0x0, 0x10, ...; a line may bring its control word."""
    pairs = [line if isinstance(line, tuple) else (line, word(stall=4)) for line in lines]
    return tuple(Instruction.parse(16 * at, text, bits) for at, (text, bits) in enumerate(pairs))


def bracket(*lines: str | tuple[str, int]) -> tuple[Instruction, ...]:
    """A kernel that reads the clock before and after these lines."""
    return assemble("CS2R R90, SR_CLOCKLO", *lines, "CS2R R92, SR_CLOCKLO", "STG.E [R2.64], R0", "EXIT", "NOP")


def looped(*lines: str, trips: str = "IADD3 R80, R80, -0x1, RZ", clocks: bool = True) -> tuple[Instruction, ...]:
    """A kernel whose loop has these lines as its body, a counter, a compare and the closing branch."""
    read = ("CS2R R90, SR_CLOCKLO",) if clocks else ("MOV R90, RZ",)
    close = f"@P0 BRA 0x{16:x}"
    compare = "ISETP.NE.AND P0, PT, R80, RZ, PT"
    return assemble(*read, *lines, trips, compare, close, *read, "STG.E [R2.64], R0", "EXIT", "BRA 0x1000", "NOP")
