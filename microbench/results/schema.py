"""JSON Schema of the files that others may read or write: `python -m microbench.results.schema` writes data/schema."""

import json
import sys
from pathlib import Path

from pydantic import BaseModel

from microbench import paths
from microbench.results.profile import Profile
from microbench.results.record import Environment, Record

MODELS: dict[str, type[BaseModel]] = {"environment": Environment, "record": Record, "profile": Profile}


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
