"""Who issues when: the usual path through branches, units, scoreboards, barriers and warps beside one another."""

from dataclasses import replace

import pytest

from microbench.errors import BuildError, UnknownGpu
from microbench.issue.path import through_loop, usual
from microbench.issue.pipes import SCHEDULERS, tensor_flops, use_of
from microbench.issue.rates import Rates, measured, published
from microbench.issue.sm import pace, passage
from microbench.results.profile import Profile
from microbench.sass.instruction import Instruction
from microbench.sass.loops import loops
from tests.cpu.listing import assemble, word

VOLTA = published()
HOPPER = measured(Profile.load("h200-sxm-141gb"))
MMA = "HMMA.16816.F32 R4, R8, R12, R4"


def lines(path: tuple[Instruction, ...]) -> list[str]:
    return [each.text for each in path]


def cycles(*code: str | tuple[str, int], rates: Rates = HOPPER, warps: int = 4, blocks: int = 1) -> float:
    return pace(assemble(*code), rates, warps, blocks).cycles


def test_a_branch_around_work_is_not_taken_and_one_around_a_rare_path_is() -> None:
    rare = ("@P0 BRA 0x30", "FMUL R0, R0, R1", "FMUL R2, R2, R1")
    (loop,) = loops(assemble("NOP", *rare[:2], "@P1 BRA 0x50", MMA, "@P2 BRA 0x10", "EXIT"))
    assert lines(through_loop(loop)) == ["@P0 BRA 0x30", "@P1 BRA 0x50", MMA, "@P2 BRA 0x10"]


def test_a_loop_inside_is_passed_once() -> None:
    code = assemble("NOP", "FADD R0, R0, R1", "@P0 BRA 0x10", "EXIT")
    assert usual(code, 0, {0x30}) == code


def test_a_stretch_that_does_not_end_is_an_error() -> None:
    with pytest.raises(BuildError, match="No path leads from instruction 0x0"):
        usual(assemble("NOP", "BRA 0x0", "EXIT"), 0, {0x20})


def test_operations_of_tensor_instructions() -> None:
    texts = (
        MMA,
        "HMMA.1688.F32 R4, R8, R12, R4",
        "HMMA.884.F32.F32.STEP2 R4, R8.ROW, R12.COL, R4",
        "FFMA R0, R1, R2, R3",
    )
    assert [tensor_flops(each) for each in assemble(*texts)] == [4096, 2048, 512, 0]


def test_volta_steps_one_product_in_the_published_time_and_hopper_one_in_six_clocks() -> None:
    step, whole = assemble("HMMA.884.F32.F32.STEP0 R4, R8.ROW, R12.COL, R4", MMA)
    assert 4 * use_of(step, VOLTA, 0).cycles == pytest.approx(8.382812, rel=1e-3)
    assert use_of(whole, HOPPER, 0).cycles == pytest.approx(6, rel=1e-3)


@pytest.mark.parametrize(
    ("text", "wavefronts"),
    [("LDS.U.128 R0, [R1]", 4), ("LDS.64 R0, [R1]", 2), ("STS [R1], R0", 1), ("LDSM.16.MT88.4 R0, [R1]", 4)],
)
def test_an_access_takes_the_port_for_its_bytes(text: str, wavefronts: int) -> None:
    (access,) = assemble(text)
    use = use_of(access, replace(HOPPER, smem_bytes_per_clk=128.0), 0)
    assert (use.pipe, use.cycles) == ("port", wavefronts)
    assert use.latency == HOPPER.smem_cycles + (wavefronts - 1) * HOPPER.conflict_cycles


def test_the_tensor_core_paces_independent_products_however_many_warps() -> None:
    for blocks in (1, 2, 3):
        assert cycles((MMA, word(stall=1)), blocks=blocks) == pytest.approx(6 * blocks, rel=1e-3)


def test_a_stall_count_delays_its_warp_and_not_the_others() -> None:
    slow = ("FFMA R0, R1, R2, R3", word(stall=12))
    assert cycles(slow) == pytest.approx(12) == cycles(slow, blocks=2)


def test_a_scoreboard_holds_its_reader_until_the_result_stands() -> None:
    load, use = ("LDS R0, [R1]", word(stall=1, write=0)), ("FADD R2, R2, R0", word(stall=1, waits=(0,)))
    assert cycles(load, use, warps=1) == pytest.approx(HOPPER.smem_cycles + 1, abs=0.1)


def test_the_port_is_one_for_all_four_schedulers() -> None:
    load, use = ("LDS.128 R0, [R1]", word(stall=1, write=0)), ("FADD R4, R4, R0", word(stall=1, waits=(0,)))
    alone, four = (cycles(*[load] * 4, use, warps=warps) for warps in (1, SCHEDULERS))
    assert alone < 4 * 4 * SCHEDULERS <= four


def test_an_instruction_beside_a_product_takes_a_clock_of_the_registers() -> None:
    alone = cycles((MMA, word(stall=1)))
    assert cycles((MMA, word(stall=1)), ("FFMA R0, R1, R2, R3", word(stall=1))) == pytest.approx(alone + 1, rel=0.01)


def test_a_barrier_lets_nobody_go_before_the_last_and_has_its_own_time() -> None:
    work, meet = ("FFMA R0, R1, R2, R3", word(stall=10)), ("BAR.SYNC 0x0", word(stall=1))
    assert cycles(work, meet, warps=8) == pytest.approx(11 + HOPPER.barrier_cycles, abs=2)


def test_a_copy_is_waited_for_by_its_group() -> None:
    copy = ("LDGSTS.E.BYPASS.128 [R0], [R2.64]", word(stall=1))
    group, wait = ("LDGDEPBAR", word(stall=1, write=0)), ("DEPBAR.LE SB0, 0x0", word(stall=1))
    assert passage(assemble(copy, wait), HOPPER, 1, 500) < 100 < passage(assemble(copy, group, wait), HOPPER, 1, 500)


def test_what_is_busy_is_counted_a_trip() -> None:
    found = pace(assemble((MMA, word()), ("MUFU.EX2 R0, R1", word())), HOPPER, 8, 1)
    busy = {each.unit: each.cycles for each in found.taken}
    assert busy["tensor"] == pytest.approx(12, rel=1e-3) and busy["special"] == pytest.approx(16, rel=1e-3)
    assert busy["issue"] == 4


def test_another_clock_leaves_memory_as_it_is() -> None:
    slower = HOPPER.at(HOPPER.clock_hz / 2)
    assert slower.l2_bytes_per_clk * slower.clock_hz == pytest.approx(HOPPER.l2_bytes_per_clk * HOPPER.clock_hz)
    assert slower.tensor_flops_per_clk == HOPPER.tensor_flops_per_clk


def test_published_rates_are_of_the_v100_alone() -> None:
    assert (VOLTA.sm_count, VOLTA.clock_hz, VOLTA.conflict_cycles) == (80, 1.38e9, 2)
    with pytest.raises(UnknownGpu, match="b42"):
        published("b42")
