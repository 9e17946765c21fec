"""Guesses of the Hopper forward: p by the largest scores of tiles before, kept where a row's sum says that they serve.

Each kind of row that a guess must not serve, with the check that finds it taken away.
"""

import ctypes
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest

from microbench.emulator import MODES, EmulatedDevice, Mode
from tests.emulated.forward_case import ForwardCase, Inputs, along_one, judge
from tests.emulated.forward_launch import Kernel
from tests.emulated.forward_planted import Bug, planted
from tests.emulated.forward_sm90a import PATH, config_of, run, without_turns

KEYS = 200  # four tiles of 64, visited from the last to the first
PLAIN = ForwardCase(heads_q=1, heads_kv=1, seq_q=40, seq_kv=KEYS, scaled=0.125)
CONSUMER, ROWS = "consume.cuh", "mask_rows.cuh"


@dataclass(frozen=True)
class Unserved:
    """Scores q * k by key, the only key that a mask shows, and the mistake that would serve such rows."""

    case: ForwardCase
    q: float
    k: np.ndarray
    mistake: Bug
    seen: int = 5

    def inputs(self) -> Inputs:
        inputs = along_one(self.case, np.full(self.case.seq_q, self.q), self.k)
        if self.case.mask:
            hidden = np.uint16(0xFF80) if "bias" in self.case.mask else 0
            shown = np.uint16(0) if "bias" in self.case.mask else 1
            inputs.mask[...] = hidden
            inputs.mask[..., self.seen] = shown
        return inputs


UNSEEN = Bug(ROWS, "guessed_offset(", "state.most[h] != minus_infinity()", "true")
LOW = np.full(KEYS, -2048.0)  # -256, times log2(e): exp2 of it is 0
ROWS_OF = {
    "far": Unserved(
        PLAIN, 2.0**17, np.full(KEYS, 5.0 * 2.0**16), Bug(CONSUMER, "guess()", "!is_far(state.offset[h])", "true")
    ),
    "grown beyond float16": Unserved(
        replace(PLAIN, dtype="float16"),
        1.0,
        np.where(np.arange(KEYS) < 64, 240.0, 0.0),
        Bug(CONSUMER, "guess()", "added[h] <= kMostOfTile", "true"),
    ),
    "unseen, of bools": Unserved(replace(PLAIN, mask="full"), 1.0, LOW, UNSEEN),
    "unseen, of floats": Unserved(replace(PLAIN, mask="bias"), 1.0, LOW, UNSEEN),
}


@cache
def kernel(name: str) -> Kernel:
    """With its mistake, whose warpgroups take no turns."""
    rows = ROWS_OF[name]
    return planted(Kernel(PATH, without_turns(config_of(64)), rows.case.problem), "forward_sm90a.cu", (rows.mistake,))


def wrong(name: str, mode: Mode, armed: int) -> str:
    rows, made = ROWS_OF[name], kernel(name)
    inputs = rows.inputs()
    made.library().plant(ctypes.c_int(armed))
    outputs = run(EmulatedDevice(mode), rows.case, made, inputs=inputs)
    if name != "far":
        return judge(rows.case, inputs, outputs)
    # The oracle forgives whatever the rounding of a far score may do; equal ones are equal in torch's float32.
    mean = rows.case.values(inputs.v).mean(2, keepdims=True)
    return "" if np.allclose(rows.case.values(outputs.out), mean, atol=0.01) else "no mean"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ROWS_OF)
def test_rows_that_no_guess_serves_are_right(emulator: None, name: str, mode: Mode) -> None:
    assert not wrong(name, mode, 0)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ROWS_OF)
def test_without_its_check_they_are_wrong(emulator: None, name: str, mode: Mode) -> None:
    assert wrong(name, mode, 1)


@pytest.mark.parametrize("growth", [6.0, 12.0, 12.9, 13.1, 15.0, 100.0])
def test_a_maximum_may_grow_by_any_power_from_one_tile_to_the_next(emulator: None, growth: float) -> None:
    case, made = replace(PLAIN, dtype="float16", scaled=float(np.log(2.0))), kernel("grown beyond float16")
    made.library().plant(ctypes.c_int(0))
    for many in (1, 64):
        inputs = along_one(
            case, np.ones(case.seq_q), np.where(np.arange(KEYS) % 64 < many, np.arange(KEYS)[::-1] // 64 * growth, 0.0)
        )
        assert not judge(case, inputs, run(EmulatedDevice("lazy"), case, made, inputs=inputs))
