"""Who serves a known call past the operator, as a plan names it: a kernel of torch's, or one after another."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from attention.call import NO_EXTRAS
from attention.choose.while_new import Settling, Tally
from attention.kernels.common.layout import Where
from attention.kernels.launch.forms import Form
from attention.kernels.torch.common.readable import all_readable
from attention.op.known import Given, Serve
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


@dataclass(frozen=True, eq=False)
class WhileNew:
    """Served by `early` until a shape was called so often that its own plan pays, and by `late` from then on."""

    early: Serve
    late: Serve
    tally: Tally

    def __call__(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, where: Where, given: Given) -> Any:
        return (self.late if self.tally.settled() else self.early)(query, key, value, where, given)


def first_of(plan: Plan) -> Plan:
    """The plan by which shapes are served while they are new."""
    return replace(plan, run=plan.run.early, settles=False) if isinstance(plan.run, Settling) else plan


def one_or_both(plan: Plan, server: Callable[[Plan], Serve | None]) -> Serve | None:
    """Who serves by a plan; of one that settles, both of its kernels: None where nobody serves one of them."""
    if not isinstance(plan.run, Settling):
        return server(plan)
    early = server(first_of(plan))
    late = server(replace(plan, run=plan.run.late, owner="torch", settles=False))
    return None if early is None or late is None else WhileNew(early, late, plan.run.tally)


def read_in_place(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> bool:
    """Whether torch's kernels read the tensors of a call where they lie, and no copies."""
    read = all_readable(query, key, value)
    return query is read[0] and key is read[1] and value is read[2]
