"""A few problems under compute-sanitizer: what they cover, the command line, and what is made of a tool's answer."""

import sys
from pathlib import Path

import pytest
import torch

from attention.verify import __main__ as program
from attention.verify import sanitizer
from attention.verify.builds import DTYPES, builds_of, kernel_module
from attention.verify.campaign import Campaign
from attention.verify.few import BUCKETS, checked
from attention.verify.inputs import on_host, tensors_of
from attention.verify.sanitizer import KERNELS, check, complaint
from tests.cpu.forward_cases import CPU, VARIANTS

CASES = checked(VARIANTS, seed=0)
H100_SMS = 132


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_few_problems_cover_a_variant(variant: str) -> None:
    mine = [case for case in CASES if case.build.variant == variant]
    sample = [build for build in builds_of(variant) if build.bucket in BUCKETS]
    assert {case.build.bucket for case in mine} == set(BUCKETS) and {case.build.dtype for case in mine} == set(DTYPES)
    assert all(case.build in sample for case in mine)
    asked = [frozenset().union(*(build.asked for build in some)) for some in (sample, [case.build for case in mine])]
    assert asked[0] == asked[1]
    assert [case.index for case in CASES] == list(range(len(CASES))) and len(CASES) <= 6 * len(VARIANTS)


@pytest.mark.parametrize("variant", VARIANTS)
def test_one_of_them_gives_a_block_a_second_tile_and_rings_come_round(variant: str) -> None:
    last = [case for case in CASES if case.build.variant == variant][-1]
    rows = kernel_module(variant).shape_of(last.problem, last.build.config).tile_rows
    values = dict(last.build.config.values)
    parts = values.get("key_splits", 1) if variant.startswith("sm90a") else 1  # others have a block for each
    assert -(-last.problem.seq_q // rows) * last.problem.batch * last.problem.heads_q * parts > H100_SMS
    assert last.problem.seq_kv > 2 * values["tile_keys"]


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_filter_knows_the_kernels(variant: str) -> None:
    case = next(case for case in CASES if case.build.variant == variant)
    assert case.build.sources and all(source.kernel.startswith(KERNELS) for source in case.build.sources)


# Answers for compute-sanitizer: it runs nothing, and its log says what SUMMARY says.
FAKE = """#!{python}
import os, sys
if sys.argv[1] == "--help":
    print("  --kernel-name arg  the kernels to check")
else:
    open(sys.argv[sys.argv.index("--log-file") + 1], "w").write(os.environ["SUMMARY"])
    open(os.environ["SEEN"], "w").write("\\n".join(sys.argv[1:]))
"""


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SUMMARY", "========= ERROR SUMMARY: 0 errors\n")
    monkeypatch.setenv("SEEN", str(tmp_path / "seen"))
    file = tmp_path / "compute-sanitizer"
    file.write_text(FAKE.format(python=sys.executable))
    file.chmod(0o755)
    return file


def test_the_tool_runs_a_worker_of_just_these_problems(tool: Path, tmp_path: Path) -> None:
    campaign = Campaign(VARIANTS[:1], seed=3, checked=True, exact=True, device=1)
    found = check(str(tool), "racecheck", campaign, tmp_path)
    assert (found.complaint, found.right, found.problems) == ("", 0, len(checked(VARIANTS[:1], 3)))
    assert not found.ok  # the tool has no complaint, and ran no problem
    seen = (tmp_path / "seen").read_text().splitlines()
    assert seen[seen.index("--kernel-name") + 1] == "kns=attention_forward"
    given = program.parser().parse_args(seen[seen.index("attention.verify") + 1 :])
    assert given.out == tmp_path / "racecheck.jsonl"
    assert program.campaign_of(given) == campaign
    assert program.cases_of(given) == checked(VARIANTS[:1], 3) and given.last is None


def test_only_a_summary_of_nothing_is_clean() -> None:
    assert complaint(0, "=== ERROR SUMMARY: 0 errors") == ""
    assert complaint(0, "=== RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)") == ""
    assert "3 hazards" in complaint(0, "=== RACECHECK SUMMARY: 3 hazards displayed (0 errors, 3 warnings)")
    assert "exit status 9" in complaint(9, "=== ERROR SUMMARY: 0 errors")
    assert "no CUDA" in complaint(0, "=== Target application used no CUDA")
    assert complaint(0, "")


def test_an_older_release_is_asked_by_the_older_name() -> None:
    line = sanitizer.command("tool", "  --kernel-regex arg", "memcheck", Path("log"), ["rows"])
    assert line[line.index("--kernel-regex") + 1] == "kns=attention_forward" and "--kernel-name" not in line


def test_tensors_are_judged_on_the_host_as_they_were() -> None:
    case = next(case for case in CASES if case.problem.mask != "none")
    tensors = tensors_of(case, CPU, exact=True)
    held = on_host(tensors)
    assert (held.extras.sinks is None) == (tensors.extras.sinks is None)
    assert held.extras.mask is not None and tensors.extras.mask is not None
    # What no call may read is NaN.
    for here, there in ((held.query, tensors.query), (held.extras.mask, tensors.extras.mask)):
        torch.testing.assert_close(here, there, rtol=0, atol=0, equal_nan=True)
