"""The kernels that the campaign on the claimed GPU ran are those that this tree compiles; older campaigns stay."""

from pathlib import Path

import pytest

from attention.verify.builds import builds_of, tuned
from attention.verify.summary import digest
from microbench.compile import Cubin, compile_all
from microbench.verify.forward import ForwardRow, files, path, read

CLAIM = "h200-sxm-141gb"


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("variant", tuned())
def test_committed_results_are_of_this_trees_kernels(variant: str) -> None:
    """Cubins decide, not sources: a comment may change."""
    made = compile_all([source for build in builds_of(variant) for source in build.sources])
    sample = {cubin.sha256 for cubin in made if isinstance(cubin, Cubin)}
    assert kernels_that_ran(CLAIM, variant) == sample, "run the campaign again"


@pytest.mark.parametrize("variant", tuned())
@pytest.mark.parametrize("file", files(), ids=lambda file: file.stem)
def test_a_list_of_cubins_is_that_of_its_campaign(file: Path, variant: str) -> None:
    recorded = {row.cubins_sha256 for row in read(file, ForwardRow) if row.variant == variant}
    assert recorded == {digest(kernels_that_ran(file.stem.removeprefix("forward-"), variant))}


def kernels_that_ran(gpu: str, variant: str) -> set[str]:
    lines = (line.split() for line in path(gpu).with_suffix(".cubins").read_text(encoding="utf-8").splitlines())
    return {cubin for of, cubin in lines if of == variant}


def test_committed_results_are_all_right() -> None:
    for file in files():
        rows = read(file, ForwardRow)
        assert rows and {row.gpu for row in rows} == {file.stem.removeprefix("forward-")}
        assert all(row.failed == 0 for row in rows)
        assert all(max(row.worst_ratio, row.worst_block_ratio, row.worst_lse_ratio) <= 1 for row in rows)
