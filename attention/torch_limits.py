"""What torch's fused kernels cannot compute right, whichever machine they run on. No torch here: variants read it."""

from attention.problem import AttentionProblem

MOST_MASKED = 1 << 26  # scores of one head: the mask that a band is written into is as large, 256 MB of float32


def torch_needs_positive_scale(problem: AttentionProblem) -> str | None:
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
