"""Numba kernels become cubins without a GPU, keep the CUDA kernels' contracts, and come from the same cache."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from microbench import paths, sass
from microbench.compile import Cubin, cache
from microbench.compile import numba as numba_build
from microbench.compile.numba import compile_twin
from microbench.errors import BuildError, ContractError, EnvironmentLacks
from microbench.machine.arch import by_name
from microbench.probe import Build, Probe, Twin
from microbench.probes import discover, named
from microbench.shapes.accesses import load
from microbench.shapes.chain import loop
from tests.elsewhere import ROOT, printed

HOPPER = by_name("sm90a")
ARCHS = ("sm75", "sm80", "sm90a", "sm100a")
CHAIN = loop(load(64, 8), distance=1)


TWINS = [probe.name for probe in discover() if probe.twin]


def builds(name: str) -> list[Build]:
    """The first and the last build of the sweep."""
    probe = named(name)
    found = list(dict.fromkeys(build for point in probe.points(quick=True) for build in probe.builds(point)))
    return [found[0], found[-1]] if len(found) > 1 else found


def chase(count: int) -> Build:
    return Build((("CHAIN", count),), CHAIN)


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(paths.CACHE_VARIABLE, str(tmp_path))
    return tmp_path


# In every run the oldest architecture, and the one that was measured.
QUICK = ("sm75", "sm90a")
CASES = [
    pytest.param(
        *(name, build, arch),
        marks=() if arch in QUICK else pytest.mark.slow,
        id="-".join([name, arch, *(f"{key}={value}" for key, value in build.defines)]),
    )
    for name in TWINS
    for build in builds(name)
    for arch in ARCHS
]


@pytest.mark.parametrize(("name", "build", "arch"), CASES)
def test_a_twin_keeps_the_contract_of_the_cuda_kernel(name, build, arch):
    cubin = compile_twin(named(name), build, by_name(arch))
    sass.require(build.contract, cubin.instructions(), by_name(arch), cubin.resources, name)
    assert (cubin.kernel, cubin.arch) == (name, arch) and 0 < cubin.resources.registers <= 64


def test_volta_needs_the_toolkit_of_cuda_12():
    def compile_for_volta() -> Cubin:
        return compile_twin(named("memory_latency"), chase(8), by_name("sm70"))

    if numba_build._linker_version().startswith("12."):
        sass.require(CHAIN, compile_for_volta().instructions(), by_name("sm70"), compile_for_volta().resources)
    else:
        with pytest.raises(EnvironmentLacks, match=r"has no sm70; pip install \"numba-cuda\[cu12\]\""):
            compile_for_volta()


@pytest.mark.parametrize("count", [7, 9])
def test_a_twin_with_another_chain_breaks_the_contract(count):
    cubin = compile_twin(named("memory_latency"), chase(count), HOPPER)
    with pytest.raises(ContractError, match=f"{count} LDG.E.64 where 8 are declared"):
        sass.require(CHAIN, cubin.instructions(), HOPPER, cubin.resources)


def test_a_chase_of_addresses_is_bare_loads():
    cubin = compile_twin(named("memory_latency"), chase(8), HOPPER)
    region = sass.timed_region(CHAIN, cubin.instructions())
    others = [instruction.head for instruction in region if instruction.head != "LDG"]
    assert len(region) - len(others) == 8
    assert len(others) <= 2  # the counter and its test


def test_a_second_compile_gives_the_same_cubin(empty_cache):
    first = compile_twin(named("memory_latency"), chase(8), HOPPER)
    for file in (empty_cache / "cubin").iterdir():
        file.unlink()
    second = compile_twin(named("memory_latency"), chase(8), HOPPER)
    assert not second.from_cache and second.sha256 == first.sha256


# What a machine without numba-cuda, libNVVM and nvJitLink runs: any import of them ends the process.
WITHOUT_NUMBA_CUDA = """
import sys
sys.modules.update(dict.fromkeys(("numba.cuda", "numba_cuda", "cuda")))
from tests.compile import test_numba_build as t
cubin = t.compile_twin(t.named("memory_latency"), t.chase(8), t.HOPPER)
print(cubin.from_cache, cubin.sha256, len(cubin.instructions()))
"""


def test_a_hit_needs_neither_numba_cuda_nor_its_toolkit(empty_cache):
    kept = compile_twin(named("memory_latency"), chase(8), HOPPER)
    told = printed(WITHOUT_NUMBA_CUDA, PYTHONPATH=str(ROOT))
    assert told.split() == ["True", kept.sha256, str(len(kept.instructions()))]


def other(probe: Probe, **changes: object) -> Probe:
    return replace(probe, twin=replace(probe.twin, **changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "compile_other",
    [
        lambda probe: compile_twin(probe, chase(4), HOPPER),
        lambda probe: compile_twin(probe, chase(8), by_name("sm80")),
        lambda probe: compile_twin(replace(probe, name="another"), chase(8), HOPPER),
        lambda probe: compile_twin(other(probe, signature="void(int64, int32, int64, int64)"), chase(8), HOPPER),
    ],
    ids=["define", "arch", "name", "signature"],
)
def test_what_changes_the_kernel_misses_the_cache(empty_cache, compile_other):
    assert not compile_twin(named("memory_latency"), chase(8), HOPPER).from_cache
    assert compile_twin(named("memory_latency"), chase(8), HOPPER).from_cache
    assert not compile_other(named("memory_latency")).from_cache


KERNEL_FILE = """
def make():
    def kernel(out):
        from_here = {value}
    return kernel
