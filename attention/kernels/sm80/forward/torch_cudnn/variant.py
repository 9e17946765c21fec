"""cuDNN's attention through torch on Ampere, Ada and consumer Blackwell: closed, on mma.sync."""

from attention.problem import AttentionProblem
from attention.torch_limits import torch_needs_positive_scale
from attention.variant import Variant
from microbench.arch import Arch

HEAD_DIM_MAX = 256
PLAN_SECONDS = 0.033  # for each shape, of the host (data/attention/h200-sxm-141gb-new-lengths.json)


def refuses(problem: AttentionProblem, arch: Arch) -> str | None:
    """The limits of cuDNN's forward and of what torch passes on to it."""
    if problem.dtype not in ("float16", "bfloat16"):
        return f"serves float16 and bfloat16, not {problem.dtype}"
    widest = max(problem.head_dim, problem.head_dim_v)
    if widest > HEAD_DIM_MAX or problem.head_dim % 8 or problem.head_dim_v % 8:
        return f"serves head dims that are multiples of 8 up to {HEAD_DIM_MAX}, not {widest}"
    return torch_needs_positive_scale(problem)


def notes(problem: AttentionProblem) -> tuple[str, ...]:
    """What a prediction of somebody else's kernel is worth."""
    return ("torch's dispatcher, not this choice, decides among torch's backends when the call runs",)


VARIANT = Variant(
    summary="torch: cuDNN attention on mma.sync",
    owner="torch",
    archs=("sm80", "sm86", "sm89", "sm120a"),
    refuses=refuses,
    first_seconds=PLAN_SECONDS,
    rank=2,
    notes=notes,
)
