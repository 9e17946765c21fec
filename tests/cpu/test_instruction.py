"""Control bits, and the registers an instruction writes and reads."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from microbench.sass import instruction
from tests.cpu.listing import assemble, word


@given(
    stall=st.integers(0, 15),
    write=st.integers(0, 7),
    read=st.integers(0, 7),
    waits=st.sets(st.integers(0, 5)),
    reuse=st.integers(0, 15),
)
def test_every_control_field_comes_back(stall: int, write: int, read: int, waits: set[int], reuse: int) -> None:
    control = instruction.Control.of(word(stall, write, read, tuple(waits), reuse) | 0xFFFFFFFF)
    assert (control.stall, control.reuse, control.waits, control.yield_) == (stall, reuse, waits, True)
    assert control.write_barrier == (None if write == 7 else write) and control.sets == {write, read} - {7}


def registers(first: int, count: int) -> set[str]:
    return {f"R{first + step}" for step in range(count)}


@pytest.mark.parametrize(
    ("text", "writes", "reads"),
    [
        ("FFMA R0, R0.reuse, -R5, |R4|", {"R0"}, {"R0", "R5", "R4"}),
        ("@!P0 MOV R3, RZ", {"R3"}, {"P0"}),
        ("LDG.E.64 R2, [R2.64+0x8]", {"R2", "R3"}, {"R2", "R3"}),
        ("LDG.E.64.SYS R2, [R2]", {"R2", "R3"}, {"R2", "R3"}),
        ("LDG.E.128 R4, desc[UR4][R2.64]", registers(4, 4), {"UR4", "UR5", "R2", "R3"}),
        ("LDS R5, [R3+UR4]", {"R5"}, {"R3", "UR4"}),
        ("STG.E.64 [R2.64], R6", set(), {"R2", "R3", "R6", "R7"}),
        ("IADD3 R6, P0, PT, -R4, R6, RZ", {"R6", "P0"}, {"R4", "R6"}),
        ("IADD3.X R7, PT, PT, ~R5, R7, RZ, P0, !PT", {"R7"}, {"R5", "R7", "P0"}),
        ("ISETP.GE.AND P0, PT, R3, 0x1, P2", {"P0"}, {"R3", "P2"}),
        ("VOTE.ANY R2, PT, P0", {"R2"}, {"P0"}),
        ("SHFL.UP P1, R3, R10, 0x1, RZ", {"P1", "R3"}, {"R10"}),
        ("IMAD.WIDE.U32 R4, R0, R7, R2", {"R4", "R5"}, {"R0", "R7", "R2", "R3"}),
        ("DFMA R4, R4, c[0x2][0x0], R8", {"R4", "R5"}, {"R4", "R5", "R8", "R9"}),
        ("F2F.F64.F32 R12, R2", {"R12", "R13"}, {"R2"}),
        ("I2F.S64 R5, R2", {"R5"}, {"R2", "R3"}),
        ("CS2R R6, SR_CLOCKLO", {"R6", "R7"}, set()),
        ("CS2R.32 R6, SR_CLOCKLO", {"R6"}, set()),
        ("LDSM.16.MT88.4 R48, [R95+0x4000]", registers(48, 4), {"R95"}),
        ("HMMA.884.F32.F32.STEP1 R10, R14.reuse.ROW, R16.COL, R10", registers(10, 2), {*registers(10, 2)}
         | registers(14, 2) | registers(16, 2)),
        ("HMMA.16816.F32 R8, R4, R12, R8", registers(8, 4), registers(8, 4) | registers(4, 4) | registers(12, 2)),
        ("HMMA.16816.F16 R8, R4, R10, R8", registers(8, 2), registers(8, 2) | registers(4, 4) | registers(10, 2)),
        ("IMMA.16832.S8.S8 R8, R4.ROW, R12.COL, R8", registers(8, 4), registers(8, 4) | registers(4, 4)
         | registers(12, 2)),
        ("HGMMA.64x256x16.F32.BF16 R24, gdesc[UR8], R24, gsb0", registers(24, 128),
         registers(24, 128) | {"UR8", "UR9", "UR10", "UR11"}),
        ("HGMMA.64x64x16.F16 R24, R56, gdesc[UR4], R24", registers(24, 16),
         registers(24, 16) | registers(56, 4) | {"UR4", "UR5", "UR6", "UR7"}),
        ("LDTM.x32 R4, tmem[UR6]", registers(4, 32), {"UR6"}),
        ("UTMALDG.2D [UR12], [UR4]", set(), {"UR12", "UR13", "UR14", "UR15", "UR4", "UR5"}),
        ("FFMA2 R4, R4.F32x2.HI_LO, R6.F32x2.HI_LO, R8.F32x2.HI_LO", registers(4, 2), registers(4, 6)),
    ],
)  # fmt: skip
def test_registers_of(text: str, writes: set[str], reads: set[str]) -> None:
    (parsed,) = assemble(text)
    assert (parsed.writes, parsed.reads) == (writes, reads)


def test_a_branch_has_its_target_and_a_depbar_its_scoreboard() -> None:
    branch, uniform, depbar, _ = assemble("@P0 BRA 0x40", "BRA.U UP0, 0x1b0", "DEPBAR.LE SB3, 0x0", "EXIT")
    assert (branch.target, uniform.target, depbar.target) == (0x40, 0x1B0, None) and depbar.waits == {3}


def test_a_listing_that_misses_a_line_is_refused() -> None:
    with pytest.raises(ValueError, match="listing has 1 instructions, the code 2"):
        instruction.parse("/*0000*/ EXIT ;\n", bytes(32))
