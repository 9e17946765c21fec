"""Faults on a real GPU: whatever a kernel does, its row says why, the worker goes, and the run comes to its end.

The probes lie in probes/faults. Those that fail have three points, before, fault and after; each sample carries the
process number of its worker as a flag.
"""

import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from microbench import run as runner
from microbench.machine import nvml
from microbench.probes import discover
from microbench.results import record
from microbench.results.record import Record, Run
from tests.cpu.typed_run import start, wait_for_rows

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
        patch.setattr("random.Random.shuffle", lambda *_: None)  # before, fault and after, in this order
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
    assert fault.status == "failed" and fault.value is None and reason in fault.reason
    assert {before.status, after.status} <= set(MEASURED), (before.reason, after.reason)


@pytest.mark.parametrize("probe", FAULTS)
def test_a_fresh_worker_goes_on_after_it(faulty_run: Run, probe: str) -> None:
    before, after = workers(rows(faulty_run, probe))
    assert before != after


def test_the_other_probes_are_measured_and_the_run_is_finished(faulty_run: Run) -> None:
    assert faulty_run.finished and faulty_run.problems == ()
    assert {row.status for row in rows(faulty_run, "steady")} <= set(MEASURED)
    assert Counter(row.probe for row in faulty_run.records) == dict.fromkeys((*FAULTS, "steady"), 3)


def test_no_worker_is_left_behind_not_even_one_whose_kernel_hung(faulty_run: Run) -> None:
    used = set(workers(list(faulty_run.records)))
    assert len(used) == 1 + len(FAULTS)
    assert not [number for number in used if psutil.pid_exists(number)]


def test_reasons_name_no_folder_of_this_machine(faulty_run: Run) -> None:
    text = faulty_run.path.read_text()
    assert str(HERE) not in text and str(faulty_run.path.parent) not in text


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
    assert len(found) == 3 and all("busy" in row.flags for row in found)


def test_rows_are_flagged_busy_only_where_another_process_was_there(faulty_run: Run, others: list[int]) -> None:
    """pytest itself is another process, where a file of tests has opened the GPU in it before this one."""
    (first, *_) = workers(list(faulty_run.records))
    measured = [row for row in faulty_run.records if f"worker:{first}" in row.flags]
    assert {"busy" in row.flags for row in measured} == {bool(others)}


# Interruption ---------------------------------------------------------------------------------------------------------


def test_ctrl_c_ends_the_worker_on_the_gpu(tmp_path: Path) -> None:
    """What it keeps, and that the next run goes on, is told by a run on the CPU."""
    running = start(tmp_path, "--only", "steady", "--probes", str(PROBES), "--campaigns", "1", device=DEVICE)
    try:
        file = wait_for_rows(tmp_path, 12, seconds=200)
        running.send_signal(signal.SIGINT)
        _, err = running.communicate(timeout=200)
    finally:
        running.kill()
    (worker,) = set(workers(list(record.read(file).records)))
    assert running.returncode == 130 and not psutil.pid_exists(worker), err
