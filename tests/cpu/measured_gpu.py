"""A GPU for the whole suite: its workers give numbers that physics allows, and caches end where this board's do.

Supervisor, plan, judge, file and profile are the real ones; what is left out is what only silicon can do.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from microbench import run
from microbench.machine import arch, nvml
from microbench.machine.arch import DeviceFacts, Machine
from microbench.point import Point
from microbench.probe import Metric, Probe, Sample
from microbench.run import suite
from microbench.run.ahead import Built
from microbench.run.plan import Task
from microbench.run.wire import Answer, Hello

UUID = nvml.uuid_sha256("GPU-of-nobody")
BLACKWELL = nvml.Gpu(0, "NVIDIA B200", 180 << 30, (10, 0), False)
VOLTA = nvml.Gpu(0, "Tesla V100-SXM2-16GB", 16 << 30, (7, 0), False)
HIGHEST, LOWEST = 0.98, 3.0  # of what a bound allows
PLAIN = {"temperature_c": 60.0}
CLOCK_HZ = 1.5e9
KIB, MIB = 1 << 10, 1 << 20


@dataclass(frozen=True)
class Caches:
    """Where loads of one thread begin to take longer, and how long they take before it, in cycles."""

    l1_bytes: int
    near_l2_bytes: int
    l2_bytes: int
    cycles: tuple[float, float, float, float] = (40.0, 260.0, 420.0, 800.0)

    def latency(self, footprint: int) -> float:
        ends = (self.l1_bytes, self.near_l2_bytes, self.l2_bytes)
        return self.cycles[sum(footprint > end for end in ends)]


CACHES = {"sm100a": Caches(220 * KIB, 50 * MIB, 100 * MIB), "sm70": Caches(116 * KIB, 3 * MIB, 6 * MIB)}


def machine_of(gpu: nvml.Gpu) -> Machine:
    here = arch.by_compute_capability(*gpu.compute_capability)
    l2_bytes = CACHES[here.name].l2_bytes
    return Machine(gpu.slug, gpu.name, here, 80, CLOCK_HZ, 1e12, gpu.memory_bytes, l2_bytes)


@dataclass
class Worker:
    """Answers every point of this machine at once; `left` of them until someone types Ctrl-C."""

    machine: Machine
    asked: list[str]
    left: list[int]

    @property
    def hello(self) -> Hello:
        return Hello(self.machine, DeviceFacts(driver="580.1", nvrtc="12.9.86", uuid_sha256=UUID))

    def ask(self, tasks: Sequence[Task]) -> Iterator[Answer]:
        for task in tasks:
            if self.left and not self.left[0]:
                raise KeyboardInterrupt
            self.left[:] = [count - 1 for count in self.left]
            self.asked.append(f"{task.campaign} {task.probe.name} {task.method} {task.point}")
            yield Answer(tuple(samples(task.probe, task.point, self.machine)), cubin_sha256="c" * 64, registers=32)


@dataclass
class Suite:
    """What was asked of the GPU, in order; `interrupt_after` so many points of the next run."""

    asked: list[str]
    left: list[int]

    def interrupt_after(self, points: int | None) -> None:
        self.left[:] = [] if points is None else [points]


def measure(monkeypatch: pytest.MonkeyPatch, gpu: nvml.Gpu) -> Suite:
    """This machine's only GPU is this one, and it can be measured."""
    asked, left = list[str](), list[int]()
    worker = Worker(machine_of(gpu), asked, left)
    crew = SimpleNamespace(
        worker=lambda more=False: worker, relieve=lambda: None, lose=lambda: None, close=lambda: None, starting_s=0.0
    )
    monkeypatch.setattr(nvml, "visible_gpus", lambda: [gpu])
    monkeypatch.setattr(nvml, "facts", lambda _: SimpleNamespace(driver="580.1", uuid_sha256=UUID))
    monkeypatch.setattr(nvml, "state", lambda _: nvml.State(ecc=True))
    monkeypatch.setattr(run, "Crew", lambda *_: crew)
    monkeypatch.setattr(suite.ahead, "build", lambda *_: Built())
    return Suite(asked, left)


def samples(probe: Probe, point: Point, machine: Machine) -> Iterator[Sample]:
    for metric in probe.metrics_at(point):
        value = _value(probe, metric, point, machine)
        yield Sample(metric.name, value, value, value, 15, machine.clock_hz / 1e6 if machine.clock_hz else None)


def _value(probe: Probe, metric: Metric, point: Point, machine: Machine) -> float:
    axes = dict(point.values)
    if "footprint_bytes" in axes and metric.name.startswith("latency"):
        cycles = CACHES[machine.arch.name].latency(point["footprint_bytes"])
        return cycles if metric.unit == "cycles" else cycles / CLOCK_HZ * 1e9
    if probe.family == "shared_memory" and metric.unit == "cycles":
        return _of_shared_memory(metric, axes)
    if metric.name in PLAIN:
        return PLAIN[metric.name]
    lower, upper = metric.bound.at(machine, point)
    if upper is not None:
        return HIGHEST * upper
    return LOWEST * lower if lower else 100.0


def _of_shared_memory(metric: Metric, axes: dict[str, Any]) -> float:
    """One more phase for each way of a conflict; a load that computes its address takes longer."""
    phases = int(axes.get("ways", 1)) * int(axes.get("width_bytes", 4)) / 4
    return phases if metric.name.startswith("interval") else 24 + 2 * phases + 6 * (axes.get("chase") == "index")
