"""The row of one problem, by a worker that judged it or by the supervisor of one that died. No torch here."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from attention.timed.timing import STEPS
from attention.verify.builds import Build
from attention.verify.problems import Case, described
from microbench.compile import Cubin, compile_all
from microbench.files import text
from microbench.verify.forward import ForwardProblemRow

LOST = 3  # exit status of a worker: the last row is written, and the CUDA context is of no use any more


def row_of(case: Case, reason: str, errors: Mapping[str, float]) -> ForwardProblemRow:
    """A problem, why its result is wrong ('' where it is right), and those of its errors that are finite."""
    least, most = case.build.bucket
    told: dict[str, Any] = {**described(case), **errors}
    return ForwardProblemRow(
        index=case.index,
        seed=case.seed,
        cubin=cubin_of(case.build),
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