"""


def test_an_edit_of_the_kernels_file_misses_the_cache(empty_cache, tmp_path):
    cubins = []
    for value in (1, 2):
        file = tmp_path / "edited.py"
        file.write_text(KERNEL_FILE.format(value=value))
        names: dict[str, Callable[..., Callable[..., None]]] = {}
        exec(compile(file.read_text(), str(file), "exec"), names)
        edited = replace(named("memory_latency"), twin=Twin(names["make"], "void(int64)"))
        cubins.append(compile_twin(edited, Build((), CHAIN), HOPPER))
    assert [cubin.from_cache for cubin in cubins] == [False, False]


def keep_as_compiled_by(empty_cache: Path, version: str) -> None:
    """Make the one entry of the cache say that another toolkit compiled it."""
    cubin = compile_twin(named("memory_latency"), chase(8), HOPPER)
    (file,) = (empty_cache / "cubin").glob("*.entry")
    entry = cache.Entry.model_validate(json.loads(file.read_bytes().partition(b"\n")[2]) | {"nvrtc": version})
    cache.write(file.stem, cubin.image, entry)


def test_a_stand_in_is_compiled_again_where_the_requested_toolkit_is(empty_cache, monkeypatch):
    keep_as_compiled_by(empty_cache, "13.4")
    monkeypatch.setattr(numba_build, "_linker_version", lambda: "12.9")
    assert not compile_twin(named("memory_latency"), chase(8), HOPPER).from_cache


def test_a_stand_in_is_used_and_flagged_where_it_is_not(empty_cache, monkeypatch):
    keep_as_compiled_by(empty_cache, "13.4")
    monkeypatch.setattr(numba_build, "_linker_version", lambda: "")
    cubin = compile_twin(named("memory_latency"), chase(8), HOPPER)
    assert cubin.from_cache and cubin.other_toolchain


def many_in_flight() -> Callable[..., None]:
    from numba import int32

    from microbench.compile.numba_ptx import smid, store_global, stream_global_cg

    def kernel(address, out):  # type: ignore[no-untyped-def]
        store_global(out + 4 * smid(), stream_global_cg(address, 16, 64, int32(0)))

    return kernel


def test_threads_bound_the_registers_and_spills_are_seen(empty_cache):
    spilling = replace(named("memory_latency"), twin=Twin(lambda threads: many_in_flight(), "void(int64, int64)"))
    cubin = compile_twin(spilling, Build((("THREADS", 1024),), CHAIN), HOPPER)
    assert cubin.resources.registers == 64  # 1024 threads share 65536
    assert cubin.resources.spills


def untyped() -> Callable[..., None]:
    def kernel(out):  # type: ignore[no-untyped-def]
        out.append(1)

    return kernel


def counted_at_run_time() -> Callable[..., None]:
    from microbench.compile.numba_ptx import chase_global, store_global

    def kernel(out, count):  # type: ignore[no-untyped-def]
        store_global(out, chase_global(out, count))

    return kernel


@pytest.mark.parametrize(
    ("make", "signature", "reason"),
    [
        (untyped, "void(int64)", "Unknown attribute 'append' of type int64"),
        (counted_at_run_time, "void(int64, int32)", "chase_global"),
    ],
)
def test_a_kernel_that_numba_refuses_is_named(empty_cache, make, signature, reason):
    refused = replace(named("memory_latency"), twin=Twin(make, signature))
    with pytest.raises(BuildError, match=reason) as error:
        compile_twin(refused, Build((), CHAIN), HOPPER)
    assert str(error.value).startswith("Numba does not build memory_latency for sm90a: ")
    assert "\n" not in str(error.value)


def test_ptx_that_does_not_assemble_is_named(empty_cache, monkeypatch):
    monkeypatch.setattr(numba_build, "_ptx", lambda *_: ".version 8.0\n.target sm_90\n.address_size 64\nnonsense;")
    with pytest.raises(BuildError, match="nvJitLink does not build memory_latency for sm90a: "):
        compile_twin(named("memory_latency"), chase(8), HOPPER)


def test_an_absent_numba_cuda_says_what_to_install(empty_cache, monkeypatch):
    monkeypatch.setattr(numba_build, "_linker_version", lambda: "")
    with pytest.raises(EnvironmentLacks, match=r"pip install \"numba-cuda\[cu12\]\""):
        compile_twin(named("memory_latency"), chase(8), HOPPER)
