"""JSON Schema of the files that others may read or write: `python -m microbench.results.schema` writes data/schema."""

import json
import sys
from pathlib import Path

from pydantic import BaseModel

from microbench import paths
from microbench.results.profile import Profile
from microbench.results.record import Environment, Record

MODELS: tuple[tuple[str, type[BaseModel]], ...] = (
    ("environment", Environment),
    ("record", Record),
    ("profile", Profile),
)


def text(model: type[BaseModel]) -> str:
    """The schema of `model` as the file holds it, indented, ending in a newline."""
    return json.dumps(model.model_json_schema(), indent=2) + "\n"


def write(folder: Path) -> tuple[Path, ...]:
    """Write environment, record and profile to `folder`/<name>.schema.json and return the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for name, model in MODELS:
        file = folder / f"{name}.schema.json"
        file.write_text(text(model), encoding="utf-8")
        files.append(file)
    return tuple(files)


def stale(folder: Path) -> tuple[str, ...]:
    """The names of the schemas in `folder` that are missing, or not what the models give today."""
    files = ((name, folder / f"{name}.schema.json", model) for name, model in MODELS)
    return tuple(
        name for name, file, model in files if not file.is_file() or file.read_text(encoding="utf-8") != text(model)
    )


if __name__ == "__main__":
    for written in write(paths.writable_data() / "schema"):
        sys.stdout.write(f"{written.name}\n")
