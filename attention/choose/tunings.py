"""Timings of `smscope tune` that hold here, looked up by each choice: the file is read once, and a line when it is met.

A line holds for the GPU, driver, torch and kernel texts that it was timed with. One that is of others, or that was
timed beside another process, decides nothing.
"""

import statistics
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from attention.choose import here, learned_key, tunings_file
from attention.choose.here import Here
from attention.choose.rates import HOST
from attention.choose.tuning import Measured, Tuning
from attention.choose.tunings_file import TEXT_DIGITS, Line, Raw
from attention.errors import AttentionError
from attention.problem import AttentionProblem
from attention.timed.named import config_of
from attention.variant import Config, by_path
from microbench import faults, paths
from microbench.errors import DataWarning
from microbench.results.profile import Profile
from microbench.results.record import DISTURBANCES


@dataclass(frozen=True)
class _Known:
    """Where a GPU's timings are taken now, and its lines by the key of their class."""

    here: Here
    lines: Mapping[str, tuple[Raw, ...]]


_known: dict[tuple[object, ...], _Known | None] = {}
_said: set[Path] = set()


def forget() -> None:
    """Read the files anew when they are next asked for."""
    _known.clear()
    _said.clear()


def tuning_of(profile: Profile, problem: AttentionProblem) -> Tuning | None:
    """What was timed of a problem's class on the GPU of a profile, where it is here and the timings hold.

    A DataWarning says once for each file that its timings are of another driver, torch or text, or that a line is none.
    """
    known = _of(profile)
    if known is None or not known.lines:
        return None
    why: tuple[Raw, Line, str] | None = None
    for raw in reversed(known.lines.get(tunings_file.key_of(problem), ())):
        line = _line(raw)
        if line is None:
            continue
        stale = stale_by(line, known.here)
        if not stale:
            return tuning(line)
        why = why or (raw, line, stale)
    if why is not None:
        _say(*why)
    return None


def _of(profile: Profile) -> _Known | None:
    if profile.arch == HOST:
        return None
    asked = (profile.gpu, profile.name, profile.sm_count, tuple(paths.data_roots()))
    if asked not in _known:
        found = here.here_of(profile) if tunings_file.any_there() else None
        _known[asked] = None if found is None else _Known(found, tunings_file.read(found.gpu))
    return _known[asked]


def _line(raw: Raw) -> Line | None:
    try:
        return Line.model_validate_json(raw.text)
    except ValidationError as error:
        faults.leave_out(raw.file, [f"line {raw.number}: {faults.first_of(error)}"])
    except AttentionError as error:
        faults.leave_out(raw.file, [f"line {raw.number}: {error}"])
    return None


def stale_by(line: Line, now: Here) -> str:
    """Why a line does not hold, to follow 'its timings are'; empty where it does."""
    texts = learned_key.texts()
    changed = [path for path, text in line.texts.items() if texts.get(path, "")[:TEXT_DIGITS] != text]
    disturbed = [flag for flag in line.flags if flag in DISTURBANCES]
    found = [f"of driver {line.driver}, and here is {now.driver}"] if line.driver != now.driver else []
    found += [f"of torch {line.torch}, and here is {now.torch}"] if line.torch != now.torch else []
    found += [f"of another text of {path}" for path in changed]
    found += [f"disturbed ({', '.join(disturbed)})"] if disturbed else []
    return "; ".join(found)


def _say(raw: Raw, line: Line, stale: str) -> None:
    if raw.file in _said:
        return
    _said.add(raw.file)
    again = f"they are ignored until `{paths.typed('tune')}` times it again"
    text = f"{tunings_file.FOLDER}/{raw.file.name}: the timings of {line.problem} are {stale}; {again}."
    warnings.warn(text, DataWarning, stacklevel=3)


def tuning(line: Line) -> Tuning:
    """What a line says of the candidates that were right."""
    measured = [
        Measured(
            each.variant,
            _config(each.variant, line.problem, each.config),
            statistics.median(each.seconds),
            len(each.seconds),
        )
        for each in line.candidates
        if each.seconds and each.failure is None
    ]
    ordered = tuple(sorted(measured, key=lambda each: each.seconds))
    return Tuning(line.problem, ordered, line.driver, line.torch, line.measured_utc)


def _config(variant: str, problem: AttentionProblem, named: Mapping[str, int]) -> Config:
    """As a candidate of today names it; as the line does where no kernel of today is meant."""
    try:
        return config_of(by_path(variant), problem, named)
    except (AttentionError, KeyError):
        return Config(tuple(named.items()))
