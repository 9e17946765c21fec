"""`smscope verify` as a person types it, on a scripted GPU: one file, its page, the exit code, and how it goes on."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from attention.verify import kernel as attention_kernel
from attention.verify.kernel import KernelResult
from attention.verify.sanitizer import SanitizerResult
from microbench import paths
from microbench.cli import doctor
from microbench.errors import DeviceError
from microbench.health import state
from microbench.machine import nvml
from microbench.results import record as runs
from microbench.run import lock
from microbench.verify import processes
from microbench.verify.results import Failure
from smscope.verified import board, budget, lacks, packed, plan, record, resuming, usual, whole
from smscope.verified.record import Record
from tests.cpu.verified_gpu import (  # noqa: F401  a fixture
    HOPPER,
    KERNEL,
    TURING,
    WHERE,
    call,
    campaign,
    healthy,
    machine_with_a_gpu,
    right,
    script,
    section,
    steps_of,
)

GPU = HOPPER.slug
Capsys = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _of_a_gpu(gpu: list[nvml.Gpu], data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is right, and no run of another GPU says how long a part takes."""
    script(monkeypatch, right)
    campaign(monkeypatch)
    monkeypatch.setattr(whole, "shipped", lambda but: [])


def only() -> tuple[Record, str]:
    """The one run on file, and its page."""
    (run,) = resuming.kept(GPU)
    return run, (record.folder_of(GPU) / f"{run.run_id}.md").read_text("utf-8")


def test_a_whole_run_is_one_file_with_every_step_in_order_and_a_page(capsys: Capsys) -> None:
    code, out, err = call(capsys, "--problems", "600", "--seed", "5")
    run, page = only()
    assert (code, run.finished, run.failed) == (0, True, False)
    assert steps_of(run) == ["doctor", "probes", "wrappers", "kernels", "peers"]
    assert [part.key for part in run.parts] == list(run.planned)
    kernels = [part.name for part in run.parts if part.step == "kernels"]
    ours = ("sm90a/forward/split_keys", KERNEL, "sm80/forward/software_pipelined", "sm80/forward/split_keys")
    assert kernels[:4] == [f"{name} 0-249" for name in ours]
    assert [name.rpartition(" ")[2] for name in kernels[::4]] == ["0-249", "250-499", "500-599"]
    seeds = [part.result.seed for part in run.parts if isinstance(part.result, KernelResult)]
    assert seeds == [5] * 4 + [6] * 4 + [7] * 4  # other problems in each part
    assert (run.who.gpu, run.who.driver, run.who.uuid_sha256) == (GPU, "580.1", "a board")
    assert f"| kernels | `{KERNEL} 0-249` | 250 of 250 problems right" in section(page, "Confirmed")
    assert section(page, "Refuted").strip() == "Nothing."
    assert f"{run.run_id}.json" in section(page, "Send it") and "Open an issue" in page
    assert f"{run.run_id}.json, and {run.run_id}.md" in err and "ffma_latency" in out


