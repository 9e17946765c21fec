"""Block-scaled products: each kind with its factors, and what the PTX ISA asks of these."""

import re

import numpy as np
import pytest

from microbench.emulator import MODES, Mode
from microbench.errors import DeviceError
from microbench.verify.differential.catalogue import cases
from microbench.verify.differential.emulated import emulated
from microbench.verify.differential.scaled import SCALED_FORMS
from tests.emulated.test_tcgen05_rules import CLOSE, WAIT, run

KINDS = tuple(dict.fromkeys(form.kind for form in SCALED_FORMS))
PRODUCTS = [index for index, case in enumerate(cases()) if any(f"_mma_{kind}_" in case.wrapper for kind in KINDS)]


@pytest.mark.parametrize("index", PRODUCTS, ids=lambda index: cases()[index].key)
def test_a_scaled_product_is_numpys(index: int) -> None:
    launches = cases()[index].launches(range(21))  # two: with and without the sums from before
    expected = np.concatenate([each.ravel() for launch in launches for each in launch.expected])
    np.testing.assert_array_equal(emulated(index, range(21), "random"), expected)


def test_every_kind_has_every_source_and_every_type_of_its_factors() -> None:
    found = {(cases()[index].wrapper, cases()[index].layout.split()[2]) for index in PRODUCTS}
    wanted = {(f"tcgen05_mma_{form.kind}_{source}", form.scale) for form in SCALED_FORMS for source in ("ss", "ts")}
    assert found == wanted and {form.scale for form in SCALED_FORMS} == {"ue8m0", "ue4m3"}


# D in the first 32 columns, factors from column 64 on: ones of ue8m0 in all bytes. A and B are e4m3 1.5 throughout.
OPEN = (
    "if (warp == 0) alloc(0, 128); __syncthreads(); const unsigned memory = ptx::load_shared(slot);"
    "constexpr unsigned kMx = ptx::tcgen05_scaled_instruction(ptx::Operand::e4m3, ptx::Operand::e4m3, 128, 32,"
    "ptx::Scale::ue8m0); constexpr unsigned kFp4 = ptx::tcgen05_scaled_instruction(ptx::Operand::e2m1,"
    "ptx::Operand::e2m1, 128, 32, ptx::Scale::ue8m0);"
)
SHUT = CLOSE.replace("64", "128")
FACTORS = (
    "for (unsigned c = 64; c < 72; ++c) { unsigned w[1] = {0x7F7F7F7F};"
    "ptx::tcgen05_st_32x32b(memory + (warp * 32 << 16) + c, w); } ptx::tcgen05_wait_st();"
)
FENCED = "ptx::tcgen05_fence_before(); __syncthreads(); ptx::tcgen05_fence_after();"
LOAD = "ptx::tcgen05_ld_32x32b(r, memory + (warp * 32 << 16)); ptx::tcgen05_wait_ld();"


def ask(instruction: str = "kMx", kind: str = "mxf8", a: str = "memory + 64", b: str = "memory + 68") -> str:
    call = f"ptx::tcgen05_mma_{kind}_ss(memory, ones, ones, {instruction}, {a}, {b}, 0);"
    return f"if (threadIdx.x == 0) {{ {call} ptx::tcgen05_commit(bar); }}"


def body(*steps: str) -> str:
    return " ".join((OPEN, *steps, SHUT))


FOURTHS = "if (warp == 3) { unsigned w[1] = {0x80808080};" + (
    "ptx::tcgen05_st_32x32b(memory + (96 << 16) + 64, w); ptx::tcgen05_wait_st(); }"
)
REFUSED = {
    "factors in one quarter of the lanes": (
        body(FACTORS, FOURTHS, FENCED, ask(), WAIT, LOAD),
        "scales of lane .* each quarter of the lanes has a copy",
    ),
    "factors that nobody fenced": (
        body(FACTORS, "__syncthreads();", ask(), WAIT, LOAD),
        "fence: tcgen05.mma.kind::mxf8f6f4.* after tcgen05.st",
    ),
    "factors beyond the allocation": (body(ask(b="memory + 128")), "out of bounds: tcgen05.mma.* of tensor memory"),
    "factors over the sums": (body(ask(a="memory + 16")), "scales overlap D"),
    "64 rows": (body(ask("kMx - (4u << 24)")), "M is 64, and may be 128"),
    "factors of ue4m3 for 8 bits": (body(ask("kMx - (1u << 23)")), "ue4m3 are of kind::mxf4nvf4 alone"),
    "half of a pair of factors": (body(ask("kFp4 + (1u << 29)", "mxf4")), "2 scales begin at a multiple of 2"),
    "four factors from the third byte": (body(ask("kFp4 + (2u << 4)", "nvf4")), "4 scales begin at a multiple of 4"),
    "4 bits along M": (body(ask("kFp4 + (1u << 15)", "mxf4")), "elements of 4 bits are K-major"),
    "K of Blackwell Ultra": (body(ask("kFp4 + (1u << 31)", "mxf4")), "K = 96, of sm_103a, is not modelled"),
    "6 bits along N": (body(ask("kMx + (3u << 10) + (1u << 16)")), "elements of 6 bits are K-major"),
    "4 bits along M in a kind of 8": (
        body(ask("kMx + (5u << 7) + (1u << 15)")),
        "elements of 4 bits are K-major",
    ),
    "6 bits of A in tensor memory": (
        body(ask("kMx + (4u << 7)").replace("_ss(memory, ones", "_ts(memory, memory + 72")),
        "A of 6 or 4 bits in tensor memory is not modelled",
    ),
    "a type that no kind has": (body(ask("kMx + (2u << 7)")), "type 2 of A or B .* is none of this kind"),
    "types of other kinds": (body(ask("kMx", "mxf4")), "none of this kind"),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", REFUSED)
def test_what_the_isa_forbids_of_factors_is_reported(case: str, mode: Mode) -> None:
    steps, reason = REFUSED[case]
    with pytest.raises(DeviceError) as reported:
        run(steps, mode)
    assert re.search(reason, str(reported.value)), reported.value


@pytest.mark.parametrize("mode", MODES)
def test_factors_of_one_change_nothing(mode: Mode) -> None:
    # Bytes 0x00 and 0x3C in turn: 16 products of 1.5 by 1.5 with e4m3 of 8 bits.
    word = run(body(FACTORS, FENCED, ask(), WAIT, LOAD), mode)
    np.testing.assert_array_equal(word.view(np.float32), 16 * 1.5 * 1.5)


@pytest.mark.parametrize(("code", "value"), [(0x7F, 1.0), (0x80, 4.0), (0x7D, 0.0625), (0xFF, np.nan)])
def test_a_factor_of_ue8m0_is_a_power_of_two_or_nan(code: int, value: float) -> None:
    factors = FACTORS.replace("7F7F7F7F", f"{code * 0x01010101:X}")
    found = run(body(factors, FENCED, ask(), WAIT, LOAD), "lazy").view(np.float32)
    np.testing.assert_array_equal(found, np.float32(36 * value))  # of A and of B
