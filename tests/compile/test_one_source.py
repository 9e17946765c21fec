"""The Volta and Turing kernels are one text for every GPU: what runs as source on Hopper is what Volta compiles."""

import pytest

from attention.kernels.launch.source import sources_of
from attention.problem import AttentionProblem
from attention.variant import by_path
from attention.verify.build_matrix import legal, long
from microbench.machine.arch import by_name

PATHS = ("sm70/forward/quad_pair", "sm75/forward/register_staged")
EMULATED = "#ifdef SMSCOPE_EMULATED"  # the one switch: a CPU's bodies


def texts(path: str, problem: AttentionProblem, arch: str) -> dict[str, str]:
    """Each file that the compiler reads, by its name as included."""
    variant, home = by_path(path), by_name(path.split("/")[0])
    sources = sources_of(variant, problem, legal(variant, problem, home)[0], by_name(arch))
    return {name: text for source in sources for name, text in ((source.name, source.text), *source.headers)}


@pytest.mark.parametrize("path", PATHS)
def test_no_file_that_the_kernel_reaches_asks_for_the_architecture(path: str) -> None:
    problem = long(causal=True, dtype="float16")
    home, hopper = (texts(path, problem, arch) for arch in (path.split("/")[0], "sm90a"))
    assert "ptx/convert.cuh" in home and any(EMULATED in text for text in home.values())
    assert home == hopper
    assert [name for name, text in home.items() if "__CUDA_ARCH" in text] == []
