"""Every probe for every architecture it declares: all keep what they declare, and whatever breaks it is found."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from microbench import paths
from microbench.cli import main
from microbench.compile import nvrtc
from microbench.machine.arch import CUDA
from microbench.probes import discover
from microbench.verify import matrix, tables
from microbench.verify.tables import BuildRow


@pytest.fixture(scope="module")
def rows(shared_cache: Path) -> Iterator[list[matrix.Checked]]:
    """The whole matrix, compiled once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(paths.CACHE_VARIABLE, str(shared_cache))
        yield list(matrix.run(matrix.jobs(discover())))


# The first of these compiles the matrix: 25 s on two free cores.
@pytest.mark.timeout(600)
def test_every_kernel_keeps_its_contract_and_its_budget(rows: list[matrix.Checked]) -> None:
    assert [(row.kernel, row.arch, row.build, row.problems) for row in rows if row.problems] == []
    compiled = {(row.kernel, row.arch) for row in rows}
    assert compiled == {(p.name, arch) for p in discover() if p.builds for arch in CUDA if arch in p.archs}


@pytest.mark.timeout(600)
def test_ptxas_changed_neither_order_nor_waits_of_any_wgmma(rows: list[matrix.Checked]) -> None:
    assert [(row.kernel, row.build, row.notes) for row in rows if row.notes] == []
    assert any("wgmma" in row.kernel for row in rows)


@pytest.mark.timeout(600)
def test_the_committed_matrix_is_current(rows: list[matrix.Checked]) -> None:
    made, committed = matrix.table(rows, BuildRow), tables.read_all(BuildRow)
    if {row.nvrtc for row in made} == {row.nvrtc for row in committed}:
        files = {file.stem: file.read_text() for file in tables.folder(BuildRow).iterdir()}
        assert files == tables.texts(BuildRow, made), "run `check --write`"
    else:  # another compiler counts registers otherwise; what is compiled stays the same
        assert {_compiled(row) for row in made} == {_compiled(row) for row in committed}, "run `check --write`"


def _compiled(row: BuildRow) -> tuple[str, str, int, int]:
    return row.kernel, row.arch, row.builds, row.kept


def test_the_committed_matrix_is_of_the_requested_compiler() -> None:
    assert all(nvrtc.matches(row.nvrtc, nvrtc.DEFAULT) for row in tables.read_all(BuildRow))


PROBE = """
from microbench.probe import Budget, Build, OpCount, Probe, SassContract

BUILD = Build((("N", 2),), SassContract(({ops})), {more})
PROBE = Probe("Does it build?", ("{arch}",), (), run=lambda bench, point: [], builds=lambda point: (BUILD,))
"""
ADD = "OpCount('FADD', 2)"
KERNEL = """#include "ptx/clock.cuh"
extern "C" __global__ void fake(float* x, long long* cycles) {
  __shared__ float tile[32];
  tile[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  float sum = tile[31 - threadIdx.x], a = x[1];
  ptx::settle(sum, a);
  long long start = ptx::clock64();
  for (int i = 0; i < N; i++) asm volatile("add.rn.f32 %0, %0, %1;" : "+f"(sum) : "f"(a));
  long long stop = ptx::clock64();
  x[threadIdx.x] = sum;
  cycles[threadIdx.x] = stop - start;
}"""
VOLTA_MMA = """#include "ptx/clock.cuh"
extern "C" __global__ void fake(float* x, long long* cycles, const unsigned* u) {
  float d[8];
  unsigned a = u[threadIdx.x], b = u[threadIdx.x + 32], c = u[threadIdx.x + 64], e = u[threadIdx.x + 96];
  for (int i = 0; i < 8; i++) ptx::settle(d[i] = x[i]);
  ptx::settle(a, b, c, e);
  long long start = ptx::clock64();
  asm volatile("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {%0,%1,%2,%3,%4,%5,%6,%7},{%8,%9},{%10,%11},"
    "{%0,%1,%2,%3,%4,%5,%6,%7};" : "+f"(d[0]),"+f"(d[1]),"+f"(d[2]),"+f"(d[3]),"+f"(d[4]),"+f"(d[5]),"+f"(d[6]),
    "+f"(d[7]) : "r"(a), "r"(b), "r"(c), "r"(e));
  long long stop = ptx::clock64();
  for (int i = 0; i < 8; i++) x[i + 8 * threadIdx.x] = d[i];
  cycles[threadIdx.x] = stop - start;
}"""
SPILLING = """extern "C" __global__ void __launch_bounds__(1024, 2) fake(float* x, const unsigned* u) {
  float v[64];
  for (int i = 0; i < 64; i++) v[i] = x[threadIdx.x + 1024 * i];
  __syncthreads();
  for (int i = 0; i < 64; i++) x[threadIdx.x + 1024 * i] = v[i] * v[63 - i];
}"""
# setmaxnreg without launch bounds: ptxas ignores it, note C7508.
NOTED = """extern "C" __global__ void fake(float* x, const unsigned* u) {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
  asm volatile("add.rn.f32 %0, %0, %1;" : "+f"(x[0]) : "f"(x[1]));
}"""


