"""Which registers a SASS instruction writes and reads, from the way nvdisasm prints it.

nvdisasm names only the first register of a wide operand. Widths follow from the opcode: LDG.E.128 fills four, the
accumulators of HGMMA.64x256x16.F32 fill 128. Layouts of the tensor instructions: PTX ISA, 'Matrix fragments'.
"""

import re
from collections.abc import Iterator

Modifiers = tuple[str, ...]

_TOKEN = re.compile(r"(?<![A-Za-z0-9_])(?P<file>UR|UP|R|P)(?P<number>\d+)(?P<suffix>(?:\.[A-Za-z0-9_]+)*)")
_PREDICATE = re.compile(r"!?U?P[T\d]")
_REGISTER = re.compile(r"U?R(?:\d+|Z)(?:\..*)?")

# Heads whose first operand is a source: stores, synchronisation, asynchronous copies, branches.
_NO_RESULT = re.compile(
    r"ST[GSL]?|STSM|STTM|STAS|RED[GS]?|SUST|LDGSTS|LDGDEPBAR|UTMA[A-Z]+|UTC(?!ATOM)[A-Z0-9]+|UBLK[A-Z]+"
    r"|BAR|BRA|BRX|JMP|EXIT|RET|CALL|BSSY|BSYNC|BREAK|WARPSYNC|YIELD|NANOSLEEP|KILL|BPT|NOP|PMTRIG"
    r"|MEMBAR|DEPBAR|FENCE|ERRBAR|CGAERRBAR|UCGABAR_[A-Z]+|ARRIVES|WARPGROUP|CCTL[A-Z]*"
)
# Heads whose results are predicates only; elsewhere a leading predicate stands before the register result.
_PREDICATE_RESULT = re.compile(r"U?[A-Z]+SETP2?|U?PLOP3|FCHK|R2P")
_MEMORY = re.compile(r"LD[GSL]?|ST[GSL]?|ATOM[GS]?|RED[GS]?|LDGSTS")
_TEXTURE = ("TEX", "TLD", "TLD4")
_PAIRS = re.compile(r"D(ADD|FMA|MUL|SETP|MNMX)|F(FMA|ADD|MUL)2|LEPC|RET")

_FRAGMENT = re.compile(r"(?P<m>16|8)8(?P<k>\d+)|(?P<wide_m>16|8)x8x(?P<wide_k>\d+)")
_WARPGROUP = re.compile(r"64x(?P<n>\d+)x\d+")
_INPUT_BITS = {"TF32": 32, "S8": 8, "U8": 8, "S4": 4, "U4": 4, "E4M3": 8, "E5M2": 8, "E3M2": 8, "E2M3": 8, "E2M1": 8}
_DEFAULT_BITS = {"DMMA": 64, "BMMA": 1, "OMMA": 4}


def flow(head: str, modifiers: Modifiers, predicate: str, operands: tuple[str, ...]) -> tuple[set[str], set[str]]:
    """(registers written, registers read) of one instruction; the guarding predicate counts as read."""
    results = _result_count(head, operands)
    written: set[str] = set()
    read = {predicate.lstrip("!")} - {"", "PT", "UPT"}
    for index, operand in enumerate(operands):
        width = _width(head, modifiers, index, operands, results)
        registers = _named(operand, width, _bulk_width(head, modifiers, index), head, modifiers)
        (written if index < results else read).update(registers)
    if head == "R2P":
        written.update(f"P{number}" for number in range(7))
    if head == "P2R":
        read.update(f"P{number}" for number in range(7))
    return written, read


def kinds(operands: tuple[str, ...]) -> str:
    """What operands are, in order: 'R gdesc R' of HGMMA R24, gdesc[UR8], R24, gsb0. A scoreboard is none."""
    found = (_kind(operand) for operand in operands)
    return " ".join(kind for kind in found if kind)


def _kind(operand: str) -> str:
    bare = operand.lstrip("-!~|")
    if bare.startswith("gsb"):
        return ""
    token = _TOKEN.match(bare)
    if token or re.match(r"U?(RZ|P[T])\b", bare):
        return token["file"] if token else "R"
    before, bracket, _ = bare.partition("[")
    return (before or "memory") if bracket else "number"


def _result_count(head: str, operands: tuple[str, ...]) -> int:
    """How many leading operands are results."""
    if _NO_RESULT.fullmatch(head):
        return 0
    leading = _run_of_predicates(operands)
    if _PREDICATE_RESULT.fullmatch(head):
        return min(leading, 2)
    if leading == len(operands) or not _REGISTER.fullmatch(operands[leading]):
        return leading
    count = leading + 1
    rest = operands[count:]
    if rest and (head in _TEXTURE or (head == "LDG" and _REGISTER.fullmatch(rest[0]))):
        return count + 1  # two halves of a wide result: LDG.E.ENL2.256 R8, R4, [...]
    carries = 1 if head.startswith("VOTE") else 2  # VOTE.ANY R2, PT, P0 reads the last one
    followed = _run_of_predicates(rest[:carries])
    return count + followed if followed < len(rest) else count


def _run_of_predicates(operands: tuple[str, ...]) -> int:
    bare = [bool(_PREDICATE.fullmatch(operand)) and operand[0] != "!" for operand in operands]
    return bare.index(False) if False in bare else len(bare)


