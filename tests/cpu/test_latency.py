"""The sum of stall counts, on SASS written by hand."""

from microbench.sass.latency import Wait, static_latencies
from tests.cpu.listing import assemble, word


def test_stalls_add_up_from_the_writer_to_its_reader() -> None:
    chain = assemble(
        ("FFMA R0, R0, R1, R2", word(stall=2)),
        ("FFMA R4, R4, R1, R2", word(stall=3)),
        ("NOP", word(stall=15)),
        ("FFMA R0, R0, R1, R2", word(stall=4)),
        ("FFMA R4, R4, R1, R2", word(stall=1)),
    )
    assert static_latencies(chain) == (Wait(20, False), Wait(22, False))


def test_a_scoreboard_is_told_from_a_count() -> None:
    chain = assemble(
        ("MUFU.EX2 R0, R0", word(stall=1, write=0)),
        ("MUFU.EX2 R0, R0", word(stall=6, waits=(0,))),
        ("FADD R0, R0, R1", word(stall=1)),
    )
    assert static_latencies(chain) == (Wait(1, True), Wait(6, False))


def test_a_result_that_is_overwritten_before_it_is_read_does_not_count() -> None:
    chain = assemble(
        ("FADD R0, R1, R2", word(stall=9)), ("FADD R0, R3, R4", word(stall=4)), ("FADD R5, R0, R0", word(stall=1))
    )
    assert static_latencies(chain) == (Wait(4, False),)
    assert static_latencies(chain[:1]) == static_latencies(()) == ()


def test_any_register_of_a_wide_result_makes_a_reader() -> None:
    chain = assemble(("HMMA.16816.F32 R8, R0, R4, R8", word(stall=13)), ("FADD R20, R11, R1", word(stall=1)))
    assert static_latencies(chain) == (Wait(13, False),)
