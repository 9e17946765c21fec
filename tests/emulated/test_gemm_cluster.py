"""A GEMM by pairs of blocks, multicast and remote releases: right in every mode, and every planted bug is found."""

import re

import numpy as np
import pytest

from microbench.compile import compile_source
from microbench.emulator import MODES, EmulatedDevice, Mode, TensorMap
from microbench.verify.differential.attention_case import Floats, bf16_bits
from tests.emulated.planted import bug_numbers, outcome
from tests.emulated.sources import source_of

SOURCE, NAME = source_of("gemm_cluster.cu")
KERNEL = "gemm_cluster"
ROWS, COLUMNS, DEPTH = 256, 256, 5 * 64
SMEM_BYTES = 2 * (64 + 128) * 128 + 4 * 8

# What each mistake is reported as. Half of B in the place of the other half breaks no rule.
OVERWRITTEN = "race: cp.async.bulk.tensor load .* not ordered after the read by a collective"
PLANTED = {
    "MISSING_INIT_FENCE": "without fence.mbarrier_init",
    "RELEASE_FOR_INIT_FENCE": "without fence.mbarrier_init",
    "INIT_FENCE_AFTER_BARRIER": "not ordered after mbarrier.init",
    "MISSING_INIT_BARRIER": "not ordered after mbarrier.init|no mbarrier was initialised",
    "BLOCK_BARRIER_FOR_INIT": "a bulk copy.* (not ordered after mbarrier.init|no mbarrier was initialised)",
    "MASK_OF_ITSELF": "deadlock: .*mbarrier",
    "MASK_OF_THE_PEER": "deadlock: .*mbarrier",
    "MASK_TOO_WIDE": "the mask 0x7 names a rank of a cluster of 2",
    "TOO_FEW_EXPECTED": "more bytes were copied than expected|race: wgmma .* not ordered after the write by a copy",
    "TOO_MANY_EXPECTED": "deadlock: .*mbarrier",
    "RELEASE_OF_ITSELF_TWICE": OVERWRITTEN,
    "RELEASE_OF_THE_PEER_TWICE": f"{OVERWRITTEN}|more arrivals than the 1 of its phase",
    "ARRIVALS_OF_ONE_BLOCK": f"{OVERWRITTEN}|more arrivals than the 1 of its phase|deadlock: .*mbarrier",
    "EARLY_RELEASE": OVERWRITTEN,
    "MISSING_EMPTY_WAIT": "more arrivals than the 1 of its phase",
    "MISSING_LAST_BARRIER": "ended: the block of rank . ends while thread .* may still use its shared memory",
    "WRONG_HALF": "",
}


def operands(seed: int = 0) -> tuple[Floats, Floats]:
    """A and B of small integers: every sum is exact."""
    rng = np.random.default_rng(seed)
    a, b = (rng.integers(-3, 4, (size, DEPTH)).astype(np.float32) for size in (ROWS, COLUMNS))
    return a, b


def run(device: EmulatedDevice, a: Floats, b: Floats, bug: int = 0) -> Floats:
    kernel = device.load(SOURCE, NAME, kernel=KERNEL)
    c = device.full((ROWS, COLUMNS), np.nan, np.float32)
    inputs = [device.asarray(bf16_bits(each)) for each in (a, b)]
    maps = [TensorMap(each, (64, 64), "bf16", swizzle=128).emulated() for each in inputs]
    kernel((ROWS // 64, COLUMNS // 128), (160,), (*maps, c, DEPTH, COLUMNS, bug), SMEM_BYTES, cluster=(2,))
    return c


@pytest.mark.parametrize("races", [True, False])
@pytest.mark.parametrize("mode", MODES)
def test_the_product_is_exact_in_every_mode(mode: Mode, races: bool) -> None:
    a, b = operands()
    np.testing.assert_array_equal(run(EmulatedDevice(mode, races=races), a, b), a @ b.T)


@pytest.mark.parametrize("seed", range(8))
def test_no_order_of_events_makes_a_false_report(seed: int) -> None:
    a, b = operands(seed)
    np.testing.assert_array_equal(run(EmulatedDevice("random", seed), a, b), a @ b.T)


def test_every_planted_bug_is_listed() -> None:
    assert set(bug_numbers(SOURCE)) - {"NONE"} == set(PLANTED)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_is_found(bug: str, mode: Mode) -> None:
    a, b = operands()
    number = bug_numbers(SOURCE)[bug]
    how, said = outcome(lambda device, bug: run(device, a, b, bug), mode, number, a @ b.T, 0)
    assert how == ("report" if PLANTED[bug] else "result"), said
    assert re.search(PLANTED[bug], said), said


def test_the_same_source_compiles_for_its_gpu() -> None:
    cubin = compile_source(SOURCE, NAME, "sm90a", kernel=KERNEL)
    opcodes = {instruction.opcode for instruction in cubin.instructions()}
    assert {"UTMALDG.2D.MULTICAST", "UCGABAR_ARV", "UCGABAR_WAIT"} <= opcodes, sorted(opcodes)
    assert cubin.resources.spill_store_bytes == 0
