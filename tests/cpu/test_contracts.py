"""For each kind of contract the right kernel passes; one op removed, one added and two fused fail."""

from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from microbench import paths, sass
from microbench.errors import ContractError
from microbench.machine.arch import by_name
from microbench.probe import OpCount, Overhead, SassContract
from microbench.sass import static_table
from microbench.sass.instruction import Instruction
from tests.cpu.listing import FITS, assemble, bracket, looped, word

TRY = "SYNCS.PHASECHK.TRANS64.TRYWAIT"

Region = Literal["straight", "loop"]
ARCH = by_name("sm90a")
COUNTER = Overhead(("IADD3", "ISETP"), 2, 2)


def violations(contract: SassContract, kernel: tuple[Instruction, ...]) -> tuple[str, ...]:
    return sass.check(contract, kernel, ARCH, FITS)


def chain(count: int, distance: int) -> list[str]:
    """FADDs of which each reads the one `distance` before it: that many independent chains, in turn."""
    return [f"FADD R{at % distance}, R{at % distance}, R70" for at in range(count)]


def fused(lines: list[str]) -> list[str]:
    return [lines[0].replace("FADD", "FADD3") + ", R70", *lines[2:]]


def contract(region: Region, count: int, distance: int | None) -> SassContract:
    overhead = (COUNTER,) if region == "loop" else ()
    return SassContract((OpCount("FADD", count),), region, distance, overhead)


WRAP = {"straight": bracket, "loop": looped}
kinds = st.tuples(st.sampled_from(sorted(WRAP)), st.integers(1, 4), st.integers(1, 4), st.booleans())


@given(kinds)
def test_right_kernel_passes_and_every_other_fails(kind: tuple[Region, int, int, bool]) -> None:
    region, distance, laps, dependent = kind
    count = distance * laps + (distance if laps == 1 else 0)
    lines, wrap = chain(count, distance), WRAP[region]
    declared = contract(region, count, distance if dependent else None)
    assert violations(declared, wrap(*lines)) == () and violations(declared, wrap(*lines[:-1]))
    assert violations(declared, wrap(*lines, lines[0])) and violations(declared, wrap(*fused(lines)))
    assert violations(declared, wrap("MOV R71, R72", *lines))


@given(st.sampled_from(sorted(WRAP)), st.integers(1, 4), st.integers(1, 4))
def test_another_dependence_distance_fails(region: str, found: int, declared: int) -> None:
    assert bool(violations(contract(region, 12, declared), WRAP[region](*chain(12, found)))) == (found != declared)


def test_two_chained_minima_fused_into_one_fail() -> None:
    declared = SassContract((OpCount("FMNMX", 4),), distance=1)
    assert violations(declared, bracket(*["FMNMX R0, R0, R1, !PT"] * 4)) == ()
    assert violations(declared, bracket(*["FMNMX3 R0, R0, R1, R2, !PT"] * 2)) == (
        "0 FMNMX where 4 are declared",
        "2 FMNMX3 not declared",
    )


def test_mixed_ops_are_counted_apart_and_chained_together() -> None:
    index_chase = ["LEA R4, R4, UR4, 0x2", "LDS R4, [R4]"] * 3
    declared = SassContract((OpCount("LEA", 3), OpCount("LDS", 3)), distance=1)
    assert violations(declared, bracket(*index_chase)) == ()
    assert violations(replace(declared, ops=(OpCount("LDS", 3),)), bracket(*index_chase))


def test_a_result_counts_through_overhead() -> None:
    declared = SassContract((OpCount("LDS", 3),), distance=1, overhead=(Overhead(("LEA",), 3, 3),))
    assert violations(declared, bracket(*["LEA R4, R4, UR4, 0x2", "LDS R4, [R4]"] * 3)) == ()
    assert violations(declared, bracket(*["LEA R6, R8, UR4, 0x2", "LDS R4, [R4]"] * 3)) == ()
    assert "reads no result" in violations(declared, bracket(*["LEA R4, R5, UR4, 0x2", "LDS R4, [R4]"] * 3))[0]


def test_loads_that_wait_through_a_sum_of_two_trips_before_are_not_independent() -> None:
    loads = ("IADD3 R6, R6, R9, RZ", "LOP3.LUT R9, R8, R8, RZ, 0x3c", "LDG.E R8, [R6.64]")
    sums = (Overhead(("LOP3",), 1, 1), Overhead(("IADD3", "ISETP"), 3, 3))
    declared = SassContract((OpCount("LDG.E", 1),), "loop", 0, sums)
    assert "where no op may wait for another" in violations(declared, looped(*loads))[0]
    assert violations(declared, looped("IADD3 R6, R6, 0x4, RZ", *loads[1:])) == ()


