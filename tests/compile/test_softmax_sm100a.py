"""The instructions that the model prices a softmax by are those of the machine code (tensor_memory/asked.py)."""

from collections import Counter
from itertools import groupby

import pytest

from attention.kernels.launch.source import source_of
from attention.kernels.sm100a.forward.tensor_memory import asked
from attention.variant import by_path
from attention.verify.build_matrix import LONG, at, legal
from microbench.compile import Cubin, compile_all
from microbench.machine.arch import by_name
from microbench.sass.instruction import Instruction

VARIANT = by_path("sm100a/forward/tensor_memory")
ARCH = by_name("sm100a")
PAIRS = 128 // 2  # of a row's scores
F32X2 = ("FFMA2", "FADD2", "FMUL2")
ENDS = ("BRA", "BSYNC", "BREAK", "EXIT")


def stretches(polynomial: int) -> list[list[Instruction]]:
    """The code between branches."""
    problem = at(LONG, 128, 128)
    config = next(
        each for each in legal(VARIANT, problem, ARCH) if (each["polynomial"], each["cta_group"]) == (polynomial, 1)
    )
    (cubin,) = compile_all([source_of(VARIANT.folder, VARIANT.steps(problem, config)[0], ARCH)])
    assert isinstance(cubin, Cubin)
    parts = groupby(cubin.instructions(), lambda each: each.head in ENDS)
    return [list(part) for ends, part in parts if not ends]


def counts(part: list[Instruction]) -> Counter[str]:
    return Counter(each.head for each in part)


@pytest.fixture(scope="module")
def plain() -> list[list[Instruction]]:
    return stretches(0)


def test_a_score_takes_what_the_model_says(plain: list[list[Instruction]]) -> None:
    (exponentials,) = [counts(part) for part in plain if counts(part)["MUFU"] >= 2 * PAIRS]
    assert exponentials["MUFU"] == 2 * PAIRS
    work = sum(exponentials[each] for each in ("FFMA2", "FADD2", "F2FP"))
    assert work == pytest.approx(2 * PAIRS * asked.PER_SCORE, abs=2)
    lanes = 2 * sum(exponentials[each] for each in F32X2)
    assert lanes == pytest.approx(2 * PAIRS * asked.FMA_LANES, abs=4)
    most = max(counts(part)["FMNMX3"] for part in plain)
    assert most == pytest.approx(2 * PAIRS * asked.MAXIMUM, abs=4)


@pytest.mark.parametrize("polynomial", [4, 8])
def test_a_polynomial_takes_what_the_model_says(polynomial: int, plain: list[list[Instruction]]) -> None:
    (before,) = [part for part in plain if counts(part)["MUFU"] >= 2 * PAIRS]
    (after,) = [part for part in stretches(polynomial) if counts(part)["FMUL2"]]
    polynomials = 2 * PAIRS * polynomial // 32
    assert counts(after)["FMUL2"] == polynomials / 2 and counts(after)["MUFU"] == 2 * PAIRS - polynomials
    more = counts(after)
    more.subtract(counts(before))
    assert 2 * sum(more[each] for each in F32X2) == polynomials * asked.POLYNOMIAL_LANES
    # A shift may be an IMAD: every instruction but MUFU, give or take the beginning of the stretch.
    others = len(after) - len(before) + polynomials
    assert others == pytest.approx(polynomials * asked.POLYNOMIAL, abs=24)
