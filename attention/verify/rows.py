"""The row of one problem, by a worker that judged it or by the supervisor of one that died. No torch here."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from attention.timed.timing import STEPS
from attention.verify.builds import Build
from attention.verify.problems import Case, described
from microbench.compile import Cubin, compile_all
from microbench.files import Frozen, text
from microbench.files import read as read_rows

LOST = 3  # exit status of a worker: the last row is written, and the CUDA context is of no use any more


class ForwardProblemRow(Frozen):
    """One problem, as the campaign met it. Errors are None where the kernel gave nothing, or something not finite."""

    index: int
    seed: int
    variant: str
    config: str
    cubin: str  # SHA-256 of the image; of an emulated kernel there is none
    problem: str
    head_dim: int
    head_dims: str  # those that share a padded size: '65-96'
    dtype: str
    features: tuple[str, ...]
    layouts: tuple[str, str, str]  # where query, key and value lie in memory
    values: str
    scale: float
    lengths: tuple[tuple[int, int], ...]
    mask: str
    ok: bool
    reason: str
    error: float | None = None  # the largest of out
    allowed: float | None = None  # twice that of torch operations in low precision, one rounding unit, and underflow
    block_ratio: float | None = None  # error over what is allowed, of the worst 64 rows of a head
    lse_ratio: float | None = None  # likewise of lse


def read(file: Path) -> tuple[ForwardProblemRow, ...]:
    """The rows of a campaign. Raises DataError where they cannot be read."""
    return read_rows(file, ForwardProblemRow, "run the campaign again")


def row_of(case: Case, reason: str, errors: Mapping[str, float], on_gpu: bool = True) -> ForwardProblemRow:
    """A problem, why its result is wrong ('' where it is right), and those of its errors that are finite."""
    least, most = case.build.bucket
    told: dict[str, Any] = {**described(case), **errors}
    return ForwardProblemRow(
        index=case.index,
        seed=case.seed,
        cubin=cubin_of(case.build) if on_gpu else "",
        head_dims=f"{least}-{most}",
        ok=not reason,
        reason=reason,
        **told,
    )


def failed(case: Case, reason: str) -> ForwardProblemRow:
    """The row of a case that gave nothing."""
    return row_of(case, reason, {})


def append(out: Path, row: ForwardProblemRow) -> None:
    """On disk before the next problem begins."""
    with out.open("a", encoding="utf-8") as file:
        file.write(text([row]))


@cache
def cubin_of(build: Build) -> str:
    """The SHA-256 of a build's image, of each step's where it has several; '' where one does not compile."""
    made = [cubin.sha256 for cubin in compile_all(build.sources) if isinstance(cubin, Cubin)]
    return STEPS.join(made) if len(made) == len(build.sources) else ""