@pytest.mark.parametrize("other", ["LDG.E.64.STRONG.GPU", "LDG.E.64.CONSTANT", "LDG.E.LTC256B.64", "LDG.E", "LD.E.64"])
def test_every_modifier_of_an_operation_counts(other: str) -> None:
    declared = SassContract((OpCount("LDG.E.64", 1, also=("LDG.E.64.SYS",)),))
    for right in ("LDG.E.64", "LDG.E.64.SYS"):
        assert violations(declared, bracket(f"{right} R2, [R2.64]")) == ()
    assert "0 LDG.E.64 where 1" in violations(declared, bracket(f"{other} R2, [R2.64]"))[0]


def test_rounding_is_no_other_operation_and_operands_may_be() -> None:
    assert violations(SassContract((OpCount("FFMA", 1),)), bracket("FFMA.FTZ.RZ R0, R0, R1, R2")) == ()
    shared = SassContract((OpCount("HGMMA.64x8x16.F32", 1, operands="R gdesc R"),))
    assert violations(shared, bracket("HGMMA.64x8x16.F32 R24, gdesc[UR8], R24, gsb0")) == ()
    assert violations(shared, bracket("HGMMA.64x8x16.F32 R24, R32, gdesc[UR8], R24, gsb0"))


def test_width_and_form_are_part_of_what_overhead_names() -> None:
    assert sass.matches(assemble("LDG.E.64.SYS R2, [R2]")[0], "LDG.64")
    assert not sass.matches(assemble("LDG.E.SYS R2, [R2]")[0], "LDG.64")
    assert not sass.matches(assemble("IMAD.MOV.U32 R2, RZ, RZ, R3")[0], "IMAD")
    assert sass.matches(assemble("@!PT SHFL.IDX PT, RZ, RZ, RZ, RZ")[0], "NOP")
    assert not sass.matches(assemble("@!PT SHFL.IDX PT, RZ, RZ, RZ, RZ")[0], "SHFL")


def test_an_op_under_a_predicate_fails_unless_one_elected_thread_issues_it() -> None:
    declared = SassContract((OpCount("FADD", 2),))
    assert "may not run" in violations(declared, bracket("FADD R0, R0, R1", "@P0 FADD R0, R0, R1"))[0]
    assert violations(SassContract((OpCount("UTMALDG.2D", 1),)), bracket("@P0 UTMALDG.2D [UR12], [UR4]")) == ()


def test_overhead_is_as_declared_in_kind_and_number() -> None:
    declared = SassContract((OpCount("FADD", 1),), overhead=(Overhead(("NOP",), 1, 1),))
    assert violations(declared, bracket("FADD R0, R0, R1", "NOP")) == ()
    assert "2 instructions of overhead" in violations(declared, bracket("FADD R0, R0, R1", "NOP", "NOP"))[0]
    assert "0 instructions of overhead (NOP)" in violations(declared, bracket("FADD R0, R0, R1"))[0]


def test_operations_of_a_chain_stall_as_long_as_ptxas_leaves_them() -> None:
    declared = contract("straight", 3, 1)
    slow = [("FADD R0, R0, R70", word(stall=8))] * 3
    assert "stalls 8 cycles where ptxas leaves 4" in violations(declared, bracket(*slow))[0]
    assert violations(replace(declared, distance=None), bracket(*slow)) == ()


def test_without_the_table_no_stall_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "SHIPPED", tmp_path)
    assert static_table.fixed_latencies.__wrapped__("sm90a") == {}


def test_a_second_branch_in_a_timed_loop_fails() -> None:
    declared = SassContract((OpCount("FADD", 2),), "loop", 1, (COUNTER, Overhead(("BRA",), 0, 1)))
    skips = looped("FADD R0, R0, R70", "@P1 BRA 0x40", "FADD R0, R0, R70")
    assert any("second branch" in violation for violation in violations(declared, skips))


@pytest.mark.parametrize("beside", ["YIELD", "FADD R0, R0, R70"])
@pytest.mark.parametrize("asked_again", [TRY, ""])
def test_only_a_wait_that_is_asked_again_leaves_nothing_out(asked_again: str, beside: str) -> None:
    around = Overhead((TRY, "YIELD", "BRA"), 1, 6)
    declared = SassContract((OpCount("FADD", 2),), "loop", None, (COUNTER, around), asked_again=asked_again)
    add, ask, close = "FADD R0, R0, R70", f"{TRY} P1, [R4], R5", "ISETP.NE.AND P0, PT, R80, RZ, PT"
    body = (add, ask, "@!P1 BRA 0xb0", add, "IADD3 R80, R80, -0x1, RZ", close, "@P0 BRA 0x10")
    read = "CS2R R90, SR_CLOCKLO"
    again = (beside, ask, "@!P1 BRA 0xb0", "BRA 0x40")
    found = violations(declared, assemble(read, *body, read, "STG.E [R2.64], R0", "EXIT", *again, "BRA 0xf0"))
    left_out = any("second branch" in violation for violation in found)
    assert left_out == (asked_again == "" or beside != "YIELD")


