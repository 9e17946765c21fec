"""A product on m8n8k4, in all four layouts and with both accumulators."""

import itertools
import re

import numpy as np
import pytest

from microbench.compile import compile_source
from microbench.emulator import MODES, EmulatedDevice, Mode
from microbench.verify.differential.attention_case import Floats
from tests.emulated.planted import bug_numbers, outcome
from tests.emulated.sources import source_of

SOURCE, NAME = source_of("gemm_sm70.cu")
ROWS, COLUMNS, DEPTH = 32, 64, 48
SMEM_BYTES = 512
LAYOUTS = tuple(itertools.product(("row", "col"), repeat=2))

PLANTED = {
    "MISSING_BARRIER": "race: (ld|st).shared .* not ordered after the (write|read)",
    "MISSING_BARRIER_BEFORE_REUSE": "race: st.shared .* not ordered after the read",
    "SWAPPED_LANES": "",
    "SHARED_OUT_OF_BOUNDS": "out of bounds: st.shared",
    "PLAIN_POINTER_OUT": "out of bounds: global access at byte .* in a buffer of 3072 bytes",
}


def defines(a: str, b: str, f16: bool = False) -> tuple[tuple[str, int | str], ...]:
    return (("ORDER_A", a), ("ORDER_B", b), *((("F16_SUMS", 1),) if f16 else ()))


def operands(seed: int = 0) -> tuple[Floats, Floats]:
    """Small integers: sums are exact in f16 as well, so that every wrong element shows."""
    rng = np.random.default_rng(seed)
    a, b = rng.integers(-3, 4, (ROWS, DEPTH)), rng.integers(-3, 4, (DEPTH, COLUMNS))
    return a.astype(np.float32), b.astype(np.float32)


def run(device: EmulatedDevice, a_order: str, b_order: str, f16: bool = False, bug: int = 0) -> Floats:
    a, b = operands()
    stored = [
        device.asarray((m if order == "row" else m.T).astype(np.float16).view(np.uint16))
        for m, order in ((a, a_order), (b, b_order))
    ]
    c = device.full((ROWS, COLUMNS), np.nan, np.float32)
    kernel = device.load(SOURCE, NAME, kernel="gemm_sm70", defines=defines(a_order, b_order, f16))
    kernel((1, ROWS // 16), (128,), (*stored, c, ROWS, COLUMNS, DEPTH, bug), shared_mem=SMEM_BYTES)
    return c.astype(np.uint16).view(np.float16).astype(np.float32) if f16 else c


@pytest.mark.parametrize("f16", [False, True])
@pytest.mark.parametrize(("a_order", "b_order"), LAYOUTS)
def test_every_layout_multiplies(a_order: str, b_order: str, f16: bool) -> None:
    a, b = operands()
    for mode in MODES:
        np.testing.assert_array_equal(run(EmulatedDevice(mode), a_order, b_order, f16), a @ b)


@pytest.mark.parametrize("f16", [False, True])
@pytest.mark.parametrize(("a_order", "b_order"), LAYOUTS)
def test_the_same_source_compiles_for_volta(a_order: str, b_order: str, f16: bool) -> None:
    cubin = compile_source(SOURCE, NAME, "sm70", defines(a_order, b_order, f16), kernel="gemm_sm70")
    assert any(instruction.opcode.startswith("HMMA.884") for instruction in cubin.instructions())


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_is_found(bug: str, mode: Mode) -> None:
    a, b = operands()
    number = bug_numbers(SOURCE)[bug]
    how, said = outcome(lambda device, bug: run(device, "row", "col", bug=bug), mode, number, a @ b, 0.0)
    assert how == ("report" if PLANTED[bug] else "result")
    assert re.search(PLANTED[bug], said), said
