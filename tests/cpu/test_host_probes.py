"""The host probes: their kernels compute what they say, and every one measures this CPU within its bounds."""

import contextlib
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microbench.device.host import HostDevice
from microbench.errors import DeviceError
from microbench.machine.arch import HOST
from microbench.machine.cpu import Caches
from microbench.measure import open_bench
from microbench.measure.host_memory import Memory
from microbench.point import Point
from microbench.probe import Probe, Sample
from microbench.probes import discover
from microbench.probes.host import host_bandwidth, host_dot, host_exp, host_memory_latency
from microbench.run.judge import judged
from microbench.run.plan import Task
from microbench.run.wire import Answer

HOST_PROBES = [probe for probe in discover() if probe.archs == HOST]
KIB = 1024


def first_and_last(probe: Probe, device: HostDevice) -> list[Point]:
    runnable = [p for p in probe.points(quick=True) if probe.skip is None or probe.skip(device.machine, p) is None]
    return [runnable[0], runnable[len(runnable) // 2]]


def patiently(measured: Callable[[], tuple[Sample, ...]], tries: int = 10) -> tuple[Sample, ...]:
    """Other tests run on every core meanwhile, and a probe says so: it is asked again."""
    for _ in range(tries - 1):
        with contextlib.suppress(DeviceError):
            return measured()
    return measured()


@pytest.mark.parametrize("probe", HOST_PROBES, ids=lambda probe: probe.name)
def test_every_probe_measures_this_cpu_within_its_bounds(probe: Probe, device: HostDevice) -> None:
    for point in first_and_last(probe, device):
        samples = patiently(lambda point=point: tuple(probe.run(open_bench(device, probe, "host", quick=True), point)))
        rows = judged("run", Task(0, probe, "host", point), device.machine, Answer(samples))
        assert [(row.status, row.reason) for row in rows] == [("ok", None)] * len(probe.metrics)


@pytest.mark.parametrize("probe", HOST_PROBES, ids=lambda probe: probe.name)
@pytest.mark.parametrize("clock_hz", [None, 3e9])
def test_every_probe_has_a_bound(probe: Probe, device: HostDevice, clock_hz: float) -> None:
    machine = replace(device.machine, clock_hz=clock_hz)
    limits = [metric.bound.at(machine, point) for metric in probe.metrics for point in probe.points()]
    assert any(limit is not None for pair in limits for limit in pair)


@given(st.integers(1, 300), st.integers(0, 2**32 - 1))
@settings(max_examples=20, deadline=None)
def test_the_chase_meets_every_line_once_a_lap(lines: int, seed: int) -> None:
    memory = Memory(64 * lines)
    order = np.random.default_rng(seed).permutation(lines).astype(np.uint32)
    host_memory_latency.link(memory.array(np.uint64), order, np.uint64(memory.address), 8)
    start = np.uint64(memory.address + 64 * int(order[0]))
    met = [int(host_memory_latency.chase(start, loads)) for loads in range(lines + 1)]
    assert [(place - memory.address) // 64 for place in met] == [*order.tolist(), int(order[0])]


def test_the_polynomial_is_an_exponential() -> None:
    x = np.linspace(-87, 88, 100_001, dtype=np.float32)
    polynomial, libm = np.empty_like(x), np.empty_like(x)
    host_exp.polynomial(x, polynomial, 1)
    host_exp.libm(x, libm, 1)
    true = np.exp(x.astype(np.float64))
    # The argument is rounded to f32 before it is split, which costs |x| * 2**-24 beside the polynomial's own error.
    assert (np.abs(polynomial / true - 1) < 4e-6 + np.abs(x) * 2**-23).all()
    assert (np.abs(libm / true - 1) < 1e-6).all()


def test_products_and_streams_are_right() -> None:
    rng = np.random.default_rng(0)
    rows, query = rng.normal(size=(16, 128)).astype(np.float32), rng.normal(size=128).astype(np.float32)
    out = np.empty(16, np.float32)
    host_dot.dots(rows, query, out, 2)
    assert out == pytest.approx(rows.astype(np.float64) @ query, rel=1e-4, abs=1e-4)
    words = rng.integers(-100, 100, 1000)
    copied = np.empty_like(words)
    host_bandwidth.copy(words, copied, 3)
    assert (copied == words ^ 3).all() and host_bandwidth.read(words, 3) == 3 * words.sum()
    a, b, c = rng.normal(size=(3, 500))
    host_bandwidth.triad(a, b, c, 1)
    assert c == pytest.approx(a + 3 * b)


@given(
    st.sampled_from([32, 48, 64, 128]),
    st.sampled_from([None, 256, 1024, 2048, 16384]),
    st.sampled_from([None, 4096, 32768, 262144]),
    st.sampled_from([1, 2, 16, 96]),
)
def test_a_footprint_lies_in_its_level(l1: int, l2: int | None, l3: int | None, threads: int) -> None:
    caches = Caches(*(kib and kib * KIB for kib in (l1, l2, l3)))
    l1_bytes, l2_bytes, l3_bytes, dram_bytes = (
        host_bandwidth.footprint_bytes(level, threads, caches, 64 * KIB**3) for level in ("l1", "l2", "l3", "dram")
    )
    assert 0 < (l1_bytes or 0) < l1 * KIB
    assert (l2_bytes is None) == (l2 is None) and (l2_bytes is None or l1 * KIB <= l2_bytes < (l2 or 0) * KIB)
    if l3_bytes is not None:
        assert l3 and 2 * (l2 or l1) * KIB <= l3_bytes <= l3 * KIB // 2 // threads
    assert dram_bytes and dram_bytes >= 4 * (l2 or l1) * KIB
