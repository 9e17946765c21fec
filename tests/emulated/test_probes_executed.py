"""Every C++ probe, kernel and `run`, executed without its GPU; and that a wrong one is found."""

import json
from dataclasses import fields
from pathlib import Path

import pytest
from typer.testing import CliRunner

from microbench import paths
from microbench import run as runner
from microbench.cli import app
from microbench.device import choose, open_device
from microbench.device.emulated import EmulatedGpu
from microbench.errors import DeviceError, InputError
from microbench.machine.arch import CUDA
from microbench.probes import discover, named
from microbench.verify.executed import Executed, execute, execute_point

WITHOUT_RESULTS = {"launch_latency"}  # an empty kernel


@pytest.mark.parametrize("arch", CUDA)
def test_every_probe_of_an_architecture_computes_what_it_declares(arch: str) -> None:
    rows = execute(discover(), EmulatedGpu(arch), quick=True)
    assert not [row for row in rows if row.status == "failed"]
    checked = {row.probe for row in rows if row.checked}
    assert checked == {probe.name for probe in discover() if arch in probe.archs} - WITHOUT_RESULTS


def altered(folder: Path, name: str, old: str, new: str) -> Executed:
    """A copy of a probe with one edit of its kernel, executed at its first point."""
    probe = named(name)
    target = folder / probe.family
    target.mkdir()
    source = probe.source.read_text()
    assert old in source
    (target / f"{name}_altered.cu").write_text(source.replace(old, new).replace(f" {name}(", f" {name}_altered("))
    (target / f"{name}_altered.py").write_text(probe.file.read_text())
    (found,) = (each for each in discover(folder) if each.name == f"{name}_altered")
    return execute_point(found, next(found.points(quick=True)), EmulatedGpu("sm90a"))


PLANTED = {
    "operands change places": ("ffma_latency", "ptx::ffma(x, a, b)", "ptx::ffma(x, b, a)", "values differ"),
    "an operation is dropped": ("fixed_latency", "ptx::ffma(x, a, b)", "x", "values differ"),
    "a load is another thread's": ("l1_bandwidth", "threadIdx.x * 16;", "(threadIdx.x ^ 1) * 16;", "values differ"),
    "a block reads another chunk": ("l2_bandwidth", "int chunk = blockIdx.x", "int chunk = 2 * blockIdx.x", "differ"),
    "a chunk is left out": ("dram_bandwidth", "chunk < chunks", "chunk < chunks - 1", "values differ"),
    "an access beyond the end": ("dram_bandwidth", "chunk < chunks", "chunk <= chunks", "stopped"),
    "the clock is not reported": ("l1_index_latency", "report(clocks, start, end);", "", "two readings of the clock"),
    "the chase takes a wrong turn": ("smem_latency", "(i + hop) % WORDS", "(i + hop + 1) % WORDS", "values differ"),
    "nothing is written": ("smem_bandwidth", "= sum;", "^= 0;", "values differ"),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_mistake_is_found(name: str, tmp_path: Path) -> None:
    probe, old, new, reason = PLANTED[name]
    row = altered(tmp_path, probe, old, new)
    assert row.status == "failed" and row.reason is not None and reason in row.reason


def test_the_verb_tells_what_was_executed_and_keeps_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "writable_data", lambda: tmp_path)
    asked = ["run", "--device", "emulated:sm100a", "--quick", "--only", "smem_latency", "--json"]
    told = CliRunner().invoke(app, asked)
    assert told.exit_code == 0, told.output
    rows = json.loads(told.stdout.splitlines()[-1])
    assert {row["status"] for row in rows} == {"emulated"} and not list(tmp_path.rglob("*"))


def test_a_row_has_no_place_for_a_value_or_a_time() -> None:
    assert {field.name for field in fields(Executed)} == {"probe", "arch", "point", "status", "checked", "reason"}


def test_nothing_emulated_can_be_written_as_a_run() -> None:
    with pytest.raises(DeviceError, match="measures nothing"):
        open_device("emulated:sm80").facts()
    options = runner.Options(device="emulated:sm80", probes=discover(), only=("ffma_latency",), quick=True)
    with pytest.raises(DeviceError, match="measures nothing"):
        runner.run(options)


def test_an_architecture_that_does_not_exist_is_named() -> None:
    for name in ("emulated:sm42", "emulated:host", "emulated"):
        with pytest.raises(InputError, match="write emulated: and one of sm70, "):
            choose(name)
