"""What torch's fused kernels cannot compute right, whichever machine they run on."""

from attention.call import TENSORS
from attention.features import LOGITS
from attention.forwarded import Wanted
from attention.problem import AttentionProblem

MOST_MASKED = 1 << 26  # scores of one head: the mask that a band is written into is as large, 256 MB of float32
HEAD_DIM_MAX = 256


def needs_positive_scale(problem: AttentionProblem) -> str | None:
    """Why a scale is refused, without a full stop, or None.

    The scores of hidden keys become -inf before they are scaled: times 0 that is NaN, times less it is +inf (causal
    attention on the CPU, torch 2.13).
    """
    if problem.softmax_scale <= 0 and (not problem.edges.open or problem.mask != "none"):
        return f"needs a positive softmax scale where keys are hidden, not {problem.softmax_scale:g}"
    return None


def band_in_mask(problem: AttentionProblem) -> bool:
    """Whether torch's CPU kernel needs a band written into a mask: there is one, or is_causal cannot say the band."""
    if problem.edges.open:
        return False
    return bool(problem.mask != "none" or problem.alignment == "bottom_right" or problem.window != (-1, -1))


def one_head_dim(problem: AttentionProblem) -> str | None:
    if problem.head_dim != problem.head_dim_v:
        return f"needs one head dim for all, not {problem.head_dim} and {problem.head_dim_v}"
    return None


def half_precision(problem: AttentionProblem) -> str | None:
    if problem.dtype not in ("float16", "bfloat16"):
        return f"serves float16 and bfloat16, not {problem.dtype}"
    return None


def of_backward(problem: AttentionProblem) -> str | None:
    """Why neither of the fused backward kernels for a GPU serves a problem."""
    if reason := half_precision(problem) or one_head_dim(problem):
        return reason
    if problem.head_dim % 8 or problem.head_dim > HEAD_DIM_MAX:
        return f"serves head dims that are a multiple of 8 up to {HEAD_DIM_MAX}, not {problem.head_dim}"
    return positive_scale(problem)


def positive_scale(problem: AttentionProblem) -> str | None:
    """A backward recomputes weights as exp(scale Q K^T - lse), and wants it whether keys are hidden or not."""
    return None if problem.softmax_scale > 0 else f"needs a positive softmax scale, not {problem.softmax_scale:g}"


def of_call(wanted: Wanted) -> str | None:
    """Why no fused backward serves a call, whatever its problem."""
    if wanted.nothing_seen:
        return "needs a query and a key"
    if wanted.twice:
        return "has no second derivative"
    if wanted.lse:
        return "takes no gradient of lse"
    others = [name for name, want in zip(TENSORS, wanted.operands, strict=False) if want and name not in LOGITS]
    return f"gives no gradient of {others[0]}" if others else None


def whose_choice(problem: AttentionProblem) -> tuple[str, ...]:
    """What a prediction of somebody else's kernel is worth."""
    return ("torch's dispatcher, not this choice, decides among torch's backends when the call runs",)


def adds_in_one_order() -> bool:
    """Whether torch is told to be deterministic, and to fail where it cannot be."""
    import torch

    return torch.are_deterministic_algorithms_enabled() and not torch.is_deterministic_algorithms_warn_only_enabled()
