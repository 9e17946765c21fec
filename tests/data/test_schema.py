"""The committed JSON Schemas are those of the models."""

import json
from pathlib import Path

import jsonschema
import pytest

from microbench import files, paths
from microbench.results import schema
from microbench.results.record import Record


def test_the_committed_schemas_are_current() -> None:
    assert schema.stale(paths.SHIPPED / "schema") == (), "run `python -m microbench.results.schema`"


def test_a_missing_or_changed_schema_is_stale(tmp_path: Path) -> None:
    assert schema.stale(tmp_path) == ("environment", "record", "profile")
    files = schema.write(tmp_path)
    assert schema.stale(tmp_path) == ()
    changed = json.loads(files[1].read_text())
    del changed["properties"]["value"]
    files[1].write_text(json.dumps(changed))
    assert schema.stale(tmp_path) == ("record",)


def test_an_unknown_field_is_refused_by_every_schema() -> None:
    for model in schema.MODELS.values():
        assert json.loads(schema.text(model))["additionalProperties"] is False


def test_a_record_as_it_is_written_keeps_its_schema(tmp_path: Path) -> None:
    row = Record(
        run_id="r", campaign=1, probe="p", family="f", method="nvrtc", metric="m", unit="cycles", status="ok", value=4
    )
    files.append(tmp_path / "run.jsonl", row)
    written = json.loads((tmp_path / "run.jsonl").read_text())
    committed = json.loads((paths.SHIPPED / "schema" / "record.schema.json").read_text())
    jsonschema.validate(written, committed)
    with pytest.raises(jsonschema.ValidationError, match="colour"):
        jsonschema.validate({**written, "colour": "red"}, committed)