def test_a_gap_is_named_in_the_file_and_the_page_and_is_no_failure(
    capsys: Capsys, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    closed = tmp_path / "params"
    closed.write_text("EnableMSI: 1\nRmProfilingAdminOnly: 1\n")
    monkeypatch.setattr(lacks, "DRIVER", closed)
    monkeypatch.setattr(lacks.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(lacks, "find_spec", lambda name: None if name == "torch" else object())
    code, _, err = call(capsys, "--quick", "--sanitize")
    run, page = only()
    assert code == 0 and not run.failed
    assert {gap.name for gap in run.gaps} == {"torch", "compute-sanitizer", "counters", "FlashAttention-4"}
    gaps = section(page, "Not looked at, and why")
    for said in ("compute-sanitizer was not found", "not readable", "FlashAttention-4 is not installed"):
        assert said in gaps and said in err
    assert {part.step for part in run.parts if part.verdict == "lacking"} == {"kernels", "sanitizer", "peers"}
    assert "- peers, not done: `B=4 Hq=32" in gaps and "Torch is not installed" in gaps


def test_where_nothing_at_all_can_run_nothing_is_written(capsys: Capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lacks, "find_spec", lambda name: None)
    code, out, err = call(capsys)
    assert (code, out) == (1, "") and "CuPy is not installed" in err and "Torch is not installed" in err
    assert not resuming.kept(GPU)


def test_counters_that_anybody_may_read_are_no_gap(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(lacks, "DRIVER", tmp_path / "params")
    assert "is not known" in lacks.counters()
    lacks.DRIVER.write_text("RmProfilingAdminOnly: 0\n")
    assert lacks.counters() == ""
    lacks.DRIVER.write_text("RmProfilingAdminOnly: 1\n")
    monkeypatch.setattr(lacks.os, "geteuid", lambda: 0)
    assert lacks.counters() == ""


def test_what_silicon_refutes_is_the_exit_code_and_named_in_the_page(
    capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign(monkeypatch, wrong=[3])
    script(monkeypatch, lambda name: processes.Failed("it\nfell") if name == "ffma_latency" else right(name))
    odd = Failure(what="clock", reason="it ran at 900 MHz.")
    monkeypatch.setattr(board, "verify", lambda device, where, wait, whole: healthy(where, odd))
    code, _, err = call(capsys, "--quick")
    run, page = only()
    refuted = [part.key for part in run.parts if part.verdict == "refuted"]
    ours = [f"kernels/{path} 0-99" for path in plan.by_worth("sm90a")]
    assert (code, run.finished) == (1, True) and refuted == ["doctor/board", "probes/ffma_latency", *ours]
    told = section(page, "Refuted")
    assert all(part.partition("/")[2] in told for part in refuted)
    assert "clock: it ran at 900 MHz." in told and "it fell" in told and "error 2 above 1" in told
    assert "ffma_latency`" not in section(page, "Confirmed") and "error 2 above 1" in err


def test_a_part_without_a_result_is_the_exit_code_and_said(capsys: Capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    def falls(*_: object) -> None:
        raise DeviceError("No worker starts on this GPU.")

    monkeypatch.setattr(attention_kernel, "supervise", falls)
    code, out, _ = call(capsys, "--quick", "--json")
    run, page = only()
    broken = [part.step for part in run.parts if part.verdict == "broken"]
    assert code == 1 and broken == ["kernels"] * 4
    assert "kernels, ended without a result" in page and section(page, "Refuted").strip() == "Nothing."
    rows = json.loads(out)
    assert [row["part"] for row in rows if not row["ok"]] == [part.key for part in run.parts if part.failed]


class Clock:
    """Each part takes a minute."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.ran = 0.0, list[str]()
        monkeypatch.setattr(budget.time, "monotonic", lambda: self.now)
        monkeypatch.setattr(budget.started, "__defaults__", (lambda: self.now,))
        monkeypatch.setattr(usual, "ALLOWED_S", dict.fromkeys(usual.ALLOWED_S, 60.0))
        held = plan._held

        def counted(asked: plan.Asked, work: Callable[[], Any], locks: bool = False) -> Any:
            result = held(asked, work, locks)
            self.ran.append(result.subject)
            self.now += 60
            return result

        monkeypatch.setattr(plan, "_held", counted)


def test_a_budget_ends_with_one_sentence_and_the_same_command_goes_on(
    capsys: Capsys, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, ends = Clock(monkeypatch), list[str]()
    for _ in range(20):
        code, _, err = call(capsys, "--budget", "9m", "--problems", "300", "--seed", "2")
        ends.append(err.splitlines()[-1])
        if only()[0].finished:
            break
    run, page = only()
    planned = len(run.planned)
    assert code == 0 and run.calls == len(ends) == -(-planned // 9) and clock.ran.count("ffma_latency") == 1
    assert ends[0].startswith(f"The budget of 9m ends here: {planned - 9} of {planned} parts are left (probes, ")
    assert "usually takes 60 s; `" in ends[0]
    assert ends[0].endswith("verify --problems 300 --budget 9m --seed 2` goes on.")
    assert ends[-1].startswith("Wrote ") and "not begun yet" not in page
    lines = [len(file.read_text().splitlines()) for file in data.rglob("probes/*.jsonl")]
    assert lines and set(lines) == {1}  # no part twice


def test_a_page_of_an_unfinished_run_names_what_was_not_begun(capsys: Capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    Clock(monkeypatch)
    assert call(capsys, "--budget", "2m")[0] == 0
    run, page = only()
    assert "2 of " in page and "parts done so far" in page
    assert f"`{run.planned[-1]}`" in section(page, "Not looked at, and why").split("not begun yet")[1]


def test_a_budget_that_holds_no_part_is_one_clear_error(capsys: Capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    code, out, err = call(capsys, "--budget", "59s")
    last = err.splitlines()[-1]
    assert (code, out, clock.ran) == (2, "", [])
    assert last == "--budget 59s holds no part: doctor/board usually takes 60 s; give it more."


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--budget", "9"), "--budget '9' is no time; give a number above 0 and s, m or h"),
        (("--budget", "9m", "--only", "ffma_latency"), "--budget is of a whole run on a GPU"),
        (("--fresh", "--device", "emulated:sm80"), "--fresh is of a whole run on a GPU"),
    ],
)
def test_a_budget_that_makes_no_sense_is_one_sentence(capsys: Capsys, arguments: tuple[str, ...], said: str) -> None:
    code, out, err = call(capsys, *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1) and said in err and not resuming.kept(GPU)


def test_ctrl_c_costs_the_part_that_ran(capsys: Capsys, monkeypatch: pytest.MonkeyPatch, data: Path) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(attention_kernel, "supervise", _interrupted)
        code, _, err = call(capsys, "--quick")
    assert code == 130 and "Interrupted; every part that was done is kept, and `" in err
    before = only()[0].decided
    assert {key.partition("/")[0] for key in before} == {"doctor", "probes", "wrappers"}
    code, _, err = call(capsys, "--quick")
    run, _ = only()
    assert code == 0 and run.finished and f"Going on with run {run.run_id}: {len(before)} of" in err
    assert {len(file.read_text().splitlines()) for file in data.rglob("*.jsonl")} == {1}


def _interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def test_another_commit_begins_anew_and_says_so(capsys: Capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    Clock(monkeypatch)
    call(capsys, "--budget", "3m")
    first, _ = only()
    monkeypatch.setattr(whole.stamp, "digest", lambda root: "other sources")
    code, _, err = call(capsys, "--budget", "3m")
    assert code == 0
    assert f"The unfinished run {first.run_id} is of another state of the sources, so a new one begins" in err
    assert first in resuming.kept(GPU) and len(resuming.kept(GPU)) == 2


def test_the_doctor_s_findings_are_the_first_part(monkeypatch: pytest.MonkeyPatch) -> None:
    file = next(iter(sorted((paths.SHIPPED / "runs" / "h200-sxm-141gb").glob("*.jsonl"))))
    asked = list[object]()

    def examined(device: str, wait: bool, whole: bool) -> doctor.Examined:
        asked.append((device, wait, whole))
        return doctor.examine(runs.read(file), state.State(ecc=False))

    monkeypatch.undo()
    monkeypatch.setattr(doctor, "examine_here", examined)
    result = board.verify("cuda:0", WHERE, wait=False)
    assert asked == [("cuda:0", False, False)] and result.run in file.name and result.constants > 20
    assert "ECC" in {failure.what for failure in result.failures} and not result.ok
    assert result.measured is not None and packed.unpack(result.measured) == file.read_bytes()
    assert result.reference is not None and result.told.endswith(f"against {result.reference}")


def test_how_long_parts_took_on_other_gpus_is_read_from_what_is_committed(
    capsys: Capsys, monkeypatch: pytest.MonkeyPatch, data: Path
) -> None:
    call(capsys, "--quick")
    monkeypatch.undo()
    monkeypatch.setattr(paths, "SHIPPED", data)
    assert whole.shipped(GPU) == []
    (run,) = whole.shipped("t4-15gb")
    assert run.who.gpu == GPU


def test_two_calls_at_once_do_not_write_one_file(capsys: Capsys) -> None:
    with lock.hold("cuda:0", wait=False, say=print, of="verify"):
        code, _, err = call(capsys, "--quick")
    assert code == 1 and "Another run is measuring cuda:0" in err and not resuming.kept(GPU)


def test_the_sanitizer_is_a_part_of_its_own_for_each_kernel(capsys: Capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = SanitizerResult(tool="memcheck", problems=6, right=6, complaint="")
    monkeypatch.setattr(attention_kernel, "check", lambda *_: tool)
    monkeypatch.setattr(shutil, "which", lambda name: f"/a/{name}")
    assert call(capsys, "--quick", "--sanitize")[0] == 0
    run, page = only()
    assert [part.name for part in run.parts if part.step == "sanitizer"] == list(plan.by_worth("sm90a"))
    assert "memcheck: nothing found" in section(page, "Confirmed")
    assert "compute-sanitizer" not in {gap.name for gap in run.gaps}


def test_a_turing_gpu_runs_the_same_parts_with_its_own_kernel(
    capsys: Capsys, monkeypatch: pytest.MonkeyPatch, gpu: list[nvml.Gpu]
) -> None:
    gpu[:] = [TURING]
    assert call(capsys, "--quick")[0] == 0
    (run,) = resuming.kept(TURING.slug)
    assert steps_of(run) == ["doctor", "probes", "wrappers", "kernels", "peers"]
    assert {part.name.split("/")[0] for part in run.parts if part.step == "kernels"} == {"sm75"}
    assert all(" float16 " in part.name for part in run.parts if part.step == "peers")


def test_the_file_names_no_host_user_or_folder(capsys: Capsys, tmp_path: Path) -> None:
    call(capsys, "--quick")
    run, page = only()
    for text in (run.model_dump_json(), page):
        assert str(Path.home()) not in text and str(tmp_path) not in text and "/a/" not in text
