"""Scores of the Hopper forward that begin as their mask: right, NaN under bools too, and planted mistakes are found."""

import ctypes
import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from microbench.emulator import MODES, EmulatedDevice, Mode
from tests.emulated.forward_case import ForwardCase, inputs_of, judge
from tests.emulated.forward_launch import Kernel
from tests.emulated.forward_planted import Bug, outcome, planted, wrong_of
from tests.emulated.forward_sm90a import PATH, config_of, in_blocks_of, run, without_turns

SHARED = ForwardCase(batch=2, heads_q=4, heads_kv=2, seq_q=200, spread=3.0, mask="shared bias")
CONFIG = in_blocks_of(2, config_of(64))
CASES = {
    "floats, Q scaled": (SHARED, CONFIG),
    "floats, Q scaled and in registers": (SHARED, in_blocks_of(2, config_of(64, q_in_registers=1))),
    "floats, any scale": (replace(SHARED, scaled=0.11), CONFIG),
    "floats of 16 bits": (replace(SHARED, dtype="float16"), CONFIG),
    "floats, head dim 128": (replace(SHARED, head_dim=128, right=0), CONFIG),
    "bytes": (replace(SHARED, mask="shared"), CONFIG),
    "bytes of each head, causal": (replace(SHARED, mask="full", right=0), CONFIG),
}
CONSUMER, SOFTMAX, SCALE = "consume.cuh", "row_softmax.cuh", "scale_queries.cuh"
ROWS, PRODUCTS = "mask_rows.cuh", "products.cuh"
STEP = "One tile of keys after the first"
OF_FLOATS = {
    "Q is read before all have scaled it": Bug(
        CONSUMER, "void prepare_queries()", "ptx::barrier_sync(1 + kWarpgroups + group, 128);", says="race: "
    ),
    "products do not see what was scaled": Bug(
        CONSUMER, "void prepare_queries()", "ptx::fence_proxy_async();", says="without fence.proxy.async"
    ),
    "half of Q is scaled": Bug(SCALE, "void scale_rows(", "at < bytes", "at < bytes / 2"),
    "a scale of half as much": Bug(SCALE, "float power_of_two(", "1.25f", "0.75f"),
    "products forget the mask": Bug(PRODUCTS, "wgmma_bf16_ss(s.at", "kSeeded || i > 0", "i > 0"),
    "no tile but the first begins as its mask": Bug(CONSUMER, STEP, "mask.seed(s, launch, at);", says="deadlock: "),
    "rows are not left": Bug(ROWS, "void seed(", "leave(at);", says="deadlock: "),
    "exponents count raw scores": Bug(SOFTMAX, "float scale_log2()", "kLog2E", "launch.scale_log2"),
}
OF_BYTES = {
    "NaN are not hidden": Bug(ROWS, "hide_again(", "hide_by_memory(s, launch, work, row, column);"),
    "NaN is no doubt": Bug(ROWS, "bool doubtful(", "!(at[h] < kHuge)", "at[h] >= kHuge"),
    "a guess of NaN is kept": Bug(SOFTMAX, "bool guess(", "added[h] <= kMostOfTile", "!(added[h] > kMostOfTile)"),
    "a second key is seen": Bug("features/mask.cuh", "void seed_two(", "kUnseen", "0u"),
    "a first key is seen": Bug("features/mask.cuh", "void seed_two(", "0xff800000u", "0u"),
}
PLANTED = {"floats, Q scaled": OF_FLOATS, "bytes": OF_BYTES}


@cache
def kernel(name: str) -> Kernel:
    """All mistakes in one build, whose warpgroups take no turns."""
    case, config = CASES[name]
    made = Kernel(PATH, without_turns(config), case.problem)
    return planted(made, "forward_sm90a.cu", tuple(PLANTED[name].values()))


def of_poisoned_keys(name: str, number: int, mode: Mode) -> str:
    """What is wrong where keys that no query sees are NaN and inf."""
    (case, _), device = CASES[name], EmulatedDevice(mode)
    inputs = inputs_of(case)
    for key, bits in ((1, 0x7FC0), (2, 0x7F80), (70, 0x7FC0), (132, 0xFF80)):
        inputs.mask[..., key] = 0
        inputs.k[:, :, key] = np.uint16(bits)
    made = kernel(name)
    made.library().plant(ctypes.c_int(number))
    return judge(case, inputs, run(device, case, made, inputs=inputs, blocks=4))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", CASES)
def test_every_row_is_right(emulator: None, name: str, mode: Mode) -> None:
    case, config = CASES[name]
    assert not wrong_of(run, Kernel(PATH, config, case.problem), mode, case, blocks=4)


@pytest.mark.parametrize("mode", MODES)
def test_hidden_nan_and_inf_are_hidden(emulator: None, mode: Mode) -> None:
    assert not of_poisoned_keys("bytes", 0, mode)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("name", "mistake"), [(name, each) for name, bugs in PLANTED.items() for each in bugs])
def test_a_planted_mistake_is_found(emulator: None, name: str, mistake: str, mode: Mode) -> None:
    case, number = CASES[name][0], 1 + list(PLANTED[name]).index(mistake)
    said = outcome(run, kernel(name), mode, case, number, blocks=4)
    said = said or (of_poisoned_keys(name, number, mode) if name == "bytes" else "")
    assert said and re.search(PLANTED[name][mistake].says, said)