def _named(operand: str, width: int, bulk: int, head: str, modifiers: Modifiers) -> Iterator[str]:
    """The registers that one operand names: `width` of them as a value, as many as an address takes in brackets."""
    for token in _TOKEN.finditer(operand):
        file, first, before = token["file"], int(token["number"]), operand[: token.start()]
        count = width if file in ("R", "UR") else 1
        if before.count("[") > before.count("]"):
            count = bulk or _address_width(before.rpartition("[")[0], file, token["suffix"], head, modifiers)
        yield from (f"{file}{first + step}" for step in range(count))


def _address_width(space: str, file: str, suffix: str, head: str, modifiers: Modifiers) -> int:
    """Registers in a bracket: desc[UR4][R2.64] holds two pairs, tmem[UR4] and a shared address one register."""
    if space == "gdesc":
        return 2 if head.startswith("UTC") else 4  # one matrix descriptor, or the two of a wgmma
    if space == "desc" or suffix == ".64":
        return 2
    # Volta prints the 64-bit address of LDG.E as [R2], later ones as [R2.64]; [R2.U32+UR4] is an offset.
    return 2 if file == "R" and not suffix and "E" in modifiers and _MEMORY.fullmatch(head) else 1


def _bulk_width(head: str, modifiers: Modifiers, index: int) -> int:
    """Uniform registers in one bracket of a bulk copy, 0 for all other heads.

    UTMALDG.2D [shared address, barrier, x, y], [tensor map]; UBLKCP.S.G [shared address, barrier], [global address].
    """
    if head.startswith("UTMA"):
        dimensions = next((int(m[0]) for m in modifiers if re.fullmatch(r"[1-5]D", m)), 1)
        return 2 if index else dimensions + (2 if head == "UTMALDG" else 1)
    if head.startswith("UBLK"):
        return 1 if modifiers[:2] == ("G", "S") and index == 1 else 2
    return 0


def _width(head: str, modifiers: Modifiers, index: int, operands: tuple[str, ...], results: int) -> int:
    """Registers of the operand at `index`, were it a register."""
    if head.endswith("GMMA"):
        return _warpgroup_width(modifiers, index)
    if head.endswith("MMA"):
        return _matrix_width(head, modifiers, index)
    if head in ("LDSM", "STSM"):
        return int(modifiers[-1]) if modifiers[-1] in ("2", "4") else 1
    if head in ("LDTM", "STTM"):
        return _tensor_memory_width(modifiers)
    if head in ("F2F", "F2I", "I2F", "FRND"):
        return _conversion_width(head, modifiers, index < results)
    if head in _TEXTURE:
        return 2
    if head in ("IMAD", "UIMAD") and ("WIDE" in modifiers or "HI" in modifiers):
        addend = max(at for at, operand in enumerate(operands) if not _PREDICATE.fullmatch(operand))
        return 2 if index == addend or (index == 0 and "WIDE" in modifiers) else 1
    if {"128", "256", "F32x4"} & set(modifiers):
        return 4
    if index < results and {"TRANS64", "U4TO8"} & set(modifiers):
        return 2
    wide = {"64", "F32x2"} & set(modifiers) or _PAIRS.fullmatch(head)
    return 2 if wide or (head in ("CS2R", "CS2UR") and "32" not in modifiers) else 1


def _matrix_width(head: str, modifiers: Modifiers, index: int) -> int:
    """D, A, B, C of a warp's mma m x 8 x k: a thread holds a 32nd of each matrix. Index 4 is sparse metadata."""
    if head == "HMMA" and "884" in modifiers:
        return 2  # Volta's quad pairs: each STEP owns two accumulator registers, A and B are four halves
    shape = next((found for m in modifiers if (found := _FRAGMENT.fullmatch(m))), None)
    if shape is None or index > 3:
        return 1
    m, k = int(shape["m"] or shape["wide_m"]), int(shape["k"] or shape["wide_k"])
    given = [_INPUT_BITS[modifier] for modifier in modifiers if modifier in _INPUT_BITS and head != "OMMA"]
    bits = given[0] if given else _DEFAULT_BITS.get(head, 16)
    if index == 1:
        elements = m * k // (2 if "SP" in modifiers else 1)
    elif index == 2:
        elements = 8 * k
    else:
        elements = m * 8
        half = head in ("HMMA", "QMMA") and "F32" not in modifiers
        bits = 64 if head == "DMMA" else (16 if half else 32)
    return max(elements * bits // 1024, 1)


def _warpgroup_width(modifiers: Modifiers, index: int) -> int:
    """D, A, C of wgmma m64nNk: a thread holds a 128th of each matrix; A in registers is always four of them."""
    if index == 1:
        return 4
    shape = next((found for m in modifiers if (found := _WARPGROUP.fullmatch(m))), None)
    half = "F16" in modifiers and "F32" not in modifiers
    return int(shape["n"]) // (4 if half else 2) if shape else 1


def _tensor_memory_width(modifiers: Modifiers) -> int:
    """LDTM.x32 fills 32 registers; a cell of 128 or 256 bits per lane is two or four of them."""
    repeats = next((int(m[1:]) for m in modifiers if re.fullmatch(r"x\d+", m)), 1)
    cell = next((int(found[1]) // 64 for m in modifiers if (found := re.search(r"(128|256)b", m))), 1)
    return repeats * cell


def _conversion_width(head: str, modifiers: Modifiers, result: bool) -> int:
    wide_integer = "S64" in modifiers or "U64" in modifiers
    wide = "F64" in modifiers
    if head == "F2F":  # F2F.to.from
        wide = modifiers[0 if result else 1 :][:1] == ("F64",)
    elif (head, result) in (("I2F", False), ("F2I", True)):
        wide = wide_integer
    return 2 if wide else 1
