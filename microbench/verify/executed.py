"""Probes without their GPU: each point's kernels and its `run` executed by the emulator, results held against NumPy's.

A row says what was executed and whether it was right. It has no value, no time and no place in a file: nothing that was
emulated can enter a run or a profile.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from microbench.console.progress import watching
from microbench.device.emulated import EmulatedGpu
from microbench.errors import sentence
from microbench.measure import open_bench
from microbench.point import Point
from microbench.probe import Probe


@dataclass(frozen=True)
class Executed:
    """One point of a probe. `checked` arrays were held against NumPy's; a reason stands where something was wrong."""

    probe: str
    arch: str
    point: Point
    status: Literal["emulated", "unsupported", "failed"]
    checked: int = 0
    reason: str | None = None


def execute(probes: tuple[Probe, ...], device: EmulatedGpu, quick: bool = False) -> tuple[Executed, ...]:
    """Every point of each probe that this architecture has, those of --quick where `quick`."""
    arch = device.machine.arch
    work = [(probe, point) for probe in probes if probe.runs_on(arch) for point in points(probe, quick)]
    rows = []
    with watching(len(work)) as watcher:
        for probe, point in work:
            watcher.doing(probe.name, str(point))
            rows.append(execute_point(probe, point, device))
            watcher.finished()
    return tuple(rows)


def points(probe: Probe, quick: bool) -> Iterator[Point]:
    """The points of a sweep; of those whose kernels are the same, as with footprints, --quick keeps the outer two."""
    if not quick or probe.builds is None:
        yield from probe.points(quick)
        return
    alike: dict[object, list[Point]] = {}
    for point in tuple(probe.points(quick)) or probe.points():  # a soak has none where a run is quick
        alike.setdefault(probe.builds(point), []).append(point)
    for group in alike.values():
        yield from dict.fromkeys((group[0], group[-1]))


def execute_point(probe: Probe, point: Point, device: EmulatedGpu) -> Executed:
    """One point. Whatever a probe raises is the row's reason."""
    arch = device.machine.arch.name
    if probe.skip and (why := probe.skip(device.machine, point)):
        return Executed(probe.name, arch, point, "unsupported", reason=why)
    bench = open_bench(device, probe, "nvrtc", quick=True)
    try:
        probe.run(bench, point)
    except Exception as error:  # a probe may raise anything, and the others must go on
        return Executed(probe.name, arch, point, "failed", bench.checked, sentence(error, probe.file))
    return Executed(probe.name, arch, point, "emulated", bench.checked)
