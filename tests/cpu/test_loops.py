"""Which backward branches are loops."""

from microbench.sass.loops import loops
from tests.cpu.listing import assemble


def spans(*lines: str) -> list[tuple[int, int]]:
    return [(loop.start, loop.end) for loop in loops(assemble(*lines))]


def test_the_branch_to_itself_at_the_end_is_no_loop() -> None:
    assert spans("EXIT", "BRA 0x10", "NOP") == []


def test_a_nested_loop_stands_beside_the_outer_one() -> None:
    assert spans("MOV R0, RZ", "MOV R1, RZ", "IADD3 R1, R1, 0x1, RZ", "@P0 BRA 0x20", "@P1 BRA 0x10", "EXIT") == [
        (0x10, 0x40),
        (0x20, 0x30),
    ]


def test_a_rare_path_that_jumps_back_from_behind_exit_is_no_loop() -> None:
    assert spans("@P0 BRA 0x30", "IADD3 R1, R1, 0x1, RZ", "EXIT", "MOV R1, RZ", "BRA 0x10") == []


def test_a_uniform_branch_closes_a_loop_and_two_branches_to_one_head_make_one() -> None:
    assert spans("NOP", "FADD R0, R0, R1", "@P1 BRA 0x10", "BRA.U UP0, 0x10", "EXIT") == [(0x10, 0x30)]
