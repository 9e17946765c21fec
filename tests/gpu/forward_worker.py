"""One process of the campaign: it runs problems one after another, and appends a row for each before the next."""

import math
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import torch

from attention.variant import by_path
from microbench.build import Cubin, compile_all
from microbench.verification.forward import ForwardProblemRow, text
from tests.gpu.forward_builds import Build
from tests.gpu.forward_inputs import on_host, poisoned_results, tensors_of
from tests.gpu.forward_oracle import Verdict, judge
from tests.gpu.forward_problems import Case, described

LOST = 3  # exit status: the last row is written, and the CUDA context is of no use any more


def work(cases: Sequence[Case], out: Path, exact: bool) -> int:
    """Run cases on the current GPU; a line on stdout tells of each row. Returns the exit status."""
    device = torch.device("cuda", torch.cuda.current_device())
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    torch.zeros(1, device=device)
    say("ready")
    for case in cases:
        lost = False
        try:
            row = examined(case, device, exact)
        except Exception as error:
            row = failed(case, f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error) else ''}")
            lost = not _alive()
        append(out, row)
        say(str(case.index))
        if lost:
            return LOST
    return 0


def examined(case: Case, device: torch.device, exact: bool = False) -> ForwardProblemRow:
    """Run and judge one case."""
    tensors = tensors_of(case, device, exact)
    forward: Callable[..., Any] = by_path(case.build.variant).load()
    with poisoned_results(exact) as results:
        out, lse = forward(tensors.query, tensors.key, tensors.value, case.problem, case.build.config, tensors.extras)
    torch.cuda.synchronize(device)
    # Under a checking tool every module that torch loads onto the GPU takes seconds: no products there.
    verdict = judge(case, *((on_host(tensors), out.cpu(), lse.cpu()) if exact else (tensors, out, lse)))
    reasons = [verdict.reason] if verdict.reason else []
    if not (results.hold(out) and results.hold(lse)):
        reasons.append("out or lse is not what attention.layout gave, and was not NaN before")
    if results.strayed():
        reasons.append("wrote outside of out or lse")
    if counting(device):
        reasons.append("left counters that are not 0")
    return _row(case, "; ".join(reasons), verdict)


def counting(device: torch.device) -> bool:
    """Whether a tile counter is not 0 while nothing runs."""
    from tests.gpu.counters_left import counters_left

    assert device.index is not None
    return counters_left(device.index)


def failed(case: Case, reason: str) -> ForwardProblemRow:
    """The row of a case that gave nothing."""
    return _row(case, reason, None)


def append(out: Path, row: ForwardProblemRow) -> None:
    """On disk before the next problem begins."""
    with out.open("a", encoding="utf-8") as file:
        file.write(text([row]))


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _row(case: Case, reason: str, verdict: Verdict | None) -> ForwardProblemRow:
    errors = {}
    if verdict is not None:
        names = ("error", "allowed", "block_ratio", "lse_ratio")
        errors = {name: value for name in names if math.isfinite(value := getattr(verdict, name))}
    least, most = case.build.bucket
    return ForwardProblemRow(
        index=case.index,
        seed=case.seed,
        cubin=_cubin(case.build),
        head_dims=f"{least}-{most}",
        ok=not reason,
        reason=reason,
        **described(case),
        **errors,
    )


@cache
def _cubin(build: Build) -> str:
    (cubin,) = compile_all([build.source])
    return cubin.sha256 if isinstance(cubin, Cubin) else ""


def _alive() -> bool:
    """Whether the GPU still answers: an illegal access takes the context with it."""
    try:
        torch.cuda.synchronize()
    except Exception:
        return False
    return True
