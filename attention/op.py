"""attention.sdpa and the torch operators behind it.

    smscope::attention_forward(query, key, value, ...) -> (out, lse)      chooses at run time: no graph holds a choice
    smscope::attention_backward(...) -> (dquery, dkey, dvalue)

A call that no tuned kernel can serve goes to torch's own function, with one FallbackWarning per distinct reason.
"""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch

from attention import gradient, timings
from attention.choose import choose
from attention.errors import FallbackWarning, UnsupportedError
from attention.inputs import Described, Triple, autocast, four_dimensions, require_tensors, validate
from attention.layout import empty_lse, empty_out
from attention.machine import machine_profile
from attention.problem import AttentionProblem
from attention.variant import Config, by_path

FORWARD = (
    "attention_forward(Tensor query, Tensor key, Tensor value, bool causal, float? scale, bool enable_gqa, "
    "str only, bool strict) -> (Tensor out, Tensor lse)"
)
BACKWARD = (
    "attention_backward(Tensor grad_out, Tensor grad_lse, Tensor query, Tensor key, Tensor value, Tensor out, "
    "Tensor lse, bool causal, float? scale) -> (Tensor, Tensor, Tensor)"
)
SERVED_DEVICES = ("cpu", "meta")
_announced: set[str] = set()


def sdpa(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    *,
    strict: bool = False,
    only: str | None = None,
) -> torch.Tensor:
    """`torch.nn.functional.scaled_dot_product_attention`, by the kernel that this machine's measurements choose.

    query (..., Hq, Sq, D), key (..., Hkv, Skv, D), value (..., Hkv, Skv, Dv) -> (..., Hq, Sq, Dv), top-left causal.
    strict: where no tuned kernel can serve, raise UnsupportedError instead of warning and calling torch.
    only: 'smscope' or 'torch' narrows the choice to kernels of that owner.
    Raises ProblemError for inputs that describe no attention problem.
    """
    require_tensors(query, key, value, attn_mask)
    query, key, value = autocast(query, key, value)
    if not torch.compiler.is_compiling():
        validate(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)
    reason = _unserved(query, key, value, attn_mask, dropout_p)
    if reason is not None:
        if strict or only == "smscope":
            raise UnsupportedError(f"{reason}; call without strict and only='smscope', and torch's own kernel serves.")
        _announce(reason)
        return torch.nn.functional.scaled_dot_product_attention(
            query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
        )
    q, k, v = four_dimensions(query, key, value, enable_gqa)
    out, _ = torch.ops.smscope.attention_forward(q, k, v, is_causal, scale, enable_gqa, only or "", strict)
    result: torch.Tensor = out if query.dim() == 4 else out.reshape(query.shape[:-1] + value.shape[-1:])
    return result


def _unserved(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, attn_mask: torch.Tensor | None, dropout_p: float
) -> str | None:
    """Why the operator cannot take this call at all: what it has no argument for, or no device."""
    if attn_mask is not None:
        return "No tuned kernel takes an attention mask"
    if dropout_p > 0:
        return "No tuned kernel has dropout"
    if query.is_nested or key.is_nested or value.is_nested:
        return "No tuned kernel takes nested tensors"
    if query.device.type not in SERVED_DEVICES:
        return f"No tuned kernel runs on {query.device.type} yet"
    if 0 in query.shape or 0 in key.shape or 0 in value.shape:
        return "No tuned kernel takes a tensor without elements"
    return None


def _warn_once(reason: str) -> bool:
    """Warn of a fallback, once per process and reason."""
    if reason not in _announced:
        warnings.warn(f"{reason}; torch's own kernel serves this call.", FallbackWarning, stacklevel=3)
        _announced.add(reason)
    return True


# In a compiled graph it runs while that is traced, and leaves nothing behind.
_announce: Callable[[str], bool] = torch.compiler.assume_constant_result(_warn_once)  # type: ignore[no-untyped-call]


@dataclass(frozen=True)
class Plan:
    """A choice made ready to run."""

    problem: AttentionProblem
    config: Config
    run: Callable[..., tuple[torch.Tensor, torch.Tensor]]
    fallback: str | None


@lru_cache(maxsize=4096)
def _plan(
    query: torch.Size,
    key: torch.Size,
    value: torch.Size,
    dtype: torch.dtype,
    causal: bool,
    scale: float | None,
    enable_gqa: bool,
    only: str,
) -> Plan:
    cpu = torch.device("cpu")
    tensors = (Described(shape, dtype, cpu) for shape in (query, key, value))
    problem = AttentionProblem.from_tensors(*tensors, causal=causal, scale=scale, enable_gqa=enable_gqa)
    profile = machine_profile("cpu").profile
    choice = choose(profile, problem, only=only or None, efficiencies=timings.of_machine(profile))
    return Plan(problem, choice.pick.config, by_path(choice.pick.variant).load(), choice.fallback)


def _forward(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    causal: bool,
    scale: float | None,
    enable_gqa: bool,
    only: str,
    strict: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    plan = _plan(query.shape, key.shape, value.shape, query.dtype, causal, scale, enable_gqa, only)
    if plan.fallback is not None:
        if strict:
            raise UnsupportedError(
                f"No tuned kernel serves {plan.problem}: {plan.fallback}; strict=False lets torch serve."
            )
        _announce(f"No tuned kernel serves this problem: {plan.fallback}")
    return plan.run(query, key, value, plan.problem, plan.config)


def _forward_fake(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *_: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    return empty_out(query, value.shape[-1]), empty_lse(query)


def _backward(
    grad_out: torch.Tensor,
    grad_lse: torch.Tensor,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    out: torch.Tensor,
    lse: torch.Tensor,
    causal: bool,
    scale: float | None,
) -> Triple:
    factor = 1.0 / math.sqrt(query.shape[-1]) if scale is None else scale
    with torch.autocast(query.device.type, enabled=False):
        return gradient.backward(grad_out, grad_lse, query, key, value, out, lse, causal, factor)


def _backward_fake(
    grad_out: torch.Tensor, grad_lse: torch.Tensor, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *_: Any
) -> Triple:
    return torch.empty_like(query), torch.empty_like(key), torch.empty_like(value)


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[torch.Tensor, torch.Tensor]) -> None:
    query, key, value, ctx.causal, ctx.scale, *_ = inputs
    ctx.save_for_backward(query, key, value, *output)


def _differentiate(ctx: Any, grad_out: torch.Tensor, grad_lse: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
    saved = ctx.saved_tensors
    grads = torch.ops.smscope.attention_backward(grad_out, grad_lse, *saved, ctx.causal, ctx.scale)
    return (*grads, None, None, None, None, None)


def _register() -> Any:
    """Define both operators: with `Library`, whose empty call costs 22 us in torch 2.11 where `custom_op` costs 50."""
    library: Any = torch.library
    ours = library.Library("smscope", "DEF")
    ours.define(FORWARD)
    ours.define(BACKWARD)
    ours.impl("attention_forward", _forward, "CPU")
    ours.impl("attention_backward", _backward, "CompositeExplicitAutograd")
    library.register_fake("smscope::attention_forward", _forward_fake, lib=ours)
    library.register_fake("smscope::attention_backward", _backward_fake, lib=ours)
    library.register_autograd("smscope::attention_forward", _differentiate, setup_context=_save, lib=ours)
    return ours


LIBRARY = _register()  # the operators live as long as this does
