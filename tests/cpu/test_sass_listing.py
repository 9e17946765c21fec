"""A stretch of a listing, and its scoreboards."""

import pytest

from microbench.errors import InputError
from microbench.sass.listing import Wait, between, waits
from tests.cpu.listing import assemble, word

LISTING = assemble(
    "MOV R1, RZ",
    ("LDG.E R2, [R4.64]", word(write=0)),
    ("LDG.E R3, [R4.64]", word(write=0, read=1)),
    ("IADD3 R4, R4, 0x8, RZ", word(waits=(1,))),
    ("FADD R2, R2, R3", word(waits=(0,))),
    ("STG.E [R6.64], R2", word(read=0)),
    "EXIT",
)


def test_a_stretch_goes_from_the_first_head_to_the_next_last_one() -> None:
    assert [i.head for i in between(LISTING, "LDG", "STG")] == ["LDG", "LDG", "IADD3", "FADD", "STG"]
    assert [i.head for i in between(LISTING, "FADD", "STG", lead=1)] == ["IADD3", "FADD", "STG"]
    assert between(LISTING, "LDG", "EXIT", lead=9) == LISTING


@pytest.mark.parametrize(("first", "last"), [("HMMA", "STG"), ("STG", "LDG")])
def test_a_stretch_that_is_not_there_is_an_error(first: str, last: str) -> None:
    with pytest.raises(InputError, match="FADD"):
        between(LISTING, first, last)


def test_every_setter_has_the_next_waiter() -> None:
    assert waits(LISTING) == (Wait(2, 3, 1, "read"), Wait(1, 4, 0, "written"), Wait(2, 4, 0, "written"))


def test_a_scoreboard_is_waited_for_once() -> None:
    again = ("FADD R5, R2, R2", word(waits=(0,)))
    assert waits(assemble(("LDG.E R2, [R4.64]", word(write=0)), again, again)) == (Wait(0, 1, 0, "written"),)
