"""An arrival that may go ahead of a load from shared memory is found in machine code, and one that waits is none."""

import pytest

from microbench.sass.overtaken import overtaken
from tests.cpu.listing import assemble, word

LOAD = ("LDS R16, [UR16+0x228d0]", word(write=2))
ARRIVAL = "SYNCS.ARRIVE.TRANS64.RED.A1T0 RZ, [UR8], RZ"
WAITED = {
    "what uses the load": ("R2UR UR9, R16", word(waits=(2,))),
    "a fence": "MEMBAR.ALL.CTA",
    "another path": "BRA 0x400",
    "the end": "EXIT",
}


def test_an_arrival_behind_a_load_that_nothing_waits_for_overtakes_it() -> None:
    """The number of a tile, as two blocks of a Hopper kernel had it until 2026-11-27."""
    code = assemble(("LDS R2, [R4]", word(write=0)), LOAD, ("VIADD R14, R14, 0x1", word(waits=(0,))), ARRIVAL)
    ((load, arrival),) = overtaken(code)
    assert (load.text, arrival.text) == (LOAD[0], ARRIVAL)


@pytest.mark.parametrize("between", WAITED)
def test_an_arrival_that_waits_overtakes_nothing(between: str) -> None:
    assert not [*overtaken(assemble(LOAD, WAITED[between], ARRIVAL))]


def test_an_arrival_may_wait_for_the_load_itself() -> None:
    assert not [*overtaken(assemble(LOAD, (ARRIVAL, word(waits=(2,)))))]


@pytest.mark.parametrize("branch", ["@!P0 BRA 0x400", "BRA.U UP0, 0x400", "BRA.DIV UR8, 0x400"])
def test_a_branch_with_a_condition_waits_for_nothing(branch: str) -> None:
    code = assemble(("LDSM.16.M88.4 R4, [R2]", word(write=1)), branch, ARRIVAL)
    assert len([*overtaken(code)]) == 1


def test_other_loads_and_tests_of_a_phase_do_not_count() -> None:
    ahead = ("LDG.E R2, [R4.64]", word(write=0))
    assert not [*overtaken(assemble(ahead, ARRIVAL, LOAD, "SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R2], R5"))]
