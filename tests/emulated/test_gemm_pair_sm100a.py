"""A GEMM by pairs of blocks on sm100a (cta_group::2): exact in every mode, and every planted bug is found."""

import re

import numpy as np
import pytest

from microbench.compile import compile_source
from microbench.emulator import MODES, EmulatedDevice, Mode, TensorMap
from microbench.verify.differential.attention_case import Floats, bf16_bits
from tests.emulated.planted import bug_numbers, outcome
from tests.emulated.sources import source_of

SOURCE, NAME = source_of("gemm_pair_sm100a.cu")
KERNEL = "gemm_pair_sm100a"
COLUMNS, DEPTH = 256, 5 * 64

PLANTED = {
    "MISSING_PEER_WAIT": "race: tcgen05.mma.* after the write by a copy|race: cp.async.* after the read by the tensor",
    "COMMIT_TO_ONE_BLOCK": "deadlock: .*mbarrier",
    "ALLOC_BY_ONE_BLOCK": "deadlock: .*tcgen05.alloc",
    "DEALLOC_BY_ONE_BLOCK": "deadlock: .*tcgen05.dealloc|the block ended without tcgen05.dealloc",
    "ALLOC_OF_DIFFERENT_COLUMNS": "the blocks of a pair name different columns",
    "MIXED_GROUPS": "a kernel keeps to one cta_group",
    "INSTRUCTION_OF_ONE_BLOCK": "M is 64, and may be 128 or 256",
    "MISSING_FENCE": "fence: tcgen05.ld .* without tcgen05.fence::after_thread_sync",
    "MISSING_LAST_BARRIER": "race: tcgen05.dealloc",
}


def operands(m: int, seed: int = 0) -> tuple[Floats, Floats]:
    """A and B of small integers: every sum is exact."""
    rng = np.random.default_rng(seed)
    a, b = (rng.integers(-3, 4, (size, DEPTH)).astype(np.float32) for size in (m * 2, COLUMNS))
    return a, b


def run(device: EmulatedDevice, a: Floats, b: Floats, bug: int = 0) -> Floats:
    m, rows = len(a) // 2, len(a) // 4  # of a pair, of a block
    kernel = device.load(SOURCE, NAME, kernel=KERNEL, defines=(("M", m),))
    c = device.full((len(a), COLUMNS), np.nan, np.float32)
    inputs = [device.asarray(bf16_bits(each)) for each in (a, b)]
    boxes = zip(inputs, (rows, 64), strict=True)
    maps = [TensorMap(each, (box, 64), "bf16", swizzle=128).emulated() for each, box in boxes]
    smem_bytes = 2 * (rows + 64) * 128 + 7 * 8 + 4
    grid = (len(a) // rows, COLUMNS // 128)
    kernel(grid, (192,), (*maps, c, DEPTH, COLUMNS, bug), smem_bytes, cluster=(2,))
    return c


@pytest.mark.parametrize("m", [128, 256])
@pytest.mark.parametrize("mode", MODES)
def test_the_product_is_exact_in_every_mode(mode: Mode, m: int) -> None:
    a, b = operands(m)
    for races in (True, False):
        np.testing.assert_array_equal(run(EmulatedDevice(mode, races=races), a, b), a @ b.T)


@pytest.mark.parametrize("seed", range(8))
def test_no_order_of_events_makes_a_false_report(seed: int) -> None:
    a, b = operands(256, seed)
    np.testing.assert_array_equal(run(EmulatedDevice("random", seed), a, b), a @ b.T)


@pytest.mark.parametrize("m", [128, 256])
def test_the_same_source_compiles_for_its_gpu(m: int) -> None:
    cubin = compile_source(SOURCE, NAME, "sm100a", (("M", m),), kernel=KERNEL)
    opcodes = {instruction.opcode for instruction in cubin.instructions()}
    assert {"UTCHMMA.2CTA", "UTCBAR.2CTA.MULTICAST", "LDTM.x32"} <= opcodes
    assert cubin.resources.spill_store_bytes == 0


def test_every_planted_bug_is_listed() -> None:
    assert set(bug_numbers(SOURCE)) - {"NONE"} == set(PLANTED)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_is_found(bug: str, mode: Mode) -> None:
    a, b = operands(256)
    how, said = outcome(lambda device, bug: run(device, a, b, bug), mode, bug_numbers(SOURCE)[bug], a @ b.T, 0)
    assert how == ("report" if PLANTED[bug] else "result"), said
    assert re.search(PLANTED[bug], said), said
