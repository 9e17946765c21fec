"""`smscope verify` on a kind of GPU that nobody has measured: one file, and from it the kind's whole profile."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from microbench import paths, report
from microbench.machine import nvml
from microbench.probes import discover
from microbench.results import derive
from microbench.results.profile import Profile
from smscope import cli
from smscope.verified import board, record, resuming, usual, whole
from smscope.verified.packed import unpack
from smscope.verified.record import Record
from tests.cpu import measured_gpu
from tests.cpu.commands import called
from tests.cpu.measured_gpu import BLACKWELL, VOLTA, measure
from tests.cpu.verified_gpu import call, campaign, machine_with_a_gpu, right, script, section  # noqa: F401  a fixture

Capsys = pytest.CaptureFixture[str]
Elsewhere = Callable[[str], Path]
MEASURE = board.verify


@pytest.fixture(autouse=True)
def _of_a_gpu(gpu: list[nvml.Gpu], monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything else is right, and the board is really measured."""
    script(monkeypatch, right)
    campaign(monkeypatch)
    monkeypatch.setattr(whole, "shipped", lambda but: [])
    monkeypatch.setattr(board, "verify", MEASURE)


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Elsewhere:
    """Another machine from now on: its data folder, empty."""

    def move(name: str) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        monkeypatch.setattr(paths, "writable_data", lambda: folder)
        monkeypatch.setattr(paths, "data_roots", lambda: [folder])
        return folder

    return move


def sent(gpu: nvml.Gpu, to: Path) -> tuple[Record, Path]:
    """The one file of this GPU's owner, in the mail."""
    (run,) = resuming.kept(gpu.slug)
    return run, Path(shutil.copy(record.file_of(run), to / "mail.json"))


def values(profile: Profile) -> dict[str, tuple[float, float, float, int]]:
    return {each.name: (each.value, each.low, each.high, each.n) for each in profile.constants}


@pytest.mark.parametrize("gpu_here", [BLACKWELL, VOLTA])
def test_one_file_of_a_new_kind_gives_every_constant_that_its_probes_declare(
    capsys: Capsys,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    elsewhere: Elsewhere,
    gpu_here: nvml.Gpu,
) -> None:
    measure(monkeypatch, gpu_here)
    code, out, _ = call(capsys, "--problems", "1")
    run, file = sent(gpu_here, tmp_path)
    assert code == 0 and run.finished and run.planned[0] == "suite/every_constant"
    assert file.stat().st_size < 400_000
    own = Profile.load(gpu_here.slug)
    wanted = set(board.declared(own.arch))
    assert own.board and wanted <= set(values(own)) and not own.doubtful

    there = elsewhere("there")
    code, out, err = called(capsys, cli.main, "profile", "--from", str(file))
    assert code == 0 and f"{gpu_here.slug}: {len(own.constants)} constants." in out, err
    kind = Profile.load(gpu_here.slug)
    assert kind.board is None and values(kind) == values(own)
    _, shown, _ = called(capsys, cli.main, "show", gpu_here.slug)
    assert all(name in shown.replace("\n", "") for name in ("ffma_latency_cycles", "dram_latency_ns"))
    if gpu_here == BLACKWELL:
        told = report.rates(kind)
        assert "by `tcgen05.mma`, bf16, both operands" in told and "tensor memory, loaded into registers" in told
        assert "tcgen05_bf16_latency_cycles" in shown and "tmem_copy_bytes_per_clk_sm" in shown
        assert {"tcgen05_bf16_pair_burst_flops_per_s", "tmem_load_bytes_per_clk_sm", "ffma2_per_clk_sm"} <= wanted
    again = derive.derive(gpu_here.slug, discover())
    assert again.profile == kind  # as `smscope profile` has it once the run is committed
    assert [path.stem for path in there.glob("runs/*/*.jsonl")] == [run.measured[0].run]
    assert resuming.kept(gpu_here.slug) == [run]


def test_the_suite_goes_on_where_ctrl_c_ended_it_and_measures_no_point_twice(
    capsys: Capsys, monkeypatch: pytest.MonkeyPatch, data: Path
) -> None:
    suite = measure(monkeypatch, VOLTA)
    suite.interrupt_after(1000)
    code, _, err = call(capsys, "--problems", "1")
    assert code == 130 and "goes on." in err and not resuming.kept(VOLTA.slug)[0].decided
    suite.interrupt_after(None)
    code, _, err = call(capsys, "--problems", "1")
    (run,) = resuming.kept(VOLTA.slug)
    assert code == 0 and run.finished and run.calls == 2
    assert len(suite.asked) == len(set(suite.asked)) > 1000
    assert len(list((data / "runs" / VOLTA.slug).glob("*.jsonl"))) == 1


def test_the_suite_begins_only_where_the_budget_has_room_for_it(
    capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = measure(monkeypatch, VOLTA)
    code, _, err = call(capsys, "--budget", "4m")
    assert code == 2 and "--budget 4m holds no part: suite/every_constant usually takes 5 min" in err
    assert not suite.asked
    monkeypatch.setattr(usual, "ALLOWED_S", {**dict.fromkeys(usual.ALLOWED_S, 1e6), "suite": 300.0})
    code, _, err = call(capsys, "--budget", "9m")
    (run,) = resuming.kept(VOLTA.slug)
    assert code == 0 and run.decided == {"suite/every_constant"} and "The budget of 9m ends here" in err
    assert run.measured


@pytest.mark.parametrize("arguments", [("--quick",), ()])
def test_a_kind_that_has_a_profile_and_quick_are_looked_at_quickly_and_send_that_run(
    capsys: Capsys, monkeypatch: pytest.MonkeyPatch, data: Path, arguments: tuple[str, ...]
) -> None:
    suite = measure(monkeypatch, VOLTA)
    if not arguments:
        derive.write(Profile(gpu=VOLTA.slug, name=VOLTA.name, arch="sm70", sm_count=80))
    assert call(capsys, "--problems", "1", *arguments)[0] == 0
    (run,) = resuming.kept(VOLTA.slug)
    assert run.planned[0] == "doctor/board" and len(suite.asked) < 400
    (file,) = data.glob("runs/*/*.jsonl")
    assert [unpack(packed) for packed in run.measured] == [file.read_bytes()]
    assert f"the run {file.stem} of the probes" in page_of(run)


def test_a_board_of_which_nothing_can_be_measured_is_refuted_and_its_rows_are_sent(
    capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    measure(monkeypatch, VOLTA)
    monkeypatch.setattr(measured_gpu, "samples", lambda *_: ())
    code, _, err = call(capsys, "--problems", "1")
    (run,) = resuming.kept(VOLTA.slug)
    first = run.parts[0]
    assert code == 1 and first.verdict == "refuted" and "no constant came of it" in err
    assert isinstance(first.result, board.BoardResult) and first.result.absent == tuple(board.declared("sm70"))
    assert f"({len(first.result.absent)} more came to no value)" in first.told and run.measured[0].lines > 1000


def page_of(run: Record) -> str:
    return section(record.file_of(run).with_suffix(".md").read_text("utf-8"), "Send it")
