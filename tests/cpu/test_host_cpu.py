"""microbench.machine.cpu: what the operating system says of a CPU."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from microbench.machine import cpu as host_cpu
from microbench.machine.arch import KIB, by_name


@pytest.mark.parametrize(
    ("model", "slug"),
    [
        ("Intel(R) Xeon(R) Platinum 8488C", "host-intel-xeon-platinum-8488c-4c"),
        ("Intel(R) Core(TM) i7-8550U CPU @ 1.80GHz", "host-intel-core-i7-8550u-4c"),
        ("AMD Ryzen 9 7950X 16-Core Processor", "host-amd-ryzen-9-7950x-4c"),
        ("AMD EPYC family 26 model 2", "host-amd-epyc-f26m2-4c"),
        ("Apple M2 Pro", "host-apple-m2-pro-4c"),
    ],
)
def test_a_slug_keeps_what_tells_one_cpu_from_another(model: str, slug: str) -> None:
    assert host_cpu.slug(model, 4) == slug


@given(st.text(), st.integers(1, 1024))
def test_any_name_becomes_a_file_name(model: str, cores: int) -> None:
    assert re.fullmatch(r"host-[a-z0-9.-]*[a-z0-9.]-\d+c", host_cpu.slug(model, cores))


@pytest.mark.parametrize(("said", "cores"), [("150000 100000", 1), ("400000 100000", 4), ("50000 100000", 1)])
def test_a_cgroup_quota_cuts_the_cores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, cores: int) -> None:
    (tmp_path / "cpu.max").write_text(said)
    monkeypatch.setattr(host_cpu, "CGROUP", tmp_path)
    monkeypatch.setattr(host_cpu.os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    assert host_cpu.cores() == tuple(range(cores))


def test_no_quota_leaves_the_affinity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cpu.max").write_text("max 100000")
    monkeypatch.setattr(host_cpu, "CGROUP", tmp_path)
    monkeypatch.setattr(host_cpu.os, "sched_getaffinity", lambda _: {3, 5}, raising=False)
    assert host_cpu.cores() == (3, 5)


def test_a_cgroup_limit_cuts_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "memory.max").write_text("1048576")
    monkeypatch.setattr(host_cpu, "CGROUP", tmp_path)
    assert host_cpu.memory_bytes() == 1048576


@pytest.mark.skipif(host_cpu.platform.system() != "Linux", reason="reads the layout of Linux's /sys")
def test_data_caches_are_read_and_the_instruction_cache_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [("1", "Data", "48K"), ("1", "Instruction", "32K"), ("2", "Unified", "1024K"), ("3", "Unified", "32M")]
    for index, row in enumerate(rows):
        folder = tmp_path / f"cpu{host_cpu.cores()[0]}" / "cache" / f"index{index}"
        folder.mkdir(parents=True)
        for file, text in zip(("level", "type", "size"), row, strict=True):
            (folder / file).write_text(f"{text}\n")
        (folder / "coherency_line_size").write_text("64\n")
    monkeypatch.setattr(host_cpu, "SYS_CPU", tmp_path)
    assert host_cpu.caches.__wrapped__() == host_cpu.Caches(48 * KIB, 1024 * KIB, 32 * KIB * KIB, 64)


def test_a_system_that_says_nothing_gives_unknown_caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_cpu, "SYS_CPU", tmp_path)
    monkeypatch.setattr(host_cpu, "_sysctl_text", lambda _: "")
    assert host_cpu.caches.__wrapped__() == host_cpu.Caches() and host_cpu.Caches().last_bytes is None


@pytest.mark.parametrize(
    ("features", "lanes"), [({"avx512f", "avx2"}, 32), ({"avx2", "fma"}, 16), ({"asimd"}, 16), (set(), 32)]
)
def test_lanes_follow_the_instruction_sets_and_the_unknown_is_widest(features: set[str], lanes: int) -> None:
    host = by_name("host")
    machine = replace(host_cpu.machine(), arch=replace(host, features=host.features | features))
    assert host_cpu.fma_lanes(machine) == lanes


def test_the_machine_is_a_host_with_a_clock_only_where_the_system_admits_one() -> None:
    machine = host_cpu.machine()
    assert machine.arch.name == "host" and machine.sm_count == len(host_cpu.cores()) >= 1
    assert machine.gpu == host_cpu.host_slug() and machine.dram_bytes > 0
    assert host_cpu.fastest_hz(replace(machine, clock_hz=None)) == host_cpu.FASTEST_CLOCK_HZ
    assert host_cpu.fastest_hz(replace(machine, clock_hz=1e9)) == 1e9
