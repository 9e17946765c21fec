"""JSON Schema of the files that others may read or write: `python -m microbench.results.schema` writes data/schema."""

import json
import sys
from pathlib import Path
from typing import Literal

from pydantic import BaseModel

from microbench import paths
from microbench.files import Frozen
from microbench.point import Value, Values
from microbench.results.profile import Profile
from microbench.results.record import BoundStatus, Environment, Status


class Measured(Frozen):
    """What is a metric's own in a line, where its point has several: all that Line has may stand here instead."""

    unit: str | None = None
    status: Status = "ok"
    reason: str | None = None
    value: float | None = None
    low: float | None = None
    high: float | None = None
    n: int = 0
    clock_mhz: float | None = None
    bound_lower: float | None = None
    bound_upper: float | None = None
    bound: BoundStatus | None = None
    flags: tuple[str, ...] = ()
    cubin_sha256: str | None = None
    registers: int | None = None
    seconds: float | None = None
    values: Values | None = None


class Line(Measured):
    """One point of one campaign in a run's file; what is left out the environment says, or the default.

    Either `metric` names the one quantity measured, or `metrics` what differs between several. `point` holds the values
    of the axes that the environment names for the probe, in their order, or names them itself.
    """

    kind: Literal["record"] = "record"
    run_id: str | None = None
    campaign: int
    probe: str
    family: str | None = None
    method: Literal["nvrtc", "numba", "host"] | None = None
    point: dict[str, Value] | tuple[Value, ...] = ()
    metric: str | None = None
    metrics: dict[str, Measured] | None = None


MODELS: dict[str, type[BaseModel]] = {"environment": Environment, "record": Line, "profile": Profile}


def text(model: type[BaseModel]) -> str:
    """The schema of `model` as the file holds it, indented, ending in a newline."""
    return json.dumps(model.model_json_schema(), indent=2) + "\n"


def write(folder: Path) -> tuple[Path, ...]:
    """Write environment, record and profile to `folder`/<name>.schema.json and return the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, model in MODELS.items():
        _file(folder, name).write_text(text(model), encoding="utf-8")
    return tuple(_file(folder, name) for name in MODELS)


def stale(folder: Path) -> tuple[str, ...]:
    """The names of the schemas in `folder` that are missing, or not what the models give today."""
    found = {name: file.read_text(encoding="utf-8") for name in MODELS if (file := _file(folder, name)).is_file()}
    return tuple(name for name, model in MODELS.items() if found.get(name) != text(model))


def _file(folder: Path, name: str) -> Path:
    return folder / f"{name}.schema.json"


if __name__ == "__main__":
    for written in write(paths.writable_data() / "schema"):
        sys.stdout.write(f"{written.name}\n")
