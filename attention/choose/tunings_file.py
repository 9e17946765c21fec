"""The file boundary of what `smscope tune` timed: tunings/<gpu>.jsonl, a class of problems a line, append-only.

A line begins with the key of its class, so that a call finds its line without parsing the others. A newer line of a
class stands for the older ones.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from hashlib import sha256
from pathlib import Path
from typing import Literal

from pydantic import Field, PositiveFloat

from attention.choose.classes import broad
from attention.problem import AttentionProblem
from microbench import faults, files, paths
from microbench.files import Frozen

FOLDER = "tunings"
BEGIN = b'{"key":"'
KEY_DIGITS = TEXT_DIGITS = 16


class TimedCandidate(Frozen):
    """One candidate, a number each sample; `failure` says why there is none.

    A kernel of torch's has its name in data (peer/torch_flash) and neither a configuration nor a cubin that is known.
    """

    variant: str
    config: dict[str, int] = Field(default_factory=dict)
    cubin_sha256: str = ""  # of a kernel of several steps theirs, joined by +
    nvrtc: str = ""
    seconds: tuple[PositiveFloat, ...] = ()
    clock_mhz: tuple[float | None, ...] = ()
    power_w: tuple[float | None, ...] = ()
    error: float | None = None  # largest absolute error of the checked rows
    allowed_error: float | None = None
    captured: bool = True  # in a CUDA graph
    failure: str | None = None


class Line(Frozen):
    """One class of problems on one GPU, timed by one of its problems under one driver and one torch."""

    key: str  # first: see BEGIN
    schema_version: Literal[1] = 1
    gpu: str
    driver: str
    torch: str
    texts: dict[str, str]  # of each kernel of ours that was timed, by variant (timed.identity)
    problem: AttentionProblem
    lengths: tuple[int, ...] = ()
    used: tuple[int, ...] = ()
    calls: int = Field(default=0, ge=0)  # of the class, in what attention.record wrote
    measured_utc: str
    wall_s: float
    seed: str
    commit: str | None = None
    dirty: bool | None = None
    flags: tuple[str, ...] = ()
    candidates: tuple[TimedCandidate, ...]


@dataclass(frozen=True)
class Raw:
    """A line of a file as it stands there."""

    file: Path
    number: int
    text: bytes


def key_of(problem: AttentionProblem) -> str:
    """What names the class that one timing serves: all but the scale, which costs nothing, and how heads are told."""
    judged = broad(problem.on("cuda"))
    plain = replace(judged, scale=None if judged.softmax_scale > 0 else judged.scale, enable_gqa=True)
    # Fields that ask for nothing are left out: a feature that is added later changes no key.
    asked = [(each.name, value) for each in fields(plain) if (value := getattr(plain, each.name)) != each.default]
    return sha256(repr(asked).encode()).hexdigest()[:KEY_DIGITS]


def append(line: Line) -> Path:
    """Add a line, a whole one or nothing. Raises DataError."""
    files.append(place(line.gpu), line)
    return place(line.gpu)


def place(gpu: str) -> Path:
    """Where a GPU's lines are written."""
    return paths.writable_data() / FOLDER / f"{gpu}.jsonl"


def any_there() -> bool:
    """Whether anything was ever tuned here."""
    return any(next((root / FOLDER).glob("*.jsonl"), None) for root in paths.data_roots())


def read(gpu: str) -> Mapping[str, tuple[Raw, ...]]:
    """The lines of a GPU by the key of their class, the oldest first; a DataWarning names those that are none."""
    found: dict[str, tuple[Raw, ...]] = {}
    for root in paths.data_roots():
        file, wrong = root / FOLDER / f"{gpu}.jsonl", list[str]()
        with suppress(OSError):
            for number, text in enumerate(file.read_bytes().split(b"\n"), start=1):
                end = len(BEGIN) + KEY_DIGITS
                if text.startswith(BEGIN) and text[end : end + 1] == b'"' and text.endswith(b"}"):
                    key = text[len(BEGIN) : end].decode(errors="replace")
                    found[key] = (*found.get(key, ()), Raw(file, number, text))
                elif text.strip():
                    wrong.append(f"line {number}: no timings of a problem")
        faults.leave_out(file, wrong)
    return found
