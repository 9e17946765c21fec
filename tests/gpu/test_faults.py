"""Faults on a real GPU: whatever a kernel does, its row says why, the worker goes, and the run comes to its end.

The probes lie in probes/faults. Those that fail have three points, before, fault and after; each sample carries the
process number of its worker as a flag.
"""

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from microbench import run as runner
from microbench.machine import nvml
from microbench.probes import discover
from microbench.results import record
from microbench.results.record import Record, Run
from microbench.run import plan

# A fresh worker imports CuPy and compiles with a cold cache in up to a minute; a run here starts four of them.
pytestmark = [pytest.mark.gpu, pytest.mark.timeout(400)]

HERE = Path(__file__).parent
PROBES = HERE / "probes"
DEVICE = "cuda:0"
FAULTS = ("hangs", "oversized", "strays")
# What a power cap marks is measured all the same.
MEASURED = ("ok", "throttled")


def run_of(folder: Path, *only: str) -> Run:
    """One quick campaign of these probes, written under `folder`."""
    options = runner.Options(
        DEVICE, discover(PROBES), (PROBES,), only=tuple(sorted(only)), quick=True, campaigns=1, fresh=True
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("microbench.paths.writable_data", lambda: folder)
        return runner.run(options).run


def workers(rows: list[Record]) -> list[int]:
    """The process numbers that these rows carry."""
    numbers = [flag.partition(":")[2] for row in rows for flag in row.flags if flag.startswith("worker:")]
    return list(map(int, numbers))


def compute_processes(gpu: nvml.Gpu) -> list[int]:
    """The process numbers that NVML shows on the GPU; in a container they may be the host's, or none."""
    import pynvml

    pynvml.nvmlInit()
    try:
        handle = pynvml.nvmlDeviceGetHandleByIndex(gpu.index)
        return [process.pid for process in pynvml.nvmlDeviceGetComputeRunningProcesses(handle)]
    finally:
        pynvml.nvmlShutdown()


# A kernel that hangs, one that breaks its context, one that cannot be launched --------------------------------------


@pytest.fixture(scope="module")
def others(gpu: nvml.Gpu) -> list[int]:
    """The processes on the GPU before any run of this file: pytest itself, where another file used the GPU."""
    return compute_processes(gpu)


@pytest.fixture(scope="module")
def faulty_run(others: list[int], tmp_path_factory: pytest.TempPathFactory) -> Run:
    """One run over every fault, with a well-behaved probe among them."""
    return run_of(tmp_path_factory.mktemp("faults"), *FAULTS, "steady")


def rows(run: Run, probe: str) -> list[Record]:
    return [row for row in run.records if row.probe == probe]


@pytest.mark.parametrize(
    ("probe", "reason"),
    [
        ("hangs", "no answer within 8 s; its worker was ended"),
        ("oversized", "CUDA_ERROR_INVALID_VALUE"),
        ("strays", "illegal memory access"),
    ],
)
def test_a_fault_is_one_failed_row_with_its_reason(faulty_run: Run, probe: str, reason: str) -> None:
    before, fault, after = rows(faulty_run, probe)
    assert [row.point["step"] for row in (before, fault, after)] == ["before", "fault", "after"]
    assert fault.status == "failed"
    assert fault.value is None
    assert fault.reason is not None
    assert reason in fault.reason
    assert before.status in MEASURED, before.reason
    assert after.status in MEASURED, after.reason


@pytest.mark.parametrize("probe", FAULTS)
def test_a_fresh_worker_goes_on_after_it(faulty_run: Run, probe: str) -> None:
    before, after = workers(rows(faulty_run, probe))
    assert before != after


def test_the_other_probes_are_measured_and_the_run_is_finished(faulty_run: Run) -> None:
    assert faulty_run.finished
    assert faulty_run.problems == ()
    assert {row.status for row in rows(faulty_run, "steady")} <= set(MEASURED)
    assert Counter(row.probe for row in faulty_run.records) == dict.fromkeys((*FAULTS, "steady"), 3)


def test_no_worker_is_left_behind_not_even_one_whose_kernel_hung(faulty_run: Run) -> None:
    used = set(workers(list(faulty_run.records)))
    assert len(used) == 1 + len(FAULTS)
    assert not [number for number in used if psutil.pid_exists(number)]


def test_reasons_name_no_folder_of_this_machine(faulty_run: Run) -> None:
    text = faulty_run.path.read_text()
    assert str(HERE) not in text
    assert str(faulty_run.path.parent) not in text


# A GPU that others use ------------------------------------------------------------------------------------------------

BURN = """
import torch
a = torch.randn(4096, 4096, device="cuda:0", dtype=torch.bfloat16)
b = a @ a
torch.cuda.synchronize()
print("burning", flush=True)
while True:
    for _ in range(20):
        b = a @ a
    torch.cuda.synchronize()
"""


@contextmanager
def burning() -> Iterator[int]:
    """Another process that multiplies matrices on the GPU, without a pause; yields its process number."""
    other = subprocess.Popen([sys.executable, "-c", BURN], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert other.stdout is not None
        assert other.stderr is not None
        assert any(line == "burning\n" for line in other.stdout), other.stderr.read()
        yield other.pid
    finally:
        other.kill()
        other.communicate()


def test_rows_measured_beside_another_process_are_flagged_busy(gpu: nvml.Gpu, tmp_path: Path) -> None:
    with burning():
        shown = compute_processes(gpu)
        if not shown:
            pytest.skip(f"NVML shows no compute process on this {gpu.name} while one runs, so nobody can know of it")
        found = rows(run_of(tmp_path, "steady"), "steady")
    assert {row.status for row in found} <= set(MEASURED)
    assert len(found) == 3
    for row in found:
        assert "busy" in row.flags


def test_rows_are_flagged_busy_only_where_another_process_was_there(faulty_run: Run, others: list[int]) -> None:
    """pytest itself is another process, where a file of tests has opened the GPU in it before this one."""
    (first, *_) = workers(list(faulty_run.records))
    measured = [row for row in faulty_run.records if f"worker:{first}" in row.flags]
    assert {"busy" in row.flags for row in measured} == {bool(others)}


# Interruption, and two runs at once, on the command line as a person meets them --------------------------------------

DRIVER = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # also where our own parent ignores it
from pathlib import Path
from microbench import paths
data = Path(sys.argv.pop(1))
paths.writable_data = lambda: data
paths.data_roots = lambda: [data]
from microbench.cli import main
main(sys.argv[1:])
"""


def start(data: Path, *more: str) -> subprocess.Popen[str]:
    """`python -m microbench run` on the GPU, with another data folder."""
    arguments = ("--only", "steady", "--probes", str(PROBES), "--campaigns", "1", "--json", *more)
    return subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(data), "run", "--device", DEVICE, "--retries", "0", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=HERE.parents[1],
    )


@dataclass(frozen=True)
class Ended:
    """What a command left: its exit code, and what it printed."""

    code: int
    out: str
    err: str


def end(command: subprocess.Popen[str]) -> Ended:
    out, err = command.communicate(timeout=200)
    return Ended(command.returncode, out, err)


def wait_for_rows(command: subprocess.Popen[str], data: Path, count: int) -> Path:
    """The run's file, once it holds so many records."""
    for _ in range(2000):
        files = list(data.glob("runs/*/*.jsonl"))
        if files and files[0].read_text().count('"kind":"record"') >= count:
            return files[0]
        assert command.poll() is None, end(command)
        time.sleep(0.1)
    command.kill()
    raise AssertionError(f"the run wrote no {count} rows in 200 s: {end(command)}")


@dataclass(frozen=True)
class Story:
    """A run that a second one met, that Ctrl-C ended, and that the same command took up again."""

    second: Ended
    first: Ended
    kept: Run
    again: Ended
    whole: Run
    files: tuple[Path, ...]


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    data = tmp_path_factory.mktemp("interrupted")
    running = start(data)
    try:
        file = wait_for_rows(running, data, 3)
        second = end(start(data, "--no-wait"))
        wait_for_rows(running, data, 12)
        running.send_signal(signal.SIGINT)
        first = end(running)
    finally:
        running.kill()
    kept = record.read(file)
    again = end(start(data))
    return Story(second, first, kept, again, record.read(file), tuple(data.glob("runs/*/*.jsonl")))


def test_a_second_run_on_the_same_gpu_refuses_and_leaves_the_first_alone(story: Story) -> None:
    assert (story.second.code, story.second.out) == (1, "")
    assert f"Another run is measuring {DEVICE}" in story.second.err
    assert len(story.kept.records) >= 12, story.first


def test_ctrl_c_in_the_middle_keeps_whole_rows(story: Story) -> None:
    assert (story.first.code, story.first.out) == (130, "")
    assert f"kept in {story.kept.path.name}" in story.first.err
    assert not story.kept.finished
    assert story.kept.problems == ()


def test_ctrl_c_ends_the_worker_on_the_gpu(story: Story) -> None:
    (worker,) = set(workers(list(story.kept.records)))
    assert not psutil.pid_exists(worker)


def test_the_next_run_goes_on_without_a_duplicate_and_is_finished(story: Story) -> None:
    assert story.again.code == 0, story.again.err
    assert json.loads(story.again.out)["resumed_records"] == len(story.kept.records)
    assert story.whole.finished
    assert story.whole.records[: len(story.kept.records)] == story.kept.records
    assert Counter(map(plan.key_of, story.whole.records)) == {
        (0, "steady", "nvrtc", (("size", size),)): 1 for size in range(40)
    }
    assert story.files == (story.kept.path,)
    assert {row.status for row in story.whole.records} <= set(MEASURED)
