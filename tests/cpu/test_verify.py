"""`smscope verify` with workers that are scripted: a file a probe and a kernel, a line a run, whatever came of it."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from attention.verify import kernel as attention_kernel
from attention.verify.builds import tuned
from attention.verify.kernel import KernelResult
from attention.verify.sanitizer import SanitizerResult
from microbench import paths
from microbench.compile import Source, source_of, together
from microbench.emulator import toolchain
from microbench.errors import DataError, DeviceError, EnvironmentLacks
from microbench.machine import nvml
from microbench.machine.arch import by_name
from microbench.probes import named
from microbench.verify import probed, processes, results, tables
from microbench.verify.differential import catalogue, compare
from microbench.verify.differential.score import Held, Score
from microbench.verify.differential.trials import TRIALS
from microbench.verify.probed import Examined
from microbench.verify.results import Failure, ProbeResult, WrappersResult
from microbench.verify.tables import BlindRow
from smscope import verifying
from smscope.verified import lacks
from tests.cpu.verified_gpu import HOPPER, KERNEL, TURING, WHERE, call, campaign, machine_with_a_gpu, right, script  # noqa: F401  a fixture

COMPILER = shutil.which("g++") or shutil.which("clang++")
executes = pytest.mark.skipif(COMPILER is None, reason="the emulator needs a C++ compiler")


def test_without_a_gpu_it_says_why_and_what_runs_without_one(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, data: Path
) -> None:
    monkeypatch.setattr(nvml, "visible_gpus", list)
    monkeypatch.setattr(nvml, "why_no_gpu", lambda: "the driver shows none")
    assert call(capsys) == (
        2,
        "",
        "There is no NVIDIA GPU to verify here (the driver shows none); `smscope verify --device emulated:sm90a` "
        "executes the probes without one.\n",
    )
    assert not list(data.iterdir())


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--device", "host"), 2, "verified by `make test`"),
        (("--device", "cuda:3"), 2, "'cuda:3' is not here"),
        (("--device", "emulated:sm80", "--sanitize"), 2, "needs a GPU"),
        (("--device", "emulated:sm70", "--only", KERNEL), 2, "is verified on emulated:sm70"),
        (("--device", "emulated:sm99"), 2, "No architecture is called 'sm99'"),
        (("--only", "ffma_latenci"), 2, "did you mean ffma_latency"),
        (("--only", "no such thing"), 2, "where each probe runs"),
    ],
)
def test_what_makes_no_sense_is_one_sentence(
    gpu: object, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], code: int, said: str
) -> None:
    ended, out, err = call(capsys, *arguments)
    assert (ended, out, err.count("\n")) == (code, "", 1) and said in err


@pytest.mark.parametrize(("missing", "only"), [("cupy", "ffma_latency"), ("cupy", "words"), ("torch", KERNEL)])
def test_what_is_not_installed_is_said_before_anything_runs(
    gpu: object, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, missing: str, only: str
) -> None:
    monkeypatch.setattr(lacks, "find_spec", lambda name: None if name == missing else object())
    code, out, err = call(capsys, "--only", only)
    assert (code, out) == (1, "") and "not installed" in err and HOPPER.name in err
    monkeypatch.setattr(lacks, "find_spec", lambda name: object())
    monkeypatch.setattr(shutil, "which", lambda name: None)
    code, out, err = call(capsys, "--only", KERNEL, "--sanitize")
    assert (code, out) == (1, "") and "compute-sanitizer is not on the PATH" in err


def test_every_probe_and_kernel_of_the_gpu_gets_a_file_and_a_line_a_run(
    gpu: object, data: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    script(monkeypatch, right)
    campaign(monkeypatch)
    code, out, _ = call(capsys, "--quick", "--problems", "12", "--json")
    rows = json.loads(out)
    assert code == 0 and all(row["ok"] for row in rows)
    files = {file.relative_to(data / "verification" / "h100-sxm-80gb") for file in data.rglob("*.jsonl")}
    probes = {Path("probes") / f"{name}.jsonl" for name in verifying._probes("sm90a")}
    wrappers = {Path("wrappers") / f"{name}.jsonl" for name in compare.NAMES}
    kernels = {Path("kernels") / f"{path.replace('/', '-')}.jsonl" for path in tuned("sm90a")}
    assert files == probes | wrappers | kernels and len(kernels) == 4
    assert call(capsys, "--quick", "--only", "ffma_latency")[0] == 0
    folder = data / "verification" / "h100-sxm-80gb"
    first, second = results.read(folder / "probes" / "ffma_latency.jsonl", ProbeResult)
    assert (first.arch, first.driver, first.nvrtc, first.cubins) == ("sm90a", "580.1", "12.9.86", ("of ffma_latency",))
    assert first.arrays == 2 * first.points and first.quick and first.commit == second.commit
    (kernel,) = results.read(folder / "kernels" / f"{KERNEL.replace('/', '-')}.jsonl", KernelResult)
    (words,) = results.read(folder / "wrappers" / "words.jsonl", WrappersResult)
    assert kernel.ok and (words.cases, words.unsupported) == (len(catalogue.rooms()["words"]), 0)
    assert (words.cubins, words.seeds, words.worst_errors) == (("of a wrapper",), 20, {"ex2": 1e-6})
    assert (kernel.problems, kernel.right, kernel.worst_ratio, kernel.worst_lse_ratio) == (12, 12, 0.5, 0.25)


def test_without_torch_the_rest_is_verified(
    gpu: list[nvml.Gpu], data: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu[:] = [TURING]
    script(monkeypatch, right)
    monkeypatch.setattr(lacks, "find_spec", lambda name: None if name == "torch" else object())
    code, out, err = call(capsys, "--quick")
    assert code == 0 and "ffma_latency" in out and "wgmma_latency" not in out
    assert {file.parent.name for file in data.rglob("*.jsonl")} == {"probes", "wrappers"}
    assert "t4-15gb" in err


def test_what_is_wrong_is_said_written_down_and_the_exit_code(
    gpu: object, data: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    script(monkeypatch, lambda name: processes.Failed("its process ended with exit code 3"))
    campaign(monkeypatch, wrong=[3], lost=2)
    tool = SanitizerResult(tool="memcheck", problems=6, right=6, complaint="exit status 9; Invalid write")
    monkeypatch.setattr(attention_kernel, "check", lambda *_: tool)
    monkeypatch.setattr(shutil, "which", lambda name: "/a/compute-sanitizer")
    code, out, err = call(capsys, "--problems", "8", "--sanitize", "--only", "ffma_latency", "--only", KERNEL)
    assert code == 1
    assert "exit code 3" in err and "error 2 above 1" in err and "too many workers were lost" in err
    assert "Invalid write" in " ".join(out.split())
    (kernel,) = results.read(next(data.rglob("kernels/*.jsonl")), KernelResult)
    (probe,) = results.read(next(data.rglob("probes/*.jsonl")), ProbeResult)
    assert (kernel.problems, kernel.right, len(kernel.failures)) == (8, 5, 3) and not kernel.ok
    assert kernel.sanitizer[0].complaint and not probe.ok
    assert [failure.reason for failure in probe.failures] == ["its process ended with exit code 3"] * probe.points


def test_a_complaint_of_the_sanitizer_alone_is_a_failure() -> None:
    found = attention_kernel.worst_of(())
    assert found == {"worst_ratio": 0.0, "worst_block_ratio": 0.0, "worst_lse_ratio": 0.0}
    row = KernelResult(
        **WHERE, kernel=KERNEL, nvrtc="", torch="2", seed=0, problems=1, right=1, cubins=(), features={}, failures=(),
        **found, sanitizer=(SanitizerResult(tool="racecheck", problems=6, right=6, complaint="hazards"),),
    )  # fmt: skip
    assert not row.ok and row.model_copy(update={"sanitizer": ()}).ok


def test_a_machine_without_a_compiler_leaves_the_wrappers_out_and_says_so(
    gpu: object, data: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def lacks() -> Path:
        raise EnvironmentLacks("There is no C++ compiler.")

    script(monkeypatch, right)
    campaign(monkeypatch)
    for name in ("compiler", "runtime"):
        monkeypatch.setattr(toolchain, name, lacks)
    code, _, err = call(capsys, "--quick")
    assert code == 0, err
    assert "There is no C++ compiler. The wrappers of PTX are left out." in err
    assert not list(data.rglob("wrappers"))
    code, _, err = call(capsys, "--only", "words")
    assert code == 1 and err.splitlines()[-1] == "There is no C++ compiler."


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Held(Score(2, 0.5)), "2 results differ from the emulator's, the worst by 5.0e-01"),
        (processes.Failed("its process ended"), "its process ended"),
    ],
)
def test_a_wrapper_that_differs_or_fails_is_named(
    gpu: object, answer: object, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ex2, *others = catalogue.rooms()["words"]
    monkeypatch.setattr(
        processes, "answers", lambda *_: [(ex2, answer), *((other, Held(unsupported="none")) for other in others)]
    )
    (row,) = compare.verify(["words"], 0, WHERE)
    assert (row.cases, row.unsupported, row.ok) == (1, len(others), False)
    assert row.failures == (Failure(what=catalogue.cases()[ex2].key, reason=said),)


def test_a_copy_that_is_not_refused_is_named(gpu: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        processes, "answers", lambda pieces, _: ((trial, Held(Score(int(trial.start == 4)))) for (trial,) in pieces)
    )
    (row,) = compare.verify([compare.TRIALS], 0, WHERE)
    assert row.cases == len(TRIALS)
    wrong = {trial.name for trial in TRIALS if not trial.legal or trial.start == 4}
    assert {failure.what for failure in row.failures} == wrong
    assert "not refuse" in next(each.reason for each in row.failures if "at   1" in each.what)


def test_a_point_that_a_gpu_cannot_run_is_none_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    script(monkeypatch, lambda name: Examined(unsupported="too small an L2"))
    (row,) = probed.verify([named("ffma_latency")], "cuda:0", WHERE)
    assert row.ok and (row.points, row.arrays, row.unsupported) == (0, 0, 1)
    assert row.verified_utc == WHERE["verified_utc"]


def test_what_workers_will_run_is_compiled_before_them(gpu: object, monkeypatch: pytest.MonkeyPatch) -> None:
    script(monkeypatch, right)
    ahead: list[Source] = []
    for room in (probed, compare):
        monkeypatch.setattr(room, "compile_ahead", ahead.extend)
    probe = named("wgmma_beside_ex2")
    assert [*probed.verify([probe], "cuda:0", WHERE)]
    points = [*probe.points(True)]
    assert set(ahead) == {source_of(probe, build, by_name("sm90a")) for at in points for build in probe.builds(at)}
    ahead.clear()
    assert [*compare.verify(["words"], 0, WHERE)]
    wanted = {catalogue.cases()[number].source_for("sm90a") for number in catalogue.rooms()["words"]}
    assert set(ahead) == wanted


def test_few_kernels_are_left_to_who_needs_them(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(together, "is_kept", lambda source: source.name == "kept")
    monkeypatch.setattr(together, "compile_together", lambda sources: asked.append(len(sources)))
    monkeypatch.setattr(together.os, "cpu_count", lambda: 2)

    def sources(count: int) -> list[Source]:
        return [Source(str(at), "new", by_name("sm90a"), "k") for at in range(count)]

    together.compile_ahead([*sources(2), Source("", "kept", by_name("sm90a"), "k")])
    assert not asked
    together.compile_ahead([*sources(3), *sources(3)])
    assert asked == [3]


@pytest.mark.parametrize(
    ("error", "ends"),
    [(ValueError("odd"), False), (DeviceError("it fell"), True), (EnvironmentLacks("no NVRTC"), True)],
)
def test_a_wrong_result_is_a_reason_and_a_broken_device_ends_the_process(
    error: Exception, ends: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    probe = named("ffma_latency")

    def run(bench: object, point: object) -> None:
        raise error

    monkeypatch.setattr(probed, "CheckedBench", lambda *_, **__: SimpleNamespace(checked=1))
    broken: Any = SimpleNamespace(name=probe.name, skip=None, run=run, file=probe.file)
    device: Any = SimpleNamespace(kernels={(probe.name, "nvrtc", 0): SimpleNamespace(cubin=None)})
    point = next(iter(probe.points()))
    if ends:
        with pytest.raises(type(error)):
            probed.examined(device, broken, point)
    else:
        found = probed.examined(device, broken, point)
        assert "odd" in found.wrong and found.arrays == 1


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    file = tmp_path / "some-gpu" / "probes" / "ffma_latency.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text('{"probe": 1}\n')
    with pytest.raises(DataError, match=r"some-gpu/probes/ffma_latency\.jsonl"):
        results.read(file, ProbeResult)


def test_results_that_a_machine_sent_are_read_by_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "SHIPPED", tmp_path)
    monkeypatch.setattr(paths, "writable_data", lambda: tmp_path)
    assert results.committed(ProbeResult) == ()
    nothing = {"nvrtc": "", "cubins": (), "points": 1, "unsupported": 0, "arrays": 1}
    failure = Failure(what="-", reason="odd")
    for wrong in ((), (failure,)):
        results.append(ProbeResult(**{**WHERE, "driver": None}, **nothing, probe="ffma_latency", failures=wrong))
    assert [row.failures for row in results.committed(ProbeResult)] == [(), (failure,)]
    assert results.committed(KernelResult) == ()


@executes
def test_the_probes_are_executed_without_a_gpu(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "--device", "emulated:sm80", "--only", "ffma_latency", "--quick", "--json")
    (row,) = json.loads(out)
    assert (code, row["status"], row["arch"]) == (0, "emulated", "sm80") and row["checked"]
    assert not list(data.iterdir())


@executes
def test_an_attention_kernel_is_executed_without_a_gpu(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "--device", "emulated:sm90a", "--only", KERNEL, "--problems", "1", "--json")
    (row,) = json.loads(out)
    assert (code, row["variant"], row["ok"], row["cubin"]) == (0, KERNEL, True, "")
    assert not list(data.iterdir())


@executes
def test_planted_bugs_are_given_to_the_emulator_and_the_table_keeps_the_others(
    data: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = tables.text(BlindRow, tables.read(BlindRow))
    monkeypatch.setattr(paths, "SHIPPED", tmp_path)
    (tmp_path / "verification").mkdir()
    tables.path(BlindRow).write_text(
        before.replace("IN_PLACE,eager lazy random,race", "IN_PLACE,eager lazy random,missed")
    )
    code, out, _ = call(capsys, "--device", "emulated:sm70", "--only", "smooth", "--json")
    (row,) = json.loads(out)
    assert (code, row["bug"], row["eager"]) == (0, "IN_PLACE", "race")
    assert tables.path(BlindRow).read_text() == before


def test_its_modules_need_neither_the_tests_nor_what_only_development_brings() -> None:
    """Also those of the comparison with the emulator, whose fp8 asks for ml_dtypes when it is drawn."""
    code = (
        "import importlib, pkgutil, sys\n"
        "for name in ('ml_dtypes', 'pytest', 'hypothesis', 'tests'): sys.modules[name] = None\n"
        "rooms = [f'microbench.verify{room}' for room in ('', '.blind', '.differential')]\n"
        "for room in ('attention.verify', *rooms):\n"
        "    for found in pkgutil.iter_modules(importlib.import_module(room).__path__, room + '.'):\n"
        "        if not found.name.endswith('__main__'): importlib.import_module(found.name)\n"
        "from microbench.verify.differential import catalogue\n"
        "print(len(catalogue.cases()))\n"
    )
    root = str(Path(__file__).resolve().parents[2])
    own = {"PYTHONPATH": root, "PATH": ""}
    told = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, cwd="/", env=own)
    assert told.returncode == 0, told.stderr
    assert int(told.stdout) > 500