@pytest.mark.parametrize("way_out", ["@P0 EXIT", "@P0 CALL.REL.NOINC 0x70"])
def test_the_only_way_out_of_a_loop_is_no_second_branch(way_out: str) -> None:
    declared = SassContract((OpCount("FADD", 2),), "loop", 1, (COUNTER, Overhead(("EXIT", "CALL"), 1, 1)), clocks=0)
    body = [i.text for i in looped(*chain(2, 1), clocks=False)][1:5]
    assert violations(declared, assemble("NOP", *body, way_out, "BRA 0x10", "EXIT")) == ()
    twice = violations(declared, assemble("NOP", *body, way_out, "@P1 BRA 0x10", "EXIT"))
    assert any("second branch" in violation for violation in twice)


def test_what_goes_on_behind_the_second_clock_read_fails_and_an_index_there_does_not() -> None:
    declared, straight = contract("straight", 2, 1), [i.text for i in bracket(*chain(2, 1))]

    def late(text: str) -> tuple[str, ...]:
        return violations(declared, assemble(*straight[:4], text, *straight[4:]))

    assert "behind the second clock read" in late("FADD R0, R0, R70")[0]
    assert late("FADD R4, R5, R70") == ()


def test_a_wait_for_a_scoreboard_from_outside_fails_and_one_from_inside_does_not() -> None:
    load, add = ("LDG.E.64 R2, [R2.64]", word(write=0)), SassContract((OpCount("FADD", 1),))
    late = assemble(load, "CS2R R90, SR_CLOCKLO", ("FADD R0, R2, R2", word(waits=(0,))), "CS2R R92, SR_CLOCKLO", "EXIT")
    assert "waits for scoreboard 0" in violations(add, late)[0]
    waited = ("CS2R R90, SR_CLOCKLO", word(waits=(0,)))
    assert violations(add, assemble(load, waited, "FADD R0, R2, R2", "CS2R R92, SR_CLOCKLO", "EXIT")) == ()
    inside = [load, ("LDG.E.64 R2, [R2.64]", word(write=0, waits=(0,)))]
    assert violations(SassContract((OpCount("LDG.E.64", 2),), distance=1), bracket(*inside)) == ()


def test_a_scoreboard_pending_from_outside_fails_even_where_it_is_raised_inside_too() -> None:
    loads = [("LDG.E.64 R2, [R2.64]", word(write=0)), ("LDG.E.64 R2, [R2.64]", word(write=0, waits=(0,)))]
    kernel = assemble(("LDG.E R8, [R6.64]", word(write=0)), *[(i.text, i.word) for i in bracket(*loads)])
    assert "waits for scoreboard 0" in violations(SassContract((OpCount("LDG.E.64", 2),), distance=1), kernel)[0]


@pytest.mark.parametrize("slow", ["S2UR UR4, SR_CLOCKLO", "S2R R90, SR_CLOCKLO"])
def test_a_slow_clock_read_fails(slow: str) -> None:
    kernel = assemble("CS2R R90, SR_CLOCKLO", "FADD R0, R0, R1", slow, "EXIT")
    assert "slow path" in violations(SassContract((OpCount("FADD", 1),)), kernel)[0]


def test_spills_and_local_memory_fail() -> None:
    declared, kernel = SassContract((OpCount("FADD", 1),)), bracket("FADD R0, R0, R1")
    assert "spilled 8 bytes" in sass.check(declared, kernel, ARCH, replace(FITS, spill_store_bytes=8))[0]
    assert "local memory" in violations(declared, assemble("STL [R1], R4", *[i.text for i in kernel]))[0]


def test_a_branch_in_or_into_a_straight_region_fails() -> None:
    declared = SassContract((OpCount("FADD", 1),), overhead=(Overhead(("BRA",), 0, 9),))
    assert "leaves the straight line" in violations(declared, bracket("FADD R0, R0, R1", "@P0 BRA 0x10"))[0]
    into = assemble("@P0 BRA 0x20", *[i.text for i in bracket("FADD R0, R0, R1")])
    assert "jumps between" in violations(declared, into)[0]


def test_a_straight_region_needs_two_clock_reads() -> None:
    declared = SassContract((OpCount("FADD", 1),))
    assert "has 1" in violations(declared, assemble("CS2R R90, SR_CLOCKLO", "FADD R0, R0, R1", "EXIT"))[0]


