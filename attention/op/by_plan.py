"""Who serves a known call by a kernel of torch's: past the operator, as a plan names it."""

from dataclasses import dataclass
from typing import Any

import torch

from attention.call import NO_EXTRAS
from attention.kernels.common.layout import Where
from attention.kernels.launch.forms import Form
from attention.kernels.torch.common.readable import all_readable
from attention.op.known import Given
from attention.op.operands import Operands
from attention.op.plan import Plan


@dataclass(frozen=True, eq=False)
class ByPlan:
    """Out of a call without gradients, or (out, lse). The plan may change kernels after some calls."""

    plan: Plan
    form: Form
    operands: Operands | None = None
    with_lse: bool = False

    def __call__(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, where: Where, given: Given) -> Any:
        extras = NO_EXTRAS if self.operands is None else self.operands.read(query, key, given)
        plan, tensors = self.plan, map(self.form.to_kernel, (query, key, value))
        out, lse = plan.run(*tensors, plan.problem, plan.config, extras)
        return (self.form.out(out), self.form.lse(lse)) if self.with_lse else self.form.out(out)


def read_in_place(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> bool:
    """Whether torch's kernels read the tensors of a call where they lie, and no copies."""
    read = all_readable(query, key, value)
    return query is read[0] and key is read[1] and value is read[2]
