"""What a supervisor and its worker say to each other: three frozen dataclasses, pickled through a private pipe."""

import re
import traceback
from dataclasses import dataclass
from pathlib import Path

from microbench.errors import SmscopeError
from microbench.machine.arch import DeviceFacts, Machine
from microbench.point import Point
from microbench.probe import Sample

LONGEST_REASON = 600
_FOLDERS = re.compile(r"(?<![\w.])(?:/[\w.@+-]+)+/")


@dataclass(frozen=True)
class Hello:
    """The worker's first word: the device is open."""

    machine: Machine
    facts: DeviceFacts


@dataclass(frozen=True)
class Ask:
    probe: str
    method: str
    point: Point


@dataclass(frozen=True)
class Answer:
    """What came of one point: samples, or the reason why there are none."""

    samples: tuple[Sample, ...] = ()
    flags: tuple[str, ...] = ()
    cubin_sha256: str | None = None
    registers: int | None = None
    reason: str | None = None
    broken: bool = False  # the worker must not be used again: its GPU context may be broken


@dataclass(frozen=True)
class Refusal:
    """The device could not be opened: the exception's class name in errors.py, and its sentence."""

    kind: str
    message: str


def sentence(error: BaseException, within: Path | None = None) -> str:
    """An exception on one line, with its class where we did not raise it; folders are cut off file names.

    Where `within` is given, an exception that is not ours ends with the last line of that file that it went through.
    Records travel: a reason must not carry the names of a machine's folders or users. A ContractError keeps its diff.
    """
    lines = [" ".join(line.split()) for line in str(error).splitlines() if line.strip()]
    ours = isinstance(error, SmscopeError)
    text = "; ".join(lines) if ours else ": ".join([type(error).__name__, *lines[:1]])
    text = _FOLDERS.sub("", text if len(text) <= LONGEST_REASON else text[: LONGEST_REASON - 3] + "...")
    return text if ours or within is None else text + _where(error, within)


def _where(error: BaseException, file: Path) -> str:
    """' (copy.py:12)': the innermost frame in `file`; nothing where the exception never passed through it."""
    lines = [line for frame, line in traceback.walk_tb(error.__traceback__) if _same(frame.f_code.co_filename, file)]
    return f" ({file.name}:{lines[-1]})" if lines else ""


def _same(name: str, file: Path) -> bool:
    return Path(name).name == file.name and Path(name).resolve() == file.resolve()
