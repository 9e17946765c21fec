"""The committed JSON Schemas are those of the models."""

import json
from pathlib import Path

import jsonschema
import pytest

from microbench import files, paths
from microbench.results import record, schema
from microbench.results.record import Environment, Record


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
    files.append(tmp_path / "run.jsonl", row)  # as runs were written before schema 2
    told = {"gpu": "g", "name": "G", "arch": "sm90a", "compute_capability": (9, 0), "sm_count": 1, "dram_bytes": 1}
    started = {"run_id": "r", "started_utc": "now", "python": "3.11", "campaigns": 1}
    here = Environment.model_validate({**told, **started})
    record.append(tmp_path / "run.jsonl", here, row, row.model_copy(update={"metric": "other"}))
    lines = (tmp_path / "run.jsonl").read_text().splitlines()
    assert len(lines) == 2
    committed = json.loads((paths.SHIPPED / "schema" / "record.schema.json").read_text())
    for line in lines:
        jsonschema.validate(json.loads(line), committed)
    written = json.loads(lines[0])
    with pytest.raises(jsonschema.ValidationError, match="colour"):
        jsonschema.validate({**written, "colour": "red"}, committed)


def test_the_schema_of_a_line_has_every_field_of_a_record() -> None:
    assert set(Record.model_fields) | {"metrics"} == set(schema.Line.model_fields)
