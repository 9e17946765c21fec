"""What torch's fused kernels cannot compute right, whichever machine they run on. No torch here: variants read it."""

from attention.problem import AttentionProblem


def torch_needs_positive_scale(problem: AttentionProblem) -> str | None:
    """Why a scale is refused, without a full stop, or None.

    The scores of hidden keys become -inf before they are scaled: times 0 that is NaN, times less it is +inf (causal
    attention on the CPU, torch 2.13).
    """
    if problem.softmax_scale <= 0 and (not problem.edges.open or problem.mask != "none"):
        return f"needs a positive softmax scale where keys are hidden, not {problem.softmax_scale:g}"
    return None
