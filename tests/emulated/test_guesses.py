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
from tests.emulated.forward_sm90a import PATH, config_of, in_blocks_of, run, without_turns

KEYS = 200  # four tiles of 64, visited from the last to the first
PLAIN = ForwardCase(heads_q=1, heads_kv=1, seq_q=40, seq_kv=KEYS, scaled=0.125)
SOFTMAX, ROWS = "row_softmax.cuh", "mask_rows.cuh"


@dataclass(frozen=True)
class Unserved:
    """Scores q * k by key, the only key that a mask shows, and the mistake that would serve such rows."""

    case: ForwardCase
    q: float
    k: np.ndarray
    mistake: Bug
    seen: int = 5
    hidden: int = 0xFF80  # of floats: -inf

    def inputs(self) -> Inputs:
        inputs = along_one(self.case, np.full(self.case.seq_q, self.q), self.k)
        if self.case.mask:
            biased = "bias" in self.case.mask
            inputs.mask[...] = np.uint16(self.hidden) if biased else 0
            inputs.mask[..., self.seen] = np.uint16(0) if biased else 1
        return inputs


UNSEEN = Bug(ROWS, "guessed_offset(", "state.most[h] != minus_infinity()", "true")
FINITE = Bug(SOFTMAX, "void weigh(", "forget_unseen(state, scale_log2());")
LOW = np.full(KEYS, -2048.0)  # -256, times log2(e): exp2 of it is 0
ROWS_OF = {
    "far": Unserved(
        PLAIN, 2.0**17, np.full(KEYS, 5.0 * 2.0**16), Bug(SOFTMAX, "bool guess(", "!is_far(state.offset[h])", "true")
    ),
    "grown beyond float16": Unserved(
        replace(PLAIN, dtype="float16"),
        1.0,
        np.where(np.arange(KEYS) < 64, 240.0, 0.0),
        Bug(SOFTMAX, "bool guess(", "added[h] <= kMostOfTile", "true"),
    ),
    "unseen, of bools": Unserved(replace(PLAIN, mask="full"), 1.0, LOW, UNSEEN),
    "unseen, of floats": Unserved(replace(PLAIN, mask="bias"), 1.0, LOW, UNSEEN),
    # -3.39e38, the least bfloat16, with which Transformers hides keys: finite until it is scaled.
    "hidden by a finite float": Unserved(replace(PLAIN, mask="bias", scaled=1.0), 1.0, LOW, FINITE, hidden=0xFF7F),
    "hidden by a finite float, Q scaled": Unserved(
        replace(PLAIN, heads_q=4, heads_kv=2, mask="shared bias"), 1.0, LOW, FINITE, hidden=0xFF7F
    ),
}


@cache
def kernel(name: str) -> Kernel:
    """With its mistake, whose warpgroups take no turns."""
    rows = ROWS_OF[name]
    config = without_turns(config_of(64))
    config = in_blocks_of(2, config) if "shared" in rows.case.mask else config
    return planted(Kernel(PATH, config, rows.case.problem), "forward_sm90a.cu", (rows.mistake,))


def wrong(name: str, mode: Mode, armed: int) -> str:
    rows, made = ROWS_OF[name], kernel(name)
    inputs = rows.inputs()
    made.library().plant(ctypes.c_int(armed))
    outputs = run(EmulatedDevice(mode), rows.case, made, inputs=inputs)
    if rows.case.dtype == "float16":
        return judge(rows.case, inputs, outputs)
    # The oracle forgives whatever the rounding of huge scores may do; here all that is seen weighs alike.
    values = rows.case.values(inputs.v).repeat(rows.case.heads_q // rows.case.heads_kv, axis=1)
    seen = values[:, :, rows.seen : rows.seen + 1] if rows.case.mask else values.mean(2, keepdims=True)
    return "" if np.allclose(rows.case.values(outputs.out), seen, atol=0.01) else "no mean of what is seen"


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
