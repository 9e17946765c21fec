"""The kernels that a committed campaign ran are those that this tree compiles."""

import pytest

from microbench.build import Cubin, compile_all
from microbench.verification.forward import ForwardRow, files, read
from tests.gpu.forward_builds import builds_of, tuned
from tests.gpu.forward_summary import digest


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("variant", tuned())
def test_committed_results_are_of_this_trees_kernels(variant: str) -> None:
    """Cubins decide, not sources: a comment may change."""
    made = compile_all([build.source for build in builds_of(variant)])
    sample = {cubin.sha256 for cubin in made if isinstance(cubin, Cubin)}
    for file in files():
        lines = (line.split() for line in file.with_suffix(".cubins").read_text(encoding="utf-8").splitlines())
        ran = {cubin for of, cubin in lines if of == variant}
        recorded = {row.cubins_sha256 for row in read(file, ForwardRow) if row.variant == variant}
        assert recorded == {digest(ran)}, "the list of cubins is not that of the campaign"
        assert ran == sample, "run the campaign again"


def test_committed_results_are_all_right() -> None:
    for file in files():
        rows = read(file, ForwardRow)
        assert rows and {row.gpu for row in rows} == {file.stem.removeprefix("forward-")}
        assert all(row.failed == 0 for row in rows)
        assert all(max(row.worst_ratio, row.worst_block_ratio, row.worst_lse_ratio) <= 1 for row in rows)
