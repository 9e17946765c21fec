"""Every build of the tensor-core probes, for every architecture it declares, compiles and keeps its contract."""

import pytest

from microbench import sass
from microbench.arch import by_name
from microbench.build import compile_probe
from microbench.probe import Build, Probe
from microbench.probes import named
from tests.cpu.listing import FITS, looped

PROBES = tuple(map(named, ("mma_sync_latency", "mma_sync_throughput", "wgmma_latency", "wgmma_throughput")))


def builds(probe: Probe) -> list[Build]:
    """Each build of the sweep once: inputs, warps and warpgroups are no part of a kernel."""
    assert probe.builds is not None
    return list(dict.fromkeys(build for point in probe.points() for build in probe.builds(point)))


CASES = [
    pytest.param(
        probe, build, arch, id="-".join([probe.name, arch, *(f"{key}={value}" for key, value in build.defines)])
    )
    for probe in PROBES
    for arch in probe.archs
    for build in builds(probe)
]


@pytest.mark.parametrize(("probe", "build", "arch"), CASES)
def test_build_keeps_its_contract(probe: Probe, build: Build, arch: str) -> None:
    cubin = compile_probe(probe, build, by_name(arch))
    sass.require(build.contract, cubin.instructions(), by_name(arch), cubin.resources, probe.name)
    # Any C75xx note says that ptxas changed the order or the waits of wgmma, fatal to the build or not.
    assert "(C75" not in cubin.log


@pytest.mark.parametrize("fillers", [["NOP"], ["@!UPT UIADD3 URZ, URZ, URZ, URZ"] * 2], ids=["12.9", "13.0"])
def test_the_fillers_of_either_cuda_are_overhead(fillers: list[str]) -> None:
    products = [f"HMMA.16816.F32.BF16 R16, {a}, R12, R16" for a in ("R4", "R8") * 4]
    kernel = looped(*(line for product in products for line in (product, *fillers)))
    (build,) = {build for build in builds(named("mma_sync_latency")) if ("TYPE", "Bf16") in build.defines}
    assert sass.check(build.contract, kernel, by_name("sm80"), FITS) == ()


@pytest.mark.parametrize("name", ["wgmma_latency", "wgmma_throughput"])
@pytest.mark.parametrize("arch", ["sm80", "sm89", "sm100a", "sm120a"])
def test_wgmma_exists_on_hopper_alone(name: str, arch: str) -> None:
    assert not named(name).runs_on(by_name(arch))
