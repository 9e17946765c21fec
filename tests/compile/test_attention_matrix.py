"""Our attention kernels for every architecture they run on: none spills more than it may, none lost what it is for."""

from collections import Counter
from pathlib import Path

import pytest

from attention.kernels.common.family import SERVED
from attention.variant import shipped
from attention.verify import build_matrix
from attention.verify.build_matrix import AttentionRow
from microbench import paths
from microbench.compile import Source
from microbench.machine import arch as archs
from microbench.probe import Budget
from microbench.verify import matrix, tables
from microbench.verify.matrix import Checked, Job
from microbench.verify.rules import Whole

OURS = tuple(variant for variant in shipped() if variant.builds)


# Of each variant every architecture and every head dim, in turns.
SAMPLE = {
    (f"{variant.path} d={build_matrix.HEAD_DIMS[turn % len(build_matrix.HEAD_DIMS)]}", arch)
    for variant in OURS
    for turn in range(max(len(build_matrix.HEAD_DIMS), len(variant.archs)))
    for arch in (sorted(variant.archs)[turn % len(variant.archs)],)
}


def compiled(jobs: list[Job], cache: Path) -> list[Checked]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(paths.CACHE_VARIABLE, str(cache))
        return list(matrix.run(jobs))


@pytest.fixture(scope="module")
def rows(shared_cache: Path) -> list[Checked]:
    """A sample of what the chooser picks, compiled once."""
    return compiled([job for job in build_matrix.jobs() if (job.kernel, job.arch) in SAMPLE], shared_cache)


def test_a_variant_with_a_kernel_says_how_it_is_built_and_what_it_holds() -> None:
    assert OURS
    for variant in OURS:
        assert variant.owner == "smscope" and variant.builds and variant.signature


def test_the_sample_has_every_variant_architecture_and_head_dim() -> None:
    served = {(variant.path, arch) for variant in OURS for arch in variant.archs}
    assert {(kernel.split()[0], arch) for kernel, arch in SAMPLE} == served
    assert {kernel for kernel, _ in SAMPLE} == {f"{v.path} d={size}" for v in OURS for size in build_matrix.HEAD_DIMS}


# The first of these compiles them: half a minute on two free cores.
@pytest.mark.timeout(600)
def test_the_sampled_picks_keep_their_rules(rows: list[Checked]) -> None:
    assert [(row.kernel, row.arch, row.build, row.problems) for row in rows if row.problems] == []
    assert {(row.kernel, row.arch) for row in rows} == SAMPLE


@pytest.mark.timeout(600)
def test_the_committed_table_is_current_where_it_was_sampled(rows: list[Checked]) -> None:
    made = matrix.table(rows, AttentionRow)
    committed = [row for row in tables.read_all(AttentionRow) if (row.kernel, row.arch) in SAMPLE]
    same_compiler = {row.nvrtc for row in made} == {row.nvrtc for row in committed}
    if same_compiler:  # another one counts registers otherwise
        assert sorted(made, key=_place) == sorted(committed, key=_place), "run `attention check --write`"


def _place(row: AttentionRow) -> tuple[str, str]:
    return row.kernel, row.arch


def test_the_committed_table_has_as_many_builds_as_the_chooser_picks() -> None:
    jobs = Counter((job.kernel, job.arch) for job in build_matrix.jobs())
    assert {(row.kernel, row.arch): row.builds for row in tables.read_all(AttentionRow)} == jobs, (
        "run `attention check --write`"
    )


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_every_pick_keeps_its_rules_and_the_committed_table_is_current(shared_cache: Path) -> None:
    rows = compiled(build_matrix.jobs(), shared_cache)
    assert [(row.kernel, row.arch, row.build, row.problems) for row in rows if row.problems] == []
    made, committed = matrix.table(rows, AttentionRow), tables.read_all(AttentionRow)
    if {row.nvrtc for row in made} == {row.nvrtc for row in committed}:
        files = {file.stem: file.read_text() for file in tables.folder(AttentionRow).iterdir()}
        assert files == tables.texts(AttentionRow, made), "run `attention check --write`"


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_every_legal_configuration_keeps_its_rules_with_every_feature() -> None:
    found = [row for row in matrix.run(build_matrix.jobs(asked=build_matrix.EVERY)) if row.problems]
    assert [(row.kernel, row.arch, row.build, row.problems) for row in found] == []


