"""Attention in the manner of sm100a: right in every mode, and every planted bug is found."""

import re

import numpy as np
import pytest

from microbench.compile import compile_source
from microbench.emulator import MODES, EmulatedDevice, Mode, TensorMap
from microbench.verify.differential.attention_case import TOLERANCE, AttentionCase, Floats, attention_case, scale_log2
from tests.emulated.planted import bug_numbers, outcome
from tests.emulated.sources import source_of

SOURCE, NAME = source_of("attention_sm100a.cu")
KERNEL = "attention_sm100a"
THREADS = 320
# Where P goes: over S in tensor memory, or to shared memory.
ROOMS = {"tensor memory": 0, "shared memory": 1}

# What each mistake is reported as. Wrong numbers alone show an instruction descriptor that is legal and another one.
PLANTED = {
    "MISSING_FENCE_AFTER_SCORES": "fence: tcgen05.ld .* after tcgen05.mma.* without tcgen05.fence::after_thread_sync",
    "MISSING_FENCE_BEFORE_P": "fence: tcgen05.mma.* after tcgen05.st .* not execute tcgen05.fence::before_thread_sync",
    "MISSING_FENCE_AFTER_P": "fence: tcgen05.mma.* after tcgen05.st .* without tcgen05.fence::after_thread_sync",
    "MISSING_SCORES_WAIT": "race: tcgen05.* of tensor memory is not ordered after tcgen05",
    "WRONG_SCORES_PHASE": "race: tcgen05.* of tensor memory is not ordered after tcgen05|deadlock: .*mbarrier",
    "MISSING_OUTPUT_WAIT": "race: tcgen05.ld .* column 256 .* is not ordered after tcgen05.mma",
    "MISSING_LD_WAIT": "race: tcgen05.st .* not ordered after tcgen05.ld by warp ., which its warp has not waited for",
    "MISSING_ST_WAIT": "race: tcgen05.mma.* not ordered after tcgen05.st by warp ., which its warp has not waited for",
    "EARLY_RELEASE": "race: cp.async.bulk.tensor load .* not ordered after the read by the tensor cores",
    "MISSING_COMMIT": "deadlock: .*mbarrier",
    "OUTPUT_OVER_SCORES": "race: tcgen05.* column 128 of tensor memory is not ordered after tcgen05",
    "TOO_FEW_COLUMNS": "out of bounds: tcgen05.mma",
    "WRONG_COLUMNS_OF_INSTRUCTION": "",
    "WRONG_TYPE_OF_INSTRUCTION": "",
    "WRONG_MAJOR_OF_INSTRUCTION": "race: tcgen05.mma.* at shared address .* not ordered after the write by a copy",
    "DESCRIPTOR_OF_WGMMA": "bits 46 to 48 are the constant 1",
    "LANES_OF_ANOTHER_WARP": "tcgen05.ld at lane 0: warp . of the block reaches lanes",
    "TOO_FEW_EXPECTED": "deadlock: .*mbarrier",
    "TOO_MANY_EXPECTED": "deadlock: .*mbarrier",
    "MISSING_PROXY_FENCE": "proxy: tcgen05.mma.* through the async proxy, but thread .* without fence.proxy.async",
    "ALLOC_AFTER_RELINQUISH": "tcgen05.alloc after tcgen05.relinquish_alloc_permit",
    "ONE_FACTOR_BARRIER": "deadlock: .*mbarrier",
    "EARLY_DEALLOC": "race: tcgen05.dealloc .* not ordered after tcgen05",
    "MISSING_DEALLOC": "the block ended without tcgen05.dealloc of 512 columns",
}
ONLY_IN_SHARED = {"MISSING_PROXY_FENCE"}  # where P goes to shared memory
# Found by the other modes alone: here the reader of a phase is never a phase behind.
MISSED: set[tuple[str, Mode]] = {("ONE_FACTOR_BARRIER", "lazy")}


def run(device: EmulatedDevice, case: AttentionCase, bug: int = 0, p_in_shared: int = 0) -> Floats:
    sequence, head_dim = case.q.shape
    defines = (("HEAD_DIM", head_dim), ("P_IN_SHARED", p_in_shared))
    kernel = device.load(SOURCE, NAME, kernel=KERNEL, defines=defines)
    out = device.full(case.q.shape, np.nan, np.float32)
    inputs = [device.asarray(each) for each in (case.q, case.k, case.v)]
    maps = [TensorMap(each, (128, 64), "bf16", swizzle=128).emulated() for each in inputs]
    smem_bytes = 5 * 128 * head_dim * 2 + p_in_shared * 128 * 256 + 3 * 128 * 4 + 18 * 8 + 4
    arguments = (*maps, out, sequence, scale_log2(head_dim), bug)
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


@pytest.mark.parametrize("seed", range(8))
def test_no_order_of_events_makes_a_false_report(seed: int) -> None:
    case = attention_case(384, seed)
    for p_in_shared in ROOMS.values():
        found = run(EmulatedDevice("random", seed), case, p_in_shared=p_in_shared)
        np.testing.assert_allclose(found, case.expected, rtol=0, atol=TOLERANCE)


def test_a_long_head_is_right() -> None:
    case = attention_case(1024, head_dim=128)
    np.testing.assert_allclose(run(EmulatedDevice("lazy"), case), case.expected, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("p_in_shared", ROOMS.values())
@pytest.mark.parametrize("head_dim", [64, 128])
def test_the_same_source_compiles_for_its_gpu(head_dim: int, p_in_shared: int) -> None:
    defines = (("HEAD_DIM", head_dim), ("P_IN_SHARED", p_in_shared))
    cubin = compile_source(SOURCE, NAME, "sm100a", defines, kernel=KERNEL)
    opcodes = {instruction.opcode.split(".")[0] for instruction in cubin.instructions()}
    assert {"UTCHMMA", "UTCBAR", "LDTM", "STTM", "UTMALDG", "SYNCS"} <= opcodes
    assert cubin.resources.spill_store_bytes == 0


def test_every_planted_bug_is_listed() -> None:
    assert set(bug_numbers(SOURCE)) - {"NONE"} == set(PLANTED)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_is_found(bug: str, mode: Mode) -> None:
    case = attention_case(512)
    number, p_in_shared = bug_numbers(SOURCE)[bug], int(bug in ONLY_IN_SHARED)
    how, said = outcome(lambda device, bug: run(device, case, bug, p_in_shared), mode, number, case.expected, TOLERANCE)
    assert how == ("missed" if (bug, mode) in MISSED else "report" if PLANTED[bug] else "result"), said
    assert how == "missed" or re.search(PLANTED[bug], said), said
