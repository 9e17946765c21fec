"""Attention in the manner of sm70: right in every mode, and every planted bug is found."""

import re

import numpy as np
import pytest

from microbench.compile import compile_source
from microbench.emulator import MODES, EmulatedDevice, Mode
from microbench.verify.differential.attention_case import TOLERANCE, AttentionCase, Floats, attention_case, scale_log2
from tests.emulated.planted import bug_numbers, outcome
from tests.emulated.sources import source_of

SOURCE, NAME = source_of("attention_sm70.cu")
KERNEL = "attention_sm70"

# What each mistake is reported as. Wrong numbers alone show a wrong layout, which breaks no rule.
PLANTED = {
    "MISSING_BARRIER_AFTER_STORE": "race: (ld|st).shared .* not ordered after the (write|read)",
    "MISSING_BARRIER_BEFORE_REUSE": "race: st.shared .* not ordered after the read",
    "MISSING_WARP_BARRIER": "race: (ld|st).shared .* not ordered after the (write|read)",
    "HALF_OF_A_ROW": "",
    "SWAPPED_FRAGMENT": "",
    "SHARED_OUT_OF_BOUNDS": "out of bounds: st.shared",
    "GLOBAL_OUT_OF_BOUNDS": "out of bounds",
}


def case_of(sequence: int, head_dim: int = 64, seed: int = 0) -> AttentionCase:
    return attention_case(sequence, seed, head_dim, "f16")


def run(device: EmulatedDevice, case: AttentionCase, bug: int = 0) -> Floats:
    sequence, dim = case.q.shape
    kernel = device.load(SOURCE, NAME, kernel=KERNEL, defines=(("HEAD_DIM", dim),))
    out = device.full(case.q.shape, np.nan, np.float32)
    inputs = (device.asarray(case.q), device.asarray(case.k), device.asarray(case.v))
    smem_bytes = 3 * 64 * (2 * dim + 16) + 64 * (2 * 64 + 16)
    kernel((sequence // 64,), (128,), (*inputs, out, sequence, scale_log2(dim), bug), shared_mem=smem_bytes)
    return out


@pytest.mark.parametrize("head_dim", [64, 128])
@pytest.mark.parametrize("races", [True, False])
@pytest.mark.parametrize("mode", MODES)
def test_attention_is_right_in_every_mode(mode: Mode, races: bool, head_dim: int) -> None:
    case = case_of(256, head_dim)
    np.testing.assert_allclose(run(EmulatedDevice(mode, races=races), case), case.expected, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("seed", range(4))
def test_no_order_of_events_makes_a_false_report(seed: int) -> None:
    case = case_of(128, seed=seed)
    np.testing.assert_allclose(run(EmulatedDevice("random", seed), case), case.expected, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("head_dim", [64, 128])
def test_the_same_source_compiles_for_its_gpu(head_dim: int) -> None:
    cubin = compile_source(SOURCE, NAME, "sm70", (("HEAD_DIM", head_dim),), kernel=KERNEL)
    opcodes = [instruction.opcode for instruction in cubin.instructions()]
    assert any(opcode.startswith("HMMA.884.F32.F32") for opcode in opcodes)
    assert cubin.resources.spill_store_bytes == 0


def test_every_planted_bug_is_listed() -> None:
    assert set(bug_numbers(SOURCE)) - {"NONE"} == set(PLANTED)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_is_found(bug: str, mode: Mode) -> None:
    case = case_of(256)
    number = bug_numbers(SOURCE)[bug]
    how, said = outcome(lambda device, bug: run(device, case, bug), mode, number, case.expected, TOLERANCE)
    assert how == ("report" if PLANTED[bug] else "result"), said
    assert re.search(PLANTED[bug], said), said
