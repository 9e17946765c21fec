"""The slow path, as the kernel that serves everything: torch operations, piece by piece, with every feature.

Nothing is predicted: it runs where nothing else can, and a bound of its traffic would flatter it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attention.call import NO_EXTRAS, Extras
from attention.forwarded import Forwarded, Gradients, Wanted
from attention.problem import FEATURE_WORDS, AttentionProblem
from attention.variant import Config, Variant
from microbench.machine.arch import CUDA, Arch

if TYPE_CHECKING:
    from torch import Tensor

SUMMARY = {
    "forward": "the slow path: torch operations in float32, piece by piece; runs where nothing else can",
    "backward": "the slow path: torch matmuls, in blocks of query rows; correct, not tuned",
}


def refuses(problem: AttentionProblem, arch: Arch) -> str | None:
    """Nothing is refused."""
    return None


def notes(problem: AttentionProblem) -> tuple[str, ...]:
    """Who draws random numbers, and what waits for the device."""
    said = ["scores are computed in pieces of at most 4 Mi, each with about ten passes over memory"]
    if problem.dropout_p > 0:
        said.append("with dropout, torch.nn.functional.scaled_dot_product_attention itself serves the call")
    if problem.varlen:
        said.append("the lengths of packed sequences are read on the host, which waits for the device")
    return tuple(said)


def forward(
    query: Tensor, key: Tensor, value: Tensor, problem: AttentionProblem, config: Config, extras: Extras = NO_EXTRAS
) -> tuple[Tensor, Tensor]:
    from attention.kernels.torch.composed import slow

    return slow.forward(query, key, value, problem, config, extras)


def backward(grad_out: Tensor, grad_lse: Tensor | None, given: Forwarded, wanted: Wanted) -> Gradients:
    import torch

    from attention.kernels.torch.composed import gradient

    with torch.autocast(given.query.device.type, enabled=False):  # fused kernels take no matmul that it would cast
        return gradient.backward(
            *(grad_out, grad_lse, given.query, given.key, given.value, given.out, given.lse),
            *(given.problem, given.extras),
            wanted=wanted.operands,
            nothing_seen=wanted.nothing_seen,
        )


VARIANTS = tuple(
    Variant(
        path=f"{home}/{passes}/torch_math",
        summary=summary,
        owner="torch",
        archs=archs,
        refuses=refuses,
        features=frozenset(FEATURE_WORDS),
        rank=4,
        fused=False,
        notes=notes,
    )
    for home, archs in (("host", ("host",)), ("sm70", CUDA))
    for passes, summary in SUMMARY.items()
)
