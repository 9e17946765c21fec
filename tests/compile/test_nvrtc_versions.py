"""What may differ between versions of NVRTC: the log, the driver's cache, and the architectures."""

import os
import sys
from types import SimpleNamespace

import pytest

from microbench.compile import compile_source, nvrtc
from microbench.errors import BuildError, EnvironmentLacks
from microbench.sass.cubin import Resources, resources
from tests.elsewhere import python

PAIR = """extern "C" __global__ void greedy(float* x) { *x = 1; }
extern "C" __global__ void second(float* x) { *x = 2; }"""

# Both of one source for sm_90a, as NVRTC printed them: only the times differ. 13.1 to 13.3 word theirs so too.
LOG = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'second' for 'sm_90a'
ptxas info    : Function properties for second
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 10 registers, used 0 barriers
ptxas info    : Compile time = {} ms
ptxas info    : Compiling entry function 'greedy' for 'sm_90a'
ptxas info    : Function properties for greedy
ptxas         .     256 bytes stack frame, 192 bytes spill stores, 208 bytes spill loads
ptxas info    : Used 32 registers, used 1 barriers, 256 bytes cumulative stack size, 4096 bytes smem
ptxas info    : Compile time = {} ms
"""
LOGS = {"12.9.86": LOG.format("4.240", "18.289"), "13.0.88": LOG.format("1.926", "20.574")}

COMPILE = """
from microbench.compile.nvrtc import Candidate, load
library = load(Candidate({library!r}, {version!r}))
outcome = library.compile("__global__ void k() {{}}", "k.cu", (), ("-arch=sm_80", "--ptxas-options=-v"))
assert outcome.image and "Used" in outcome.log, outcome.log
"""
LINK = """
from microbench.machine.arch import by_name
from microbench.compile.numba import _link
ptx = ".version 8.0\\n.target sm_80\\n.address_size 64\\n.visible .entry k() { ret; }"
assert "Used" in _link(ptx, "k", by_name("sm80"), ("-arch=sm_80", "-O3", "-verbose"))[1]
"""


@pytest.mark.parametrize("version", LOGS)
def test_a_log_says_what_each_of_two_kernels_occupies(version: str) -> None:
    image = compile_source(PAIR, "pair.cu", "sm90a", kernel="greedy").image
    sizes = {kernel: resources(image, kernel, LOGS[version]).code_bytes for kernel in ("greedy", "second")}
    assert resources(image, "greedy", LOGS[version]) == Resources(32, 4096, 256, 192, 208, 1, sizes["greedy"])
    assert resources(image, "second", LOGS[version]) == Resources(10, 0, 0, 0, 0, 0, sizes["second"])


def test_a_cubin_without_a_log_is_refused() -> None:
    image = compile_source(PAIR, "pair.cu", "sm90a", kernel="greedy").image
    with pytest.raises(BuildError, match="does not say what greedy occupies"):
        resources(image, "greedy", "")


def asks_the_driver(code: str) -> bool:
    """True where a process that runs `code` looks for libcuda, by the loader's own account."""
    ran = python("-c", code, LD_DEBUG="libs", PYTHONPATH=os.pathsep.join(filter(None, sys.path)))
    assert ran.returncode == 0 and "find library=" in ran.stderr, ran.stderr[-2000:]
    return "find library=libcuda.so" in ran.stderr


def wheels() -> list[nvrtc.Candidate]:
    return [candidate for candidate in nvrtc.candidates() if candidate.version]


@pytest.mark.parametrize("candidate", wheels(), ids=lambda candidate: candidate.version)
def test_a_compile_asks_no_driver_for_a_cached_cubin(candidate: nvrtc.Candidate) -> None:
    assert not asks_the_driver(COMPILE.format(library=candidate.library, version=candidate.version))


def test_a_link_asks_no_driver_for_a_cached_cubin() -> None:
    assert not asks_the_driver(LINK)


@pytest.mark.parametrize("version", ["12.6.77", "12.8", "12.9", "12.9.86", "13.0.88"])
def test_only_an_nvrtc_that_has_a_cache_is_told_not_to_use_it(version: str) -> None:
    assert bool(nvrtc.uncached(version)) == (not version.startswith(("12.6", "12.8")))


def test_a_gpu_that_cuda_13_dropped_is_told_which_nvrtc_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvrtc, "candidates", lambda: iter([nvrtc.Candidate("a"), nvrtc.Candidate("b")]))
    cuda13 = SimpleNamespace(version="13.0.88", architectures=frozenset({75, 80, 90}))
    monkeypatch.setattr(nvrtc, "load", lambda candidate: cuda13)
    with pytest.raises(EnvironmentLacks) as refused:
        nvrtc.choose("12.9", 70)
    assert str(refused.value) == (
        "No NVRTC on this machine compiles for sm_70 (the newest is 13.0.88); "
        "pip install nvidia-cuda-nvrtc-cu12==12.9.86 (90 MB, needs no driver)."
    )
    assert nvrtc.choose("12.9", 75) is cuda13