def checked(folder: Path, kernel: str, ops: str, arch: str = "sm80", more: str = "") -> matrix.Checked:
    """One probe of one build, written as two files and sent through the matrix."""
    home = folder / "family"
    home.mkdir(parents=True)
    (home / "fake.cu").write_text(kernel)
    (home / "fake.py").write_text(PROBE.format(ops=f"{ops}," if ops else "", arch=arch, more=more))
    (row,) = matrix.run(matrix.jobs([{probe.name: probe for probe in discover(folder)}["fake"]]))
    return row


@pytest.mark.parametrize("arch", ["sm70", "sm80", "sm90a", "sm100a"])
def test_a_probe_within_its_budget_passes(arch: str, tmp_path: Path) -> None:
    row = checked(tmp_path, KERNEL, ADD, arch, "budget=Budget(registers=32, smem_bytes=128)")
    assert row.problems == () and (row.signature, row.smem_bytes, row.spill_bytes) == (("FADD",), 128, 0)
    assert 0 < row.registers <= 32 and row.instructions > 10 and row.build == "N=2"


BROKEN = {
    "too many registers": (KERNEL, ADD, "sm80", "budget=Budget(registers=4)", r"registers a thread .* budget of 4"),
    "too much memory": (KERNEL, ADD, "sm80", "budget=Budget(smem_bytes=127)", r"128 bytes of static .* of 127"),
    "a spill": (SPILLING, "", "sm80", "", "ptxas spilled"),
    "a missing operation": (KERNEL, "OpCount('HMMA', 1)", "sm80", "", "0 HMMA where 1 are declared"),
    "software on sm80": (VOLTA_MMA, "", "sm80", "", "ptxas calls __cuda_sm_8x_mma_row_col_f32_f16_f16_f32"),
    "software on sm100a": (VOLTA_MMA, "", "sm100a", "", "no such tensor instruction"),
    "a fatal note": (NOTED, ADD, "sm90a", "", r"\(C7508\)"),
    "a refused source": (NOTED, ADD, "sm89", "", "does not build fake.cu for sm89"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_probe_that_breaks_what_it_declares_is_found(case: str, tmp_path: Path) -> None:
    kernel, ops, arch, more, reason = BROKEN[case]
    row = checked(tmp_path, kernel, ops, arch, more)
    assert any(re.search(reason, problem) for problem in row.problems), row.problems


def test_voltas_code_passes_where_it_is_native_and_where_its_routine_is_wanted(tmp_path: Path) -> None:
    four = ", ".join(f"OpCount('HMMA.884.F32.F32.STEP{n}', 1)" for n in range(4))
    native = checked(tmp_path / "a", VOLTA_MMA, four, "sm70")
    assert native.problems == () and len(native.signature) == 4
    assert checked(tmp_path / "b", VOLTA_MMA, four, "sm80", "software_mma=True").problems == ()
    crowded = "software_mma=True, budget=Budget(registers=8)"
    (problem,) = checked(tmp_path / "c", VOLTA_MMA, four, "sm80", crowded).problems
    assert "over the budget of 8" in problem


def test_a_table_is_written_only_of_everything(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["check", "--write", "--arch", "sm80"])
    assert ended.value.code == 2 and "only --only may select" in capsys.readouterr().err
