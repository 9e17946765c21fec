"""Attention in the manner of sm90a: right in every mode, and every planted bug is found."""

import re

import numpy as np
import pytest

from microbench.compile import compile_source
from microbench.emulator import MODES, EmulatedDevice, Mode, TensorMap
from microbench.verify.differential.attention_case import TOLERANCE, AttentionCase, Floats, attention_case, scale_log2
from tests.emulated.planted import bug_numbers, outcome
from tests.emulated.sources import source_of

SOURCE, NAME = source_of("attention_sm90a.cu")
KERNEL = "attention_sm90a"

# What each mistake is reported as. Wrong numbers alone show a wrong layout, which breaks no rule, and a result that
# was not waited for: accumulators hold NaN until then. A wrong layout that reaches into the next stage is a race.
PLANTED = {
    "MISSING_INIT_FENCE": "proxy: a bulk copy completes on the mbarrier .* without fence.mbarrier_init",
    "MISSING_INIT_BARRIER": "not ordered after mbarrier.init|no mbarrier was initialised",
    "MISSING_EMPTY_WAIT": "more arrivals than the 1 of its phase|deadlock: .*mbarrier",
    "MISSING_FULL_WAIT": "race: wgmma by a collective of warp .* not ordered after the write by a copy",
    "WRONG_PHASE": "race: wgmma .* not ordered after the write by a copy|deadlock: .*mbarrier",
    "TOO_FEW_EXPECTED": "more bytes were copied than expected|race: wgmma .* the write by a copy",
    "TOO_MANY_EXPECTED": "deadlock: .*mbarrier",
    "TOO_FEW_ARRIVALS": "deadlock: .*mbarrier",
    "EARLY_RELEASE": "race: cp.async.bulk.tensor load .* not ordered after the read by a collective",
    "MISSING_WGMMA_WAIT": "",
    "MISSING_WGMMA_FENCE": "without wgmma.fence",
    "TOO_FEW_COMMITS": "",
    "DESCRIPTOR_OFF_BY_ONE": "race: wgmma",
    "WRONG_SWIZZLE": "",
    "WRONG_MAJOR": "race: wgmma",
    "MISSING_PROXY_FENCE": "proxy: .* through the async proxy, but thread .* without fence.proxy.async",
    "MISSING_STORE_BARRIER": "race: cp.async.bulk.tensor store .* not ordered after the write",
    "MISSING_STORE_WAIT": "before it waited for its bulk stores",
    "TILE_OUT_OF_BOUNDS": "out of bounds: cp.async.bulk.tensor",
}


def run(device: EmulatedDevice, case: AttentionCase, bug: int = 0) -> Floats:
    sequence, dim = case.q.shape
    kernel = device.load(SOURCE, NAME, kernel=KERNEL, defines=(("HEAD_DIM", dim),))
    out = device.full(case.q.shape, np.nan, np.float32)
    inputs = [device.asarray(each) for each in (case.q, case.k, case.v)]
    maps = [TensorMap(each, (64, 64), "bf16", swizzle=128).emulated() for each in inputs]
    stored = TensorMap(out, (64, dim), "f32").emulated()
    smem_bytes = 5 * 64 * 2 * dim + 64 * dim * 4 + 5 * 8
    kernel((sequence // 64,), (256,), (*maps, stored, sequence, scale_log2(dim), bug), shared_mem=smem_bytes)
    return out


@pytest.mark.parametrize("head_dim", [64, 128])
@pytest.mark.parametrize("races", [True, False])
@pytest.mark.parametrize("mode", MODES)
def test_attention_is_right_in_every_mode(mode: Mode, races: bool, head_dim: int) -> None:
    case = attention_case(256, head_dim=head_dim)
    np.testing.assert_allclose(run(EmulatedDevice(mode, races=races), case), case.expected, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("seed", range(8))
def test_no_order_of_events_makes_a_false_report(seed: int) -> None:
    case = attention_case(256, seed)
    np.testing.assert_allclose(run(EmulatedDevice("random", seed), case), case.expected, rtol=0, atol=TOLERANCE)


def test_a_long_head_is_right() -> None:
    case = attention_case(1024)
    np.testing.assert_allclose(run(EmulatedDevice("lazy"), case), case.expected, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("head_dim", [64, 128])
def test_the_same_source_compiles_for_its_gpu(head_dim: int) -> None:
    cubin = compile_source(SOURCE, NAME, "sm90a", (("HEAD_DIM", head_dim),), kernel=KERNEL)
    opcodes = {instruction.opcode.split(".")[0] for instruction in cubin.instructions()}
    assert {"HGMMA", "UTMALDG", "UTMASTG", "SYNCS", "USETMAXREG"} <= opcodes
    assert cubin.resources.spill_store_bytes == 0


def test_every_planted_bug_is_listed() -> None:
    assert set(bug_numbers(SOURCE)) - {"NONE"} == set(PLANTED)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_is_found(bug: str, mode: Mode) -> None:
    case = attention_case(256)
    number = bug_numbers(SOURCE)[bug]
    how, said = outcome(lambda device, bug: run(device, case, bug), mode, number, case.expected, TOLERANCE)
    assert how == ("report" if PLANTED[bug] else "result"), said
    assert re.search(PLANTED[bug], said), said