def test_an_unrolled_a_split_and_a_peeled_loop_fail() -> None:
    declared = contract("loop", 2, 1)
    assert "no loop between the clock reads holds FADD" in violations(declared, bracket(*chain(2, 1)))[0]
    twice = assemble("NOP", "FADD R0, R0, R1", "@P0 BRA 0x10", "FADD R0, R0, R1", "@P0 BRA 0x30", "EXIT")
    assert "2 loops hold FADD" in violations(replace(declared, clocks=0), twice)[0]
    texts = [i.text for i in looped(*chain(2, 1))]
    peeled = assemble(texts[0], *texts[1:-6], "@P0 BRA 0x10", "FADD R0, R0, R70", *texts[-5:])
    assert any("beside the timed loop" in violation for violation in violations(declared, peeled))


def test_a_loop_outside_the_clock_reads_fails_and_one_that_events_time_reads_none() -> None:
    declared = contract("loop", 2, 1)
    assert violations(replace(declared, clocks=0), looped(*chain(2, 1), clocks=False)) == ()
    assert "0 readings of the clock where 2" in violations(declared, looped(*chain(2, 1), clocks=False))[0]
    assert "2 readings of the clock where 0" in violations(replace(declared, clocks=0), looped(*chain(2, 1)))[0]
    late = [i.text for i in looped(*chain(2, 1), clocks=False)]
    kernel = assemble(*late[:-4], "CS2R R90, SR_CLOCKLO", "CS2R R92, SR_CLOCKLO", "EXIT")
    assert "no loop between the clock reads holds FADD" in violations(declared, kernel)[0]


def test_a_loop_that_warms_up_before_the_clock_is_not_the_timed_one() -> None:
    warm = ["NOP", *chain(3, 1), "@P1 BRA 0x10"]
    timed = [i.text.replace("BRA 0x10", "BRA 0x60") for i in looped(*chain(2, 1))]
    assert violations(contract("loop", 2, 1), assemble(*warm, *timed)) == ()


def two_loops(first: list[str], second: list[str]) -> tuple[Instruction, ...]:
    """One pair of clock reads around the loops of two roles, of which a warp runs one."""
    then = 3 + len(first)
    return bracket(*first, "@P0 BRA 0x10", "@P1 BRA 0x1000", *second, f"@P0 BRA 0x{16 * then:x}")


def test_each_role_of_a_kernel_keeps_its_own_contract() -> None:
    minima = SassContract((OpCount("FMNMX", 3),), "loop")
    declared = SassContract((OpCount("FADD", 2),), "loop", 1, beside=(minima,))
    other = ["FMNMX R9, R9, R70, PT"] * 3
    assert violations(declared, two_loops(chain(2, 1), other)) == ()
    assert violations(declared, two_loops(chain(2, 1), other[1:])) == ("2 FMNMX where 3 are declared",)
    assert "1 FADD not declared" in violations(declared, two_loops(chain(2, 1), [*other, *chain(1, 1)]))
    assert "holds FMNMX" in violations(declared, looped(*chain(2, 1)))[-1]
    with pytest.raises(ContractError, match="declared: 2 FADD, 3 FMNMX"):
        sass.require(declared, two_loops(chain(2, 1), other[1:]), ARCH, FITS)


def test_what_stands_behind_its_wait_fails() -> None:
    wait, work = OpCount("WARPGROUP.DEPBAR.LE", 1), OpCount("MUFU.EX2", 2)
    declared = SassContract((work, wait), "loop", None, (COUNTER,), before=((work.opcode, wait.opcode),))
    lines = ["MUFU.EX2 R4, -R4", "MUFU.EX2 R5, -R5", "WARPGROUP.DEPBAR.LE gsb0, 0x0"]
    assert violations(declared, looped(*lines)) == ()
    (found,) = violations(declared, looped(lines[0], lines[2], lines[1]))
    assert found.startswith("0030 MUFU.EX2 R5, -R5 stands behind a WARPGROUP.DEPBAR.LE")


def test_a_whole_kernel_is_a_region_without_exit_and_padding() -> None:
    empty = SassContract((), "kernel", overhead=(Overhead(("MOV",), 0, 1),))
    assert violations(empty, assemble("MOV R1, c[0x0][0x28]", "EXIT", "BRA 0x20", "NOP", "NOP")) == ()
    assert violations(empty, assemble("MOV R1, c[0x0][0x28]", "FADD R0, R0, R1", "EXIT", "BRA 0x30"))


def test_require_shows_what_was_declared_and_what_was_found() -> None:
    with pytest.raises(ContractError) as error:
        sass.require(contract("straight", 3, 1), bracket(*chain(2, 1), "NOP"), ARCH, FITS, "fadd_latency")
    counted = ("2 FADD where 3", "declared: 3 FADD", "found:    2 FADD, 1 NOP")
    assert all(part in str(error.value) for part in ("fadd_latency on sm90a", *counted, "0010  FADD"))
    assert sass.require(contract("straight", 2, 1), bracket(*chain(2, 1)), ARCH, FITS) is None
