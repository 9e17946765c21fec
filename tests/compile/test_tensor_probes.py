"""The tensor-core probes: what their contracts take for overhead, and where they run. test_matrix.py compiles them."""

import pytest

from microbench import sass
from microbench.machine.arch import by_name
from microbench.probes import named
from microbench.verify import matrix
from tests.cpu.listing import FITS, looped


@pytest.mark.parametrize("fillers", [["NOP"], ["@!UPT UIADD3 URZ, URZ, URZ, URZ"] * 2], ids=["12.9", "13.0"])
def test_the_fillers_of_either_cuda_are_overhead(fillers: list[str]) -> None:
    products = [f"HMMA.16816.F32.BF16 R16, {a}, R12, R16" for a in ("R4", "R8") * 4]
    kernel = looped(*(line for product in products for line in (product, *fillers)))
    builds = matrix.builds(named("mma_sync_latency"), by_name("sm80"))
    (build,) = {build for build in builds if ("TYPE", "Bf16") in build.defines}
    assert sass.check(build.contract, kernel, by_name("sm80"), FITS) == ()


@pytest.mark.parametrize("name", ["wgmma_latency", "wgmma_throughput"])
@pytest.mark.parametrize("arch", ["sm80", "sm89", "sm100a", "sm120a"])
def test_wgmma_exists_on_hopper_alone(name: str, arch: str) -> None:
    assert not named(name).runs_on(by_name(arch))
