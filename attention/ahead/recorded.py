"""The file of recorded calls: a line for each kind of call, appended by every process that records, merged by reading.

A line carries its version, so that what an older or newer smscope wrote is named and never misread.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import PositiveInt, ValidationError

from attention.errors import AttentionError
from attention.problem import AttentionProblem
from microbench import files
from microbench.errors import DataError
from microbench.files import Frozen

VERSION = 1
AGAIN = "record the program again with attention.record"
Door = Literal["sdpa", "flash_attn"]


@dataclass(frozen=True)
class RecordedCall:
    """One kind of call: its problem, by which function it came, and whether gradients were asked for.

    The door decides who serves gradients: sdpa hands a call to torch whole where no fused backward fits.
    """

    problem: AttentionProblem
    door: Door = "sdpa"
    gradients: bool = False
    only: str = ""

    def __str__(self) -> str:
        return f"{self.problem}{' with gradients' if self.gradients else ''}"


class Line(Frozen):
    """What a file holds of one kind of call."""

    version: int
    count: PositiveInt
    problem: AttentionProblem
    door: Door
    gradients: bool
    only: str


def append(path: Path, counts: Mapping[RecordedCall, int]) -> None:
    """Add these calls to a file, all or none. Raises DataError."""
    lines = [Line(version=VERSION, count=count, **vars(call)) for call, count in counts.items()]
    if lines:
        files.append_lines(path, [line.model_dump_json() for line in lines])


def read(path: Path) -> Counter[RecordedCall]:
    """How often each kind of call was recorded. Raises DataError, which names the line."""
    try:
        texts = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise DataError(f"The recorded calls in {path.name} cannot be read ({why}); {AGAIN}.") from error
    found: Counter[RecordedCall] = Counter()
    for number, text in enumerate(texts, 1):
        line = _line(f"line {number} of {path.name}", text)
        found[RecordedCall(line.problem, line.door, line.gradients, line.only)] += line.count
    return found


def _line(where: str, text: str) -> Line:
    try:
        raw = json.loads(text)
        version = raw.get("version") if isinstance(raw, dict) else None
        if isinstance(version, int) and version != VERSION:
            raise DataError(
                f"{where} was recorded as version {version}, and this smscope reads version {VERSION}; {AGAIN}."
            )
        return Line.model_validate(raw)
    except (json.JSONDecodeError, ValidationError, AttentionError) as error:
        raise DataError(f"{where} is no recorded call; take that line out, or {AGAIN}.") from error


def calls_of(given: str | Path | Iterable[AttentionProblem | RecordedCall]) -> tuple[RecordedCall, ...]:
    """The distinct calls of a file, the most frequent first, or those that are given. Raises DataError."""
    if isinstance(given, str | Path):
        return tuple(call for call, _ in read(Path(given)).most_common())
    each = (call if isinstance(call, RecordedCall) else RecordedCall(call) for call in given)
    return tuple(dict.fromkeys(each))
