"""The emulator's order of warps: who is favoured runs before all others, who is starved after them."""

import numpy as np
import pytest

from microbench.emulator import MODES, EmulatedDevice, Mode
from tests.emulated.forward_case import Array

# Each warp takes numbers, between which others may run.
SOURCE = """
extern "C" __global__ void take(int* next, int* taken) {
  for (int i = 0; i < 4; ++i) {
    if (threadIdx.x % 32 == 0) taken[threadIdx.x / 32 * 4 + i] = atomicAdd(next, 1);
    __syncwarp();
  }
}
"""
WARPS, TIMES = 8, 4


def taken(device: EmulatedDevice) -> Array:
    """The numbers of each warp."""
    next_number, numbers = device.full(1, 0, np.int32), device.full((WARPS, TIMES), -1, np.int32)
    device.load(SOURCE, "take.cu", kernel="take")((1,), (32 * WARPS,), (next_number, numbers))
    return numbers


@pytest.mark.parametrize("mode", MODES)
def test_favoured_warps_run_first_and_starved_ones_last(mode: Mode) -> None:
    numbers = taken(EmulatedDevice(mode, favoured_warps=range(5, 7), starved_warps=range(2)))
    assert sorted(numbers[5:7].ravel()) == [*range(2 * TIMES)]
    assert sorted(numbers[:2].ravel()) == [*range((WARPS - 2) * TIMES, WARPS * TIMES)]


def test_without_an_order_warps_take_turns() -> None:
    assert (np.ptp(taken(EmulatedDevice()), axis=1) >= WARPS).all()
