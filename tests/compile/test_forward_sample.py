"""The kernels that this tree compiles ran on the claimed GPU, and were right; campaigns from before stay."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from attention.kernels.common.family import SERVED
from attention.timed.timing import STEPS
from attention.variant import by_path
from attention.verify.builds import Build, builds_of, tuned
from attention.verify.kernel import KernelResult
from microbench import paths
from microbench.compile import Cubin, compile_all
from microbench.verify.results import committed

FOLDER = paths.SHIPPED / "verification"
FILES = sorted(FOLDER.glob("forward-*.jsonl"))
CLAIM = "h200-sxm-141gb"
RUN = "run `smscope verify` there"


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("variant", tuned())
def test_committed_results_are_of_this_trees_kernels(variant: str) -> None:
    """Cubins decide, not sources: a comment may change."""
    assert not never_ran(variant, [build for build in builds_of(variant) if not build.dealt]), RUN


@pytest.mark.slow
@pytest.mark.xfail(strict=True, reason="campaigns ran tiles dealt by lengths, no verification on file this sample")
@pytest.mark.parametrize("variant", tuned())
def test_committed_results_are_of_tiles_dealt_by_lengths(variant: str) -> None:
    assert not never_ran(variant, [build for build in builds_of(variant) if build.dealt]), RUN


@pytest.mark.parametrize("variant", [path for path in tuned() if by_path(path).features >= SERVED])
def test_tiles_dealt_by_lengths_take_no_register_that_is_spilled(variant: str) -> None:
    made = compile_all([source for build in builds_of(variant) if build.dealt for source in build.sources])
    assert made and all(isinstance(cubin, Cubin) and cubin.resources.spill_store_bytes == 0 for cubin in made)


def never_ran(variant: str, builds: list[Build]) -> set[str]:
    """Cubins of these builds that no committed result of the claimed GPU is of."""
    made = compile_all([source for build in builds for source in build.sources])
    sample = {cubin.sha256 for cubin in made if isinstance(cubin, Cubin)}
    right = [row for row in committed(KernelResult) if (row.gpu, row.kernel, row.ok) == (CLAIM, variant, True)]
    ran = {cubin for row in right for steps in row.cubins for cubin in steps.split(STEPS)}
    return sample - ran - kernels_that_ran(FOLDER / f"forward-{CLAIM}.jsonl", variant)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_list_of_cubins_is_that_of_its_campaign(file: Path) -> None:
    """Of each kernel there was: one that came later is in neither."""
    ran = {variant: sorted(kernels_that_ran(file, variant)) for variant in variants_that_ran(file)}
    sha256 = {(variant, hashlib.sha256("\n".join(each).encode()).hexdigest()) for variant, each in ran.items()}
    assert {(row["variant"], row["cubins_sha256"]) for row in rows(file)} == sha256


def rows(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def kernels_that_ran(file: Path, variant: str) -> set[str]:
    return {cubin for of, cubin in listed(file) if of == variant}


def variants_that_ran(file: Path) -> set[str]:
    return {of for of, _ in listed(file)}


def listed(file: Path) -> list[list[str]]:
    return [line.split() for line in file.with_suffix(".cubins").read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_committed_results_are_all_right(file: Path) -> None:
    assert rows(file) and {row["gpu"] for row in rows(file)} == {file.stem.removeprefix("forward-")}
    assert not sum(row["failed"] for row in rows(file))
    ratios = ("worst_ratio", "worst_block_ratio", "worst_lse_ratio")
    assert max(row[name] for row in rows(file) for name in ratios) <= 1
