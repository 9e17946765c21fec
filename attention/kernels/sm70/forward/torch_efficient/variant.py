"""Torch's memory-efficient attention (xFormers, CUTLASS): every NVIDIA GPU, float32 as well, masks too."""

from attention.problem import AttentionProblem
from attention.torch_limits import torch_needs_positive_scale
from attention.variant import Variant
from microbench.arch import Arch


def refuses(problem: AttentionProblem, arch: Arch) -> str | None:
    """The limits in torch's sdp_utils."""
    if problem.dtype == "float64":
        return "serves float16, bfloat16 and float32, not float64"
    if problem.dtype == "bfloat16" and "bf16" not in arch.features:
        return f"{arch.name} has no bfloat16; cast query, key and value to float16"
    return torch_needs_positive_scale(problem)


def notes(problem: AttentionProblem) -> tuple[str, ...]:
    """What a prediction of somebody else's kernel is worth."""
    return ("torch's dispatcher, not this choice, decides among torch's backends when the call runs",)


VARIANT = Variant(
    summary="torch: memory-efficient attention",
    owner="torch",
    archs=("sm70", "sm75", "sm80", "sm86", "sm89", "sm90a", "sm100a", "sm103a", "sm120a"),
    refuses=refuses,
    features=frozenset({"bool mask", "float mask"}),
    rank=3,
    notes=notes,
)
