"""The first line of a run: with what it was measured, and which older run it may go on with."""

import hashlib
import platform
import secrets
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from microbench import paths
from microbench.machine import stamp
from microbench.probe import Probe
from microbench.results.record import Axes, Environment
from microbench.run.wire import Hello

# Everything whose version can move a number, whichever of them is installed.
PACKAGES = (
    *("smscope", "numpy", "scipy", "pydantic", "numba", "llvmlite", "numba-cuda"),
    *("cupy-cuda12x", "cupy-cuda13x", "cuda-bindings", "cuda-core", "nvidia-ml-py"),
    *("nvidia-cuda-nvrtc-cu12", "nvidia-cuda-nvrtc"),
)
SOURCES = frozenset({".py", ".cu", ".cuh"})

# Two runs that agree in these measured the same thing with the same code: the later may go on with the earlier.
_SAME = ("gpu", "uuid_sha256", "driver", "nvrtc", "commit", "sources_sha256", "quick", "only", "campaigns")


def describe(
    hello: Hello, quick: bool, only: tuple[str, ...], campaigns: int, folders: Iterable[Path], probes: Iterable[Probe]
) -> Environment:
    """The environment of a new run on the device that said `hello`. Raises nothing: an unknown fact is None."""
    now = datetime.now(UTC)
    machine, commit = hello.machine, stamp.commit()
    return Environment(
        run_id=f"{now:%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}",
        started_utc=now.isoformat(timespec="seconds"),
        compute_capability=machine.arch.compute_capability,
        **(vars(machine) | {"arch": machine.arch.name} | vars(hello.facts)),
        python=platform.python_version(),
        packages=packages(),
        commit=commit.sha,
        dirty=commit.dirty,
        sources_sha256=sources((paths.PACKAGE, *folders)),
        quick=quick,
        only=only,
        campaigns=campaigns,
        probes={probe.name: _axes(probe) for probe in probes},
    )


def _axes(probe: Probe) -> Axes:
    units = {metric.name: metric.unit for metric in probe.metrics}
    return Axes(family=probe.family, axes=tuple(axis.name for axis in probe.axes), units=units)


def same(one: Environment, other: Environment) -> bool:
    """True where the rows of one may stand in the file of the other."""
    return all(getattr(one, name) == getattr(other, name) for name in _SAME)


def packages() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def sources(roots: Iterable[Path]) -> str:
    """One hash over every source file below these folders: it tells an edited checkout from a clean one."""
    digest = hashlib.sha256()
    for root in roots:
        for file in sorted(path for path in root.rglob("*") if path.suffix in SOURCES and path.is_file()):
            digest.update(file.relative_to(root).as_posix().encode())
            digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:16]
