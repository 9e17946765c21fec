"""What a supervisor and its worker say to each other: frozen dataclasses, pickled through a private pipe."""

from dataclasses import dataclass

from microbench.machine.arch import DeviceFacts, Machine
from microbench.point import Point
from microbench.probe import Sample


@dataclass(frozen=True)
class Open:
    """The supervisor's first word: no other worker measures, so the device may be opened."""


@dataclass(frozen=True)
class Hello:
    """The worker's answer: the device is open."""

    machine: Machine
    facts: DeviceFacts


@dataclass(frozen=True)
class Ask:
    """Points of one probe, each with its method, to be answered one by one in this order."""

    probe: str
    points: tuple[tuple[str, Point], ...]


@dataclass(frozen=True)
class Answer:
    """What came of one point: samples, or the reason why there are none. A `broken` one is the worker's last."""

    samples: tuple[Sample, ...] = ()
    flags: tuple[str, ...] = ()
    cubin_sha256: str | None = None
    registers: int | None = None
    reason: str | None = None
    seconds: float | None = None  # wall time of the point
    broken: bool = False  # the worker must not be used again: its GPU context may be broken


@dataclass(frozen=True)
class Refusal:
    """The device could not be opened: the exception's class name in errors.py, and its sentence."""

    kind: str
    message: str