def test_no_build_is_compiled_twice_and_every_head_dim_is_there() -> None:
    for asked in ((), build_matrix.EVERY):
        jobs = build_matrix.jobs(asked=asked)
        assert (
            len({(job.arch, job.source) for job in jobs})
            == len(jobs)
            == len({(j.arch, j.kernel, j.build) for j in jobs})
        )
        assert {job.kernel for job in jobs} >= {f"{v.path} d={size}" for v in OURS for size in build_matrix.HEAD_DIMS}


def test_combinations_are_every_build_once() -> None:
    (hopper,) = (variant for variant in OURS if variant.path == "sm90a/forward/warp_specialised")
    asked = list(build_matrix.combinations())
    config = build_matrix.legal(hopper, build_matrix.LONG, archs.by_name("sm90a"))[0]
    assert len({hopper.steps(problem, config) for problem in asked}) == len(asked) == 152


@pytest.mark.parametrize("head_dim", [*build_matrix.HEAD_DIMS, *build_matrix.BETWEEN])
def test_some_configuration_serves_all_features_together_at_every_head_dim(head_dim: int) -> None:
    for variant in (each for each in OURS if each.features >= SERVED):  # others serve some features alone
        for asked in (*build_matrix.FEATURES, *build_matrix.combinations()):
            for arch in map(archs.by_name, variant.archs):
                problem = build_matrix.as_served(variant, build_matrix.at(asked, head_dim), arch)
                assert build_matrix.legal(variant, problem, arch), f"{variant.path} {arch.name}: {problem}"


KERNEL = 'extern "C" __global__ void k(float* x) { x[threadIdx.x] *= 2; }'
SPILLING = """extern "C" __global__ void __launch_bounds__(1024, 2) k(float* x) {
  float v[64];
  for (int i = 0; i < 64; i++) v[i] = x[threadIdx.x + 1024 * i];
  __syncthreads();
  for (int i = 0; i < 64; i++) x[threadIdx.x + 1024 * i] = v[i] * v[63 - i];
}"""
BROKEN = {
    "an instruction is missing": (KERNEL, ("FADD", "HMMA"), Budget(), 0, "holds no HMMA"),
    "a spill": (SPILLING, (), Budget(), 0, "ptxas spilled"),
    "too many registers": (KERNEL, (), Budget(registers=2), 0, "registers a thread on sm80, over the budget of 2"),
    "too much shared memory": (KERNEL, (), Budget(smem_bytes=4096), 5000, "5000 bytes of shared memory on sm80"),
    "no such kernel": ("", (), Budget(), 0, "k"),
}


def checked(source: str, rules: Whole) -> Checked:
    (row,) = matrix.run([Job("k", "sm80", "-", Source(source, "k.cu", archs.by_name("sm80"), "k"), rules)])
    return row


@pytest.mark.parametrize("case", BROKEN)
def test_a_kernel_that_breaks_its_rules_is_found(case: str) -> None:
    source, holds, budget, smem_bytes, said = BROKEN[case]
    (problem, *more) = checked(source, Whole(holds, budget, smem_bytes)).problems
    assert said in problem and not more


def test_a_kernel_may_spill_what_its_rules_allow() -> None:
    (problem,) = checked(SPILLING, Whole((), Budget())).problems
    spilled = int(problem.split(" bytes")[0].removeprefix("ptxas spilled "))
    assert checked(SPILLING, Whole((), Budget(), spilled_bytes=spilled)).problems == ()
    (problem,) = checked(SPILLING, Whole((), Budget(), spilled_bytes=spilled - 1)).problems
    assert problem.startswith("ptxas spilled")


def test_a_kernel_within_its_rules_passes() -> None:
    row = checked(KERNEL, Whole(("FADD",), Budget(registers=64, smem_bytes=1024), 1024))
    assert (row.problems, row.smem_bytes) == ((), 1024)
