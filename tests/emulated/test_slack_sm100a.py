"""Conditional rescaling of the sm100a forward: outputs are corrected where a maximum grows beyond 2^8, else not."""

import math

import numpy as np
import pytest

from attention.kernels.sm100a.forward.tensor_memory.arguments import shape_of
from microbench.emulator import EmulatedDevice
from microbench.emulator.tensor_trace import STORE, traced
from tests.emulated.forward_case import ForwardCase, along_one, judge
from tests.emulated.forward_sm100a import run
from tests.emulated.test_forward_sm100a import FEATURED

KEYS, WARPS, PART = 64, 4, 16  # of a tile; of the correction, 32 rows each; columns that are corrected at once
ALL = (True,) * WARPS


def corrections(maxima: tuple[float, ...], growing: tuple[bool, ...]) -> list[int]:
    """How often each warp of the correction rescales its rows, where `maxima` come tile after tile, in powers of two.

    `growing` says of which warps' rows; the others' scores are all 0. Asserts that outputs are right.
    """
    # With this scale a score is an exponent of two. Keys are walked from the last tile down.
    case = ForwardCase(heads_q=1, seq_q=32 * WARPS, seq_kv=KEYS * len(maxima), scaled=math.log(2))
    inputs = along_one(case, np.repeat(growing, 32).astype(float), np.repeat(maxima[::-1], KEYS))
    with traced() as trace:
        outputs = run(EmulatedDevice(), case, FEATURED, blocks=1, inputs=inputs)
    assert not judge(case, inputs, outputs)
    shape = shape_of(FEATURED.problem, FEATURED.config)
    first = 4 * shape.query_tiles
    stores = trace.rows["warp"][trace.rows["kind"] == STORE]
    return [int((stores == first + warp).sum()) * PART // shape.value_dim for warp in range(WARPS)]


@pytest.mark.parametrize("maxima", [(0, 0, 0), (0, 8), (0, 4, 8), (0, 8, 7, 8), (8, 0, -8)])
def test_a_maximum_that_grows_by_up_to_256_is_left_as_it_is(maxima: tuple[float, ...]) -> None:
    assert corrections(maxima, ALL) == [0] * WARPS


# 8.0625 is the number behind 8 in bfloat16. The third row grows against the maximum that was kept.
@pytest.mark.parametrize(
    ("maxima", "times"),
    [((0, 8.0625), 1), ((0, 64), 1), ((0, 5, 10), 1), ((0, 9, 16), 1), ((0, 9, 18), 2), ((0, 9, 18, 27), 3)],
)
def test_outputs_are_corrected_each_time_that_a_maximum_grows_by_more(maxima: tuple[float, ...], times: int) -> None:
    assert corrections(maxima, ALL) == [times] * WARPS


def test_warps_whose_rows_do_not_grow_correct_nothing() -> None:
    assert corrections((0, 9, 18), (False, True, False, False)) == [0, 2, 0, 0]
