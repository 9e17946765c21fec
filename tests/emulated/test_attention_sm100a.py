"""Attention in the manner of sm100a: right in every mode, and every planted bug is found."""

import math
import re

import numpy as np
import pytest

from microbench.build import compile_source
from microbench.emulator import MODES, EmulatedDevice, Mode, TensorMap
from tests.emulated.attention_case import TOLERANCE, AttentionCase, Floats, attention_case, source_of
from tests.emulated.planted import bug_numbers, outcome

SOURCE, NAME = source_of("attention_sm100a.cu")
KERNEL = "attention_sm100a"
THREADS = 320
# Where P goes: over S in tensor memory, or to shared memory.
ROOMS = {"tensor memory": 0, "shared memory": 1}


def run(device: EmulatedDevice, case: AttentionCase, bug: int = 0, p_in_shared: int = 0) -> Floats:
    sequence, head_dim = case.q.shape
    defines = (("HEAD_DIM", head_dim), ("P_IN_SHARED", p_in_shared))
    kernel = device.load(SOURCE, NAME, kernel=KERNEL, defines=defines)
    out = device.full(case.q.shape, np.nan, np.float32)
    inputs = [device.asarray(each) for each in (case.q, case.k, case.v)]
    maps = [TensorMap(each, (128, 64), "bf16", swizzle=128).emulated() for each in inputs]
    smem_bytes = 5 * 128 * head_dim * 2 + p_in_shared * 128 * 256 + 3 * 128 * 4 + 18 * 8 + 4
    scale_log2 = head_dim**-0.5 * math.log2(math.e)
    arguments = (*maps, out, sequence, scale_log2, bug)
    kernel((sequence // 128,), (THREADS,), arguments, shared_mem=smem_bytes)
    return out


@pytest.mark.parametrize("room", ROOMS)
@pytest.mark.parametrize("head_dim", [64, 128])
@pytest.mark.parametrize("mode", MODES)
def test_attention_is_right_in_every_mode(mode: Mode, head_dim: int, room: str) -> None:
    case = attention_case(512, head_dim=head_dim)
    for races in (True, False):
        found = run(EmulatedDevice(mode, races=races), case, p_in_shared=ROOMS[room])
        np.testing.assert_allclose(found, case.expected, rtol=0, atol=TOLERANCE)
