"""A run of scripted parts by a clock of the test's own: what a budget stops goes on exactly, and no result is lost."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from microbench.errors import BusyError, DataError, DataWarning, DeviceError, EnvironmentLacks, InputError
from microbench.verify.results import Failure, ProbeResult
from smscope.verified import budget, record, resuming, usual
from smscope.verified.campaign import Ended, go_on
from smscope.verified.part import Part
from smscope.verified.record import Done, Record, Who
from tests.cpu.verified_gpu import WHERE

WHO = Who(
    gpu="h100-sxm-80gb",
    name="NVIDIA H100",
    arch="sm90a",
    uuid_sha256="a board",
    commit="c0ffee",
    dirty=False,
    sources_sha256="5ca1ab1e",
    quick=False,
    problems=1000,
    seed=0,
    sanitize=False,
)
NAMES = ("one", "two", "three", "four")
PART_S = 10.0


@dataclass
class Gpu:
    """Parts that take PART_S of a clock each; `raises` ends those of these names."""

    now: float = 0.0
    ran: list[str] = field(default_factory=list)
    wrong: tuple[str, ...] = ()
    raises: dict[str, BaseException] = field(default_factory=dict)

    def parts(self, names: Sequence[str] = NAMES, lacks: str = "") -> list[Part]:
        return [Part("probes", name, self._run(name), lacks) for name in names]

    def _run(self, name: str) -> Callable[[], ProbeResult]:
        def run() -> ProbeResult:
            self.ran.append(name)
            self.now += PART_S
            if name in self.raises:
                raise self.raises[name]
            failures = (Failure(what="a point", reason="2 is not 1"),) if name in self.wrong else ()
            fields: dict[str, Any] = {**WHERE, "nvrtc": "12.9.86", "cubins": ("a", "b")}
            return ProbeResult(**fields, probe=name, points=1, unsupported=0, arrays=1, failures=failures)

        return run

    def call(self, within: str | None = None, who: Who = WHO, keep: object = None, **given: Any) -> Ended:
        """One call of the command: read what lies there, go on, write."""
        begun = resuming.begin(who, resuming.kept(who.gpu))
        limit = budget.started(within, lambda: self.now)
        store: Any = keep or (lambda so_far, done: record.write(so_far))
        return go_on(begun.record, self.parts(**given), (), limit, lambda part: PART_S, store)


def on_file() -> Record:
    (only,) = resuming.kept(WHO.gpu)
    return only


def test_a_budget_stops_between_parts_and_the_next_calls_go_on(data: Path) -> None:
    gpu = Gpu()
    first = gpu.call("25s")
    assert gpu.ran == ["one", "two"] and [part.name for part in first.left] == ["three", "four"]
    assert not on_file().finished and on_file() == first.record
    gpu.call("15s")
    assert gpu.ran == ["one", "two", "three"]
    last = gpu.call("15s")
    assert gpu.ran == list(NAMES) and last.left == () and on_file().finished
    assert on_file().calls == 3 and [part.name for part in on_file().parts] == list(NAMES)
    assert {part.seconds for part in on_file().parts} == {PART_S}


def test_it_is_one_file_with_the_same_results_as_in_one_go(data: Path) -> None:
    in_pieces, at_once = Gpu(wrong=("two",)), Gpu(wrong=("two",))
    while in_pieces.call("10s").left:
        pass
    pieces = on_file()
    whole = at_once.call(who=WHO.model_copy(update={"seed": 7})).record
    found, wanted = ([(part.key, part.verdict, part.result) for part in run.parts] for run in (pieces, whole))
    assert found == wanted and pieces.failed and len(found) == len(NAMES)


def test_no_part_begins_whose_usual_time_does_not_fit(data: Path) -> None:
    gpu = Gpu()
    assert gpu.call("9.9s").tried == 0 and gpu.ran == []
    assert gpu.call("10s").tried == 1 and gpu.now == PART_S


@pytest.mark.parametrize("ends", [KeyboardInterrupt(), SystemExit(143), BusyError("another run holds it")])
def test_what_interrupts_a_part_costs_that_part_alone(data: Path, ends: BaseException) -> None:
    gpu = Gpu(raises={"three": ends})
    with pytest.raises(type(ends)):
        gpu.call()
    assert on_file().decided == {"probes/one", "probes/two"}
    gpu.raises = {}
    gpu.call()
    assert gpu.ran == ["one", "two", "three", "three", "four"] and on_file().finished


def test_a_killed_process_costs_the_part_that_ran(data: Path) -> None:
    killed = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from microbench import paths\n"
        "from tests.cpu.test_verify_resumed import Gpu\n"
        "class Falls(Gpu):\n"
        "    def _run(self, name):\n"
        "        return super()._run(name) if name != 'three' else lambda: os.kill(os.getpid(), signal.SIGKILL)\n"
        "paths.writable_data = lambda: Path(sys.argv[1])\n"
        "Falls().call()\n"
    )
    root = Path(__file__).resolve().parents[2]
    ended = subprocess.run([sys.executable, "-c", killed, str(data)], cwd=root, env={**os.environ, "PYTHONPATH": "."})
    assert ended.returncode == -signal.SIGKILL
    assert on_file().decided == {"probes/one", "probes/two"}
    gpu = Gpu()
    gpu.call()
    assert gpu.ran == ["three", "four"] and on_file().finished


def test_a_full_disk_ends_the_call_and_what_was_kept_stays(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = Gpu()
    gpu.call("10s")
    before = on_file()

    def full(path: Path, text: str) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(record, "put", full)
        with pytest.raises(DataError, match=r"No space left on device.*is kept"):
            gpu.call()
    assert on_file() == before


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"commit": "decaf", "sources_sha256": "other"}, "commit"),
        ({"sources_sha256": "other"}, "state of the sources"),
        ({"uuid_sha256": "another"}, "board"),
        ({"driver": "590.1"}, "driver"),
        ({"nvrtc": ("nvidia-cuda-nvrtc 13.0.88",)}, "NVRTC"),
        ({"quick": True}, "--quick"),
    ],
)
def test_another_commit_or_gpu_begins_anew_and_says_so(data: Path, change: dict[str, Any], word: str) -> None:
    Gpu().call("20s")
    before = on_file()
    who = WHO.model_copy(update=change)
    begun = resuming.begin(who, [before])
    assert begun.record.parts == () and begun.record.run_id != before.run_id
    assert begun.said.startswith(f"The unfinished run {before.run_id} is of another {word}, so a new one begins")
    other = Gpu()
    other.call(who=who)
    assert other.ran == list(NAMES) and before in resuming.kept(WHO.gpu)
    back = Gpu()
    back.call()  # the code as it was: its own run goes on
    assert back.ran == ["three", "four"]


def test_a_finished_run_and_a_fresh_one_are_not_gone_on_with(data: Path) -> None:
    gpu = Gpu()
    gpu.call()
    gpu.call("10s")
    assert gpu.ran == [*NAMES, "one"]
    assert resuming.begin(WHO, resuming.kept(WHO.gpu), fresh=True).record.parts == ()


def test_what_the_host_lacks_is_no_failure_and_is_tried_again(data: Path) -> None:
    gpu = Gpu(raises={"two": EnvironmentLacks("There is no /opt/a/tool here.")})
    ended = gpu.call("35s")
    assert [part.verdict for part in ended.record.parts] == ["confirmed", "lacking", "confirmed"]
    assert not ended.record.failed and ended.record.parts[1].reason == "There is no tool here."
    gpu.raises = {}
    assert not gpu.call().record.failed
    assert gpu.ran == ["one", "two", "three", "two", "four"] and len(on_file().parts) == len(NAMES)


def test_a_part_that_the_host_cannot_do_is_never_begun(data: Path) -> None:
    gpu = Gpu()
    ended = gpu.call("1h", lacks="No torch.")
    assert gpu.ran == [] and {part.verdict for part in ended.record.parts} == {"lacking"} and ended.record.finished


@pytest.mark.parametrize("error", [DeviceError("No worker starts."), ValueError("odd")])
def test_a_part_that_ends_without_a_result_is_named_and_the_others_go_on(data: Path, error: Exception) -> None:
    gpu = Gpu(raises={"two": error})
    ended = gpu.call()
    assert [part.verdict for part in ended.record.parts] == ["confirmed", "broken", "confirmed", "confirmed"]
    assert ended.record.failed and str(error) in ended.record.parts[1].reason


def test_a_file_that_cannot_be_read_is_named_and_left_as_it_is(data: Path) -> None:
    file = record.folder_of(WHO.gpu) / "20260101T000000Z-abcdef.json"
    file.parent.mkdir(parents=True)
    file.write_text('{"format": 2}')
    with pytest.warns(DataWarning, match=r"h100-sxm-80gb/20260101T000000Z-abcdef\.json is no run"):
        assert resuming.kept(WHO.gpu) == []
    assert file.read_text() == '{"format": 2}'


def test_the_usual_time_is_the_longest_on_this_kind_of_gpu_else_on_another_else_an_allowance() -> None:
    def run(gpu: str, **seconds: float) -> Record:
        told: dict[str, Any] = {"step": "probes", "verdict": "confirmed", "ended_utc": ""}
        parts = tuple(Done(name=name, seconds=each, **told) for name, each in seconds.items())
        return Record(run_id=gpu, started_utc="", who=WHO.model_copy(update={"gpu": gpu}), parts=parts)

    of = usual.usual([run(WHO.gpu, one=3, two=8), run(WHO.gpu, one=5), run("t4-15gb", one=90, three=40)], WHO)
    one, two, three, four = Gpu().parts()
    assert [of(part) for part in (one, two, three, four)] == [5, 8, 40, usual.ALLOWED_S["probes"]]
    assert of(Gpu().parts(["four"], "No torch.")[0]) == 0
    fewer = usual.usual([run(WHO.gpu, one=3)], WHO.model_copy(update={"problems": 5}))
    assert fewer(one) == 3
    other = usual.usual([run(WHO.gpu, one=3)], WHO.model_copy(update={"quick": True}))
    assert other(one) == usual.ALLOWED_S["probes"]


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("9m", 540), ("1.5h", 5400), (" 2m ", 120)])
def test_a_budget_is_a_number_and_a_unit(text: str, seconds: float) -> None:
    assert budget.parsed(text) == seconds


@pytest.mark.parametrize("text", ["9", "m", "0s", "-1m", "9min", "9 m", "nan s", ""])
def test_any_other_budget_is_one_clear_error(text: str) -> None:
    with pytest.raises(InputError, match=r"is no time; give a number above 0 and s, m or h: 90s, 9m, 1h\.$"):
        budget.parsed(text)
