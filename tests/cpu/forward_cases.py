"""Random attention problems on the CPU, and results that are right: those of torch's low-precision operations."""

import torch

from attention.verify import inputs, oracle
from attention.verify.builds import tuned
from attention.verify.problems import Case, drawn

CPU = torch.device("cpu")
VARIANTS = tuned()
CASES = drawn(VARIANTS, 80, seed=1, small=True)
Pair = tuple[torch.Tensor, torch.Tensor]


def low(case: Case, tensors: inputs.Tensors) -> Pair:
    """Out and lse as torch's low-precision operations have them: right by definition."""
    results = inputs.Results(exact=False)
    out, lse = results.out(tensors.query, case.problem.head_dim_v), results.lse(tensors.query)
    for piece in oracle.pieces(case, tensors, out, lse):
        piece.out.copy_(piece.low.out)
        piece.lse.copy_(piece.low.lse)
    assert not results.strayed()
    return out, lse
