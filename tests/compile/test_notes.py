"""ptxas' notes: each is seen, and on Blackwell, where nobody has run our kernels, each fails whoever compiles."""

from dataclasses import replace
from typing import Any

import pytest

from microbench import compile as compiling
from microbench.compile import Cubin, Source, compile_all, compile_source
from microbench.machine.arch import by_name
from microbench.probe import Budget
from microbench.verify import matrix
from microbench.verify.matrix import Job
from microbench.verify.rules import Whole

KERNEL = 'extern "C" __global__ void k(float* x) { x[threadIdx.x] += 1.f; }'
NOTE = "ptxas info    : (C7{}) Potential Performance Loss: something is serialized in function 'k'\n"


def with_notes(cubin: Cubin, *numbers: int) -> Cubin:
    return replace(cubin, log=cubin.log + "".join(NOTE.format(number) for number in numbers))


def test_every_note_of_the_family_is_seen_once() -> None:
    cubin = compile_source(KERNEL, "k.cu", "sm90a", kernel="k")
    assert cubin.notes == ()
    assert with_notes(cubin, 602, 519, 602).notes == ("C7519", "C7602")


@pytest.mark.parametrize(("arch", "problems"), [("sm90a", 0), ("sm100a", 2), ("sm103a", 2)])
def test_a_note_is_a_problem_of_the_matrix_on_blackwell(
    arch: str, problems: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def noted(sources: Any) -> list[Any]:
        return [with_notes(cubin, 519, 602) for cubin in compile_all(sources) if isinstance(cubin, Cubin)]

    monkeypatch.setattr(matrix, "compile_all", noted)
    job = Job("k", arch, "-", Source(KERNEL, "k.cu", by_name(arch), "k"), Whole((), Budget()))
    (row,) = matrix.check_batch([job])
    assert row.notes == ("C7519", "C7602") and len(row.problems) == problems


def test_a_note_on_blackwell_fails_the_test_that_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "_NOTE", compiling.re.compile("(registers)"))  # of which every log speaks
    assert compile_source(KERNEL, "k.cu", "sm90a", kernel="k").notes
    with pytest.raises(AssertionError, match="registers"):
        compile_source(KERNEL, "k.cu", "sm100a", kernel="k")
