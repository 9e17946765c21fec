"""A file of `smscope verify` that somebody sent: what is taken of it, and the sentence where nothing is."""

import json
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from microbench import paths
from microbench.errors import DataError
from microbench.results import record as runs
from smscope import cli
from smscope.verified import packed, record
from smscope.verified.packed import PackedRun
from smscope.verified.received import receive
from tests.cpu.commands import called

GPU = "h200-sxm-141gb"
# Quick, of few probes, and of one board: it is read in no time.
RUN = paths.SHIPPED / "runs" / GPU / "20261123T072446Z-2a5459.jsonl"
VERIFIED = sorted((paths.SHIPPED / "verification").glob("*/*.json"))
Change = Callable[[dict[str, Any]], None]


def told(run: Path = RUN) -> dict[str, Any]:
    """A finished file of that board, with its run."""
    of = runs.read(run).environment
    where = {"gpu": of.gpu, "name": of.name, "arch": of.arch, "quick": False}
    result = {
        **where,
        "kind": "board",
        "nvrtc": "13.0.88",
        "verified_utc": "",
        "cubins": [],
        "failures": [],
        "run": of.run_id,
        "constants": 1,
        "measured": packed.pack(run).model_dump(),
    }
    done = {"step": "doctor", "name": "board", "verdict": "confirmed", "seconds": 30, "ended_utc": "", "result": result}
    asked = {"sources_sha256": "", "problems": 1, "seed": 0, "sanitize": False, "uuid_sha256": of.uuid_sha256}
    who = {**where, **asked}
    return {"run_id": "20270101T000000Z-abcdef", "started_utc": "", "who": who, "finished": True, "parts": [done]}


def mail(folder: Path, change: Change = lambda told: None) -> Path:
    file, content = folder / "mail.json", told()
    change(content)
    file.write_text(json.dumps(content))
    return file


def measured(told: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = told["parts"][0]["result"]["measured"]
    return found


def test_what_is_taken_lies_byte_for_byte_where_it_was_measured_and_twice_is_once(data: Path, tmp_path: Path) -> None:
    file = mail(tmp_path)
    first = receive(file)
    (run,) = first.runs
    assert run == data / "runs" / GPU / RUN.name and run.read_bytes() == RUN.read_bytes()
    assert first.file.read_bytes() == file.read_bytes() and first.file.with_suffix(".md").is_file()
    assert first.profile == data / "profiles" / f"{GPU}.json" and first.constants > 0
    before = {path: path.read_bytes() for path in data.rglob("*.*")}
    assert receive(file) == first and before == {path: path.read_bytes() for path in data.rglob("*.*")}


def _other_board(told: dict[str, Any]) -> None:
    told["who"]["uuid_sha256"] = "0" * 16


def _other_hash(told: dict[str, Any]) -> None:
    measured(told)["sha256"] = "0" * 64


def _no_base64(told: dict[str, Any]) -> None:
    measured(told)["xz_base64"] = "?"


def _no_xz(told: dict[str, Any]) -> None:
    measured(told)["xz_base64"] = b64encode(b"nothing").decode()


def _half(told: dict[str, Any]) -> None:
    measured(told)["xz_base64"] = measured(told)["xz_base64"][:4000]


def _climbs(told: dict[str, Any]) -> None:
    told["who"]["gpu"] = "../../elsewhere"


def _no_run(told: dict[str, Any]) -> None:
    del told["parts"][0]["result"]["measured"]


def _odd_name(told: dict[str, Any]) -> None:
    measured(told)["run"] = "../../../a"


def _climbing_file(told: dict[str, Any]) -> None:
    told["run_id"] = "../../a"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_other_board, r"is of another board or run \(h200-sxm-141gb, "),
        *((change, r"is damaged; ask for the file again") for change in (_other_hash, _no_base64, _no_xz, _half)),
        (_climbs, "is of no kind of GPU that can have a folder"),
        (_no_run, r"carries no run, so no profile follows from it.*one more `smscope verify` there"),
        (_odd_name, "is no run of this release's `smscope verify`"),
        (_climbing_file, "is of no run that can have a file"),
    ],
)
def test_what_is_not_that_board_s_whole_run_is_one_sentence_and_leaves_nothing(
    data: Path, tmp_path: Path, change: Change, said: str
) -> None:
    with pytest.raises(DataError, match=said):
        receive(mail(tmp_path, change))
    assert not list(data.rglob("*"))


