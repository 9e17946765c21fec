"""Every probe on a GPU: what its launches leave is what it declares, by NumPy, as on an emulated one.

A probe has a process of its own, so that a fault costs the points of one probe alone.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from microbench.compile import Source, source_of
from microbench.compile.together import compile_ahead
from microbench.console.progress import watching
from microbench.device import open_device
from microbench.device.cuda import CudaDevice
from microbench.errors import DeviceError, EnvironmentLacks, sentence
from microbench.machine.arch import by_name
from microbench.measure.checked import CheckedBench
from microbench.point import Point
from microbench.probe import Build, Probe
from microbench.probes import discover
from microbench.verify import processes
from microbench.verify.executed import points
from microbench.verify.results import Failure, ProbeResult

Piece = tuple[str, Point]  # a probe's name, and one of its points


@dataclass(frozen=True)
class Examined:
    """One point: the arrays held against NumPy's, the images that ran, why it was left out, and what was wrong."""

    arrays: int = 0
    cubins: tuple[str, ...] = ()
    nvrtc: tuple[str, ...] = ()
    unsupported: str = ""
    wrong: str = ""


def verify(
    probes: Sequence[Probe], device: str, where: Mapping[str, Any], folders: Sequence[Path] = ()
) -> Iterator[ProbeResult]:
    """The result of each probe, as soon as it is whole. `where` is results.where() of the device, 'cuda:N'.

    Raises EnvironmentLacks where a worker lacks CuPy or NVRTC.
    """
    quick = bool(where["quick"])
    families: list[list[Piece]] = [[(probe.name, point) for point in points(probe, quick)] for probe in probes]
    left = {family[0][0]: len(family) for family in families if family}
    found: dict[str, list[tuple[Point, Examined]]] = {name: [] for name in left}
    compile_ahead(source for probe in probes for source in _sources(probe, str(where["arch"]), quick))
    with watching(sum(left.values())) as watcher:
        # One at a time: a probe may count on a GPU of its own, as in a run.
        for (name, point), answer in processes.answers(families, partial(opened, device, tuple(folders)), lanes=1):
            failed = isinstance(answer, processes.Failed)
            found[name].append((point, Examined(wrong=answer.reason) if failed else answer))
            watcher.doing("probes", name)
            watcher.finished()
            left[name] -= 1
            if not left[name]:
                result = _result(name, found[name], where)
                if not result.ok:
                    watcher.say(f"{name}: {result.failures[0].what}: {result.failures[0].reason}")
                yield result


def opened(device: str, folders: tuple[Path, ...]) -> Callable[[Piece], Examined]:
    """In a worker: a GPU that examines one point."""
    gpu = open_device(device)
    assert isinstance(gpu, CudaDevice)
    probes = {probe.name: probe for probe in discover(*folders)}

    def examine(piece: Piece) -> Examined:
        return examined(gpu, probes[piece[0]], piece[1])

    return examine


def examined(device: CudaDevice, probe: Probe, point: Point) -> Examined:
    """One point of a probe. Raises DeviceError, after which the process is of no use, and EnvironmentLacks."""
    if probe.skip and (why := probe.skip(device.machine, point)):
        return Examined(unsupported=why)
    bench, wrong = CheckedBench(device, probe, "nvrtc", quick=True), ""
    try:
        probe.run(bench, point)
    except (DeviceError, EnvironmentLacks):
        raise
    except Exception as error:  # a probe may raise anything, and the others must go on
        if "cuda" in type(error).__module__:
            raise
        wrong = sentence(error, probe.file)
    built = [kernel.cubin for (name, *_), kernel in device.kernels.items() if name == probe.name and kernel.cubin]
    return Examined(
        bench.checked, tuple(cubin.sha256 for cubin in built), tuple(cubin.nvrtc for cubin in built), wrong=wrong
    )


def _sources(probe: Probe, arch: str, quick: bool) -> tuple[Source, ...]:
    """What the points of a probe are built of; none where its own functions fail, which its points will say."""
    try:
        builds = dict.fromkeys(build for point in points(probe, quick) for build in (probe.builds or _none)(point))
        return tuple(source_of(probe, build, by_name(arch)) for build in builds)
    except Exception:
        return ()


def _none(_: Point) -> tuple[Build, ...]:
    return ()


def _result(name: str, found: Sequence[tuple[Point, Examined]], where: Mapping[str, Any]) -> ProbeResult:
    wrong = tuple(Failure(what=str(point), reason=each.wrong) for point, each in found if each.wrong)
    return ProbeResult(
        **where,
        probe=name,
        points=sum(not each.unsupported for _, each in found),
        unsupported=sum(bool(each.unsupported) for _, each in found),
        arrays=sum(each.arrays for _, each in found),
        nvrtc=" ".join(sorted({nvrtc for _, each in found for nvrtc in each.nvrtc})),
        cubins=tuple(sorted({cubin for _, each in found for cubin in each.cubins})),
        failures=wrong,
    )
