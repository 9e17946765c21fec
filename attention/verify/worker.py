"""One process of the campaign: it runs problems one after another, and appends a row for each before the next."""

import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from attention.variant import by_path
from attention.verify.counters import counters_left
from attention.verify.inputs import on_host, poisoned_results, tensors_of
from attention.verify.oracle import Verdict, judge
from attention.verify.problems import Case
from attention.verify.rows import LOST, ForwardProblemRow, append, failed, row_of
from microbench.errors import NoGpu


def work(cases: Sequence[Case], out: Path, exact: bool, index: int = 0) -> int:
    """Run cases on the `index`-th GPU; a line on stdout tells of each row. Returns the exit status.

    Raises NoGpu where torch sees no GPU.
    """
    if not torch.cuda.is_available():
        raise NoGpu(f"torch {torch.__version__} sees no GPU here; install a torch with CUDA for this driver.")
    device = torch.device("cuda", index)
    torch.cuda.set_device(device)
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
    """Run and judge one case: on a GPU, or where attention.verify.emulated stands in for one on the CPU."""
    tensors = tensors_of(case, device, exact)
    forward: Callable[..., Any] = by_path(case.build.variant).load()
    with poisoned_results(exact) as results:
        out, lse = forward(tensors.query, tensors.key, tensors.value, case.problem, case.build.config, tensors.extras)
    # Under a checking tool every module that torch loads onto the GPU takes seconds: no products there.
    verdict = judge(case, *((on_host(tensors), out.cpu(), lse.cpu()) if exact else (tensors, out, lse)))
    reasons = [verdict.reason] if verdict.reason else []
    if not (results.hold(out) and results.hold(lse)):
        reasons.append("out or lse is not what attention.kernels.common.layout gave, and was not NaN before")
    if results.strayed():
        reasons.append("wrote outside of out or lse")
    if counters_left(device):
        reasons.append("left counters that are not 0")
    return row_of(case, "; ".join(reasons), _errors(verdict), on_gpu=device.type == "cuda")


def say(line: str) -> None:
    """One line for the supervisor, at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _errors(verdict: Verdict) -> dict[str, float]:
    """Those that are finite: a row holds no other number."""
    names = ("error", "allowed", "block_ratio", "lse_ratio")
    return {name: value for name in names if math.isfinite(value := getattr(verdict, name))}


def _alive() -> bool:
    """Whether the GPU still answers: an illegal access takes the context with it."""
    try:
        torch.cuda.synchronize()
    except Exception:
        return False
    return True