def _lacking(told: dict[str, Any]) -> None:
    del told["who"]


def _unknown(told: dict[str, Any]) -> None:
    told["who"]["colour"] = "green"


def _strange(told: dict[str, Any]) -> None:
    told["parts"][0]["seconds"] = "long"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it is no JSON, or was cut short"),
        ("{}", "it lacks run_id"),
        ("[1, 2]", "it holds something else"),
        ('{"run_id": "2027', "it is no JSON, or was cut short"),
        ("\x00\xff", "it is no JSON, or was cut short"),
        (_lacking, "it lacks who"),
        (_unknown, "it has who.colour, which this release does not know"),
        (_strange, "its parts.0.seconds is none that this release reads"),
    ],
    ids=lambda each: getattr(each, "__name__", None),
)
def test_a_broken_file_is_one_sentence_that_says_what_which_file_and_what_to_do(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str | Change, why: str
) -> None:
    file = tmp_path / "mail.json" if isinstance(text, str) else mail(tmp_path, text)
    if isinstance(text, str):
        file.write_text(text)
    code, out, err = called(capsys, cli.main, "profile", "--from", str(file))
    named = "/".join(file.parts[-2:])
    assert (code, out) == (1, "") and err == (
        f"{named} is no run of this release's `smscope verify` ({why}); nothing of it is taken. Ask for that file "
        "again, or for one more `smscope verify` there.\n"
    )
    assert not list(data.rglob("*"))


def test_a_run_that_did_not_end_or_has_a_torn_line_is_not_taken(data: Path, tmp_path: Path) -> None:
    lines = RUN.read_bytes().splitlines(keepends=True)
    for content, said in ((lines[:-1], "did not come to its end"), ([*lines, b"{torn\n"], "has 1 lines that cannot")):
        torn = tmp_path / RUN.name
        torn.write_bytes(b"".join(content))
        file = tmp_path / "mail.json"
        file.write_text(json.dumps(told(torn)))
        with pytest.raises(DataError, match=said):
            receive(file)
    assert not list(data.rglob("*"))


def test_a_run_that_lies_here_is_never_written_over(data: Path, tmp_path: Path) -> None:
    there = data / "runs" / GPU / RUN.name
    there.parent.mkdir(parents=True)
    there.write_text("other rows\n")
    with pytest.raises(DataError, match=r"lies here with other rows than mail\.json has; runs are never changed"):
        receive(mail(tmp_path))
    assert there.read_text() == "other rows\n" and not (data / "profiles").exists()


def test_the_later_state_of_a_file_replaces_the_earlier_and_never_the_other_way(data: Path, tmp_path: Path) -> None:
    def more(told: dict[str, Any]) -> None:
        told["parts"].append({**told["parts"][0], "step": "probes", "name": "ffma_latency", "result": None})

    receive(mail(tmp_path))
    longer = receive(mail(tmp_path, more))
    assert len(record.read(longer.file).parts) == 2
    with pytest.raises(DataError, match=r"lies here with parts that mail\.json has not; take the later of the two"):
        receive(mail(tmp_path))


def test_the_verb_says_what_it_wrote(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = mail(tmp_path)
    code, out, _ = called(capsys, cli.main, "profile", "--from", str(file), "--json")
    found = json.loads(out)
    assert code == 0 and found["gpu"] == GPU and found["constants"] > 0 and len(found["files"]) == 3
    code, _, err = called(capsys, cli.main, "profile", GPU, "--from", str(file))
    assert code == 2 and "which says of which GPU it is; leave out the GPU and --probes" in err
    file.write_text("{}")
    code, _, err = called(capsys, cli.main, "profile", "--from", str(file))
    assert code == 1 and "mail.json is no run of this release's `smscope verify`" in err


@pytest.mark.parametrize("file", VERIFIED, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_files_that_were_committed_before_are_still_read(file: Path) -> None:
    assert record.read(file).who.gpu == file.parent.name


def test_a_packed_run_that_would_fill_the_memory_is_not_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    squeezed: PackedRun = packed.pack(RUN)
    monkeypatch.setattr(packed, "MOST_BYTES", 1000)
    with pytest.raises(DataError, match="damaged"):
        packed.unpack(squeezed)
