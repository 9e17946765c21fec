"""Pieces of work in processes of their own: one that fails costs itself, and the others are answered."""

import os
import time
from collections.abc import Callable

import pytest

from microbench.errors import EnvironmentLacks
from microbench.verify.processes import Failed, answers


def opened() -> Callable[[str], str]:
    """Answers with itself and its process, but for the words that make it fail."""

    def answer(piece: str) -> str:
        if piece.startswith("raise"):
            raise ValueError("so it was asked")
        if piece.startswith("die"):
            os._exit(3)
        if piece.startswith("hang"):
            time.sleep(600)
        return f"{piece} {os.getpid()}"

    return answer


def refused() -> Callable[[str], str]:
    raise OSError("no such device")


def lacking() -> Callable[[str], str]:
    raise EnvironmentLacks("NVRTC is not installed.")


def test_a_worker_that_lacks_something_ends_it_with_its_sentence() -> None:
    with pytest.raises(EnvironmentLacks, match=r"^NVRTC is not installed\.$"):
        list(answers([["a", "b"], ["c"]], lacking))


def test_a_failure_costs_one_piece_and_a_fresh_process_goes_on() -> None:
    found = dict(answers([["a", "raise", "b", "die", "c"], ["d"]], opened))
    assert found["raise"] == Failed("ValueError: so it was asked")
    assert found["die"] == Failed("its process ended with exit code 3")
    said = {piece: found[piece].split() for piece in "abcd"}
    assert all(words[0] == piece for piece, words in said.items()) and len({words[1] for words in said.values()}) == 4


def test_what_hangs_is_ended() -> None:
    found = dict(answers([["hang", "a"]], opened, limit_s=0.5))
    assert found["hang"] == Failed("no answer within 0.5 s; its process was ended") and found["a"].startswith("a ")


def test_a_family_that_fails_again_and_again_is_left() -> None:
    found = dict(answers([["raise 1", "raise 2", "raise 3", "a"]], opened))
    assert found["a"] == Failed("not tried: 3 before it failed")


def test_a_device_that_does_not_open_is_the_reason() -> None:
    assert dict(answers([["a"]], refused)) == {"a": Failed("OSError: no such device")}
