"""Who serves a known call past the operator, as a plan names it: a kernel of torch's, or one after another."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from attention.call import NO_EXTRAS
from attention.choose.while_new import Settling, Tally
from attention.kernels.common.layout import Where
from attention.kernels.launch.forms import Form
from attention.kernels.torch import flash
from attention.kernels.torch.common.limits import needs_positive_scale
from attention.kernels.torch.common.own import within
from attention.kernels.torch.common.readable import all_readable
from attention.op.known import Given, Serve
from attention.op.operands import Operands
from attention.op.plan import Plan
from attention.torch_private import torch_flash, torch_sdpa


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
class ByFunction:
    """Out by torch's function, which a kernel's operator by name takes the host 5 to 10 us longer than (H200).

    `asked`: what it takes behind query, key and value. None inside of attention.install()'s override, behind which
    another function stands.
    """

    form: Form
    asked: dict[str, Any]

    def __call__(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, where: Where, given: Given) -> Any:
        if within.own is not None:
            return None
        view = self.form.to_kernel
        out = self.form.out(torch_sdpa(view(query), view(key), view(value), **self.asked))
        return out if out.is_contiguous() else out.contiguous()


@dataclass(frozen=True, eq=False)
class ByFlash:
    """Out by the operator of torch's flash attention alone: the rest of a plan takes the host 20 to 60 us (H200).

    Of tensors that can be read where they lie, as kernels.torch.flash.alone.
    """

    form: Form
    causal: bool
    scale: float | None

    def __call__(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, where: Where, given: Given) -> Any:
        view = self.form.to_kernel
        tensors = view(query), view(key), view(value)
        return self.form.out(torch_flash(*tensors, 0.0, self.causal, False, scale=self.scale)[0])


def is_of_flash(plan: Plan) -> bool:
    """Whether the operator of torch's flash attention is all of a causal call."""
    problem = plan.problem
    return plan.run is flash.forward and problem.causal and flash.is_its_own(problem) and problem.head_dim % 8 == 0


def asked_of_function(plan: Plan) -> dict[str, Any] | None:
    """What torch's function is asked for where it has this problem, and picks this kernel of its own; else None."""
    problem = plan.problem
    has_it = problem.edges.open or (problem.causal and problem.window[0] < 0 and problem.seq_q == problem.seq_kv)
    plain = not (problem.varlen or problem.ranges or problem.alibi or problem.sinks or problem.softcap)
    if plan.forced or plan.fallback or not (has_it and plain) or problem.mask != "none":
        return None
    if needs_positive_scale(problem):
        return None
    scale = None if problem.scale == 1.0 / math.sqrt(problem.head_dim) else problem.scale
    return function_options(problem.causal, scale, problem.heads_q != problem.heads_kv)


def function_options(is_causal: bool, scale: float | None, enable_gqa: bool) -> dict[str, Any]:
    """What torch's function takes behind its tensors, but what it has by default: each further one costs it 0.1 us."""
    asked: dict[str, Any] = {"is_causal": True} if is_causal else {}
    asked |= {} if scale is None else {"scale": scale}
    return asked | ({"enable_gqa": True} if enable_gqa else {})


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
    late = server(replace(plan, run=plan.run.late, owner="torch", settles=False, forced=False))
    return None if early is None or late is None else WhileNew(early, late, plan.run.tally)


def read_in_place(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> bool:
    """Whether torch's kernels read the tensors of a call where they lie, and no copies."""
    read = all_readable(query, key, value)
    return query is read[0] and key is read[1] and value is read[2]
