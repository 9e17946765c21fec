"""Attention in the manner of sm80: right in every mode, and every planted bug is found."""

import re

import numpy as np
import pytest

from microbench.compile import compile_source
from microbench.emulator import MODES, EmulatedDevice, Mode
from microbench.verify.differential.attention_case import TOLERANCE, AttentionCase, Floats, attention_case, scale_log2
from tests.emulated.planted import bug_numbers, outcome
from tests.emulated.sources import source_of

SOURCE, NAME = source_of("attention_sm80.cu")
KERNEL = "attention_sm80"

# What each mistake is reported as. Wrong numbers alone show a wrong layout, which breaks no rule.
PLANTED = {
    "MISSING_WAIT": "a copy that has not been waited for",
    "TOO_FEW_COMMITS": "a copy that has not been waited for",
    "MISSING_BARRIER_AFTER_LOAD": "race: ldmatrix.x4 .* not ordered after the write",
    "MISSING_BARRIER_BEFORE_REUSE": "race: cp.async .* not ordered after the read",
    "SWAPPED_FRAGMENT": "",
    "WRONG_SWIZZLE": "",
    "SHARED_OUT_OF_BOUNDS": "out of bounds: ldmatrix.x4 .* shared offset",
    "GLOBAL_OUT_OF_BOUNDS": "out of bounds: cp.async",
    "DIVERGENT_COLLECTIVE": "mismatched collective",
}


def run(device: EmulatedDevice, case: AttentionCase, bug: int = 0) -> Floats:
    sequence, dim = case.q.shape
    kernel = device.load(SOURCE, NAME, kernel=KERNEL, defines=(("HEAD_DIM", dim),))
    out = device.full(case.q.shape, np.nan, np.float32)
    inputs = (device.asarray(case.q), device.asarray(case.k), device.asarray(case.v))
    kernel((sequence // 64,), (128,), (*inputs, out, sequence, scale_log2(dim), bug), shared_mem=5 * 64 * 2 * dim)
    return out


@pytest.mark.parametrize("head_dim", [64, 128])
@pytest.mark.parametrize("races", [True, False])
@pytest.mark.parametrize("mode", MODES)
def test_attention_is_right_in_every_mode(mode: Mode, races: bool, head_dim: int) -> None:
    case = attention_case(256, head_dim=head_dim)
    np.testing.assert_allclose(run(EmulatedDevice(mode, races=races), case), case.expected, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("seed", range(8))
def test_no_order_of_events_makes_a_false_report(seed: int) -> None:
    case = attention_case(128, seed)
    np.testing.assert_allclose(run(EmulatedDevice("random", seed), case), case.expected, rtol=0, atol=TOLERANCE)


def test_a_long_head_is_right() -> None:
    case = attention_case(1024)
    np.testing.assert_allclose(run(EmulatedDevice("lazy"), case), case.expected, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("arch", ["sm80", "sm90a"])
@pytest.mark.parametrize("head_dim", [64, 128])
def test_the_same_source_compiles_for_its_gpu(arch: str, head_dim: int) -> None:
    cubin = compile_source(SOURCE, NAME, arch, (("HEAD_DIM", head_dim),), kernel=KERNEL)
    opcodes = {instruction.opcode.split(".")[0] for instruction in cubin.instructions()}
    assert {"HMMA", "LDSM", "LDGSTS"} <= opcodes
    assert cubin.resources.spill_store_bytes == 0


def test_every_planted_bug_is_listed() -> None:
    assert set(bug_numbers(SOURCE)) - {"NONE"} == set(PLANTED)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_is_found(bug: str, mode: Mode) -> None:
    case = attention_case(256)
    number = bug_numbers(SOURCE)[bug]
    how, said = outcome(lambda device, bug: run(device, case, bug), mode, number, case.expected, TOLERANCE)
    if not PLANTED[bug]:
        assert how == "result"
    else:
        assert how == "report"
        assert re.search(PLANTED[bug], said), said
