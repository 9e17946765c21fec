"""Who takes part: torch's kernels, FlashAttention-4, cuDNN itself, and our variants.

Each is asked to prepare one problem with its tensors: it says why it cannot, or gives a call without arguments that
returns out in the layout of the query (B, H, S, Dv). Whatever poses the problem, a cell or a campaign, asks so.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from typing import Any

from attention.call import Tensors
from attention.compare import cudnn_frontend, torchs
from attention.compare.torchs import ALIGNED, RANGES, VARLEN, WINDOW, refuse_others, refuse_top_left
from attention.compare.written import Written
from attention.errors import UnsupportedError
from attention.problem import AttentionProblem
from attention.variant import Config, Variant

Call = Callable[[], Any]
FLASH_4, FLASH_4_PACKAGE = "peer/flash_attn_4", "flash-attn-4"
TORCHS, MATH = "peer/torch_", "peer/torch_math"  # before the name of each of torch's; its way without a kernel


@dataclass(frozen=True)
class Candidate:
    """`name` as it stands in data; `prepare` raises UnsupportedError where it cannot take a problem."""

    name: str
    version: str
    prepare: Callable[[AttentionProblem, Tensors], Call]


def ours(variant: Variant, config: Config) -> Candidate:
    """One configuration of a variant of ours."""

    def prepare(problem: AttentionProblem, given: Tensors) -> Call:
        run = variant.load()
        return lambda: run(given.query, given.key, given.value, problem, config, given.extras)[0]

    return Candidate(variant.path, metadata.version("smscope") if _installed("smscope") else "", prepare)


def of_torch() -> tuple[Candidate, ...]:
    """The two of torch's kernels that its function chooses from on a GPU since Ampere."""
    torch = metadata.version("torch")
    return Candidate("peer/torch_flash", torch, torchs.flash), Candidate("peer/torch_cudnn", torch, torchs.cudnn)


def memory_efficient() -> Candidate:
    """Torch's memory-efficient kernel, its only fused one on a GPU before Ampere, and its first with a mask."""
    return Candidate("peer/torch_efficient", metadata.version("torch"), torchs.efficient)


def math() -> Candidate:
    """What torch does without a kernel of its own: a peer where nothing else of torch's serves."""
    return Candidate(MATH, metadata.version("torch"), torchs.math)


def missing() -> tuple[str, ...]:
    """The peers that are not installed here, by their names in the field."""
    optional = {"FlashAttention-4": FLASH_4_PACKAGE, "cuDNN's frontend": cudnn_frontend.PACKAGE}
    return tuple(name for name, package in optional.items() if not _installed(package))


def peers(flex: bool = True) -> tuple[Candidate, ...]:
    """Every peer that is installed here, but the memory-efficient one."""
    torch, found = metadata.version("torch"), list(of_torch())
    if flex:
        found.append(Candidate("peer/torch_flex", torch, torchs.flex))
    if _installed(FLASH_4_PACKAGE):
        found.append(Candidate(FLASH_4, metadata.version(FLASH_4_PACKAGE), _flash4))
    if _installed(cudnn_frontend.PACKAGE):
        found.append(Candidate("peer/cudnn_frontend", cudnn_frontend.version(), cudnn_frontend.prepare))
    return tuple(found)


def _flash4(problem: AttentionProblem, given: Tensors) -> Call:
    """By its function for one length, or by that for many: packed, or each with its own number of used keys."""
    from flash_attn.cute import flash_attn_func, flash_attn_varlen_func

    refuse_others("FlashAttention-4", problem, {"softcap", WINDOW, VARLEN, RANGES, ALIGNED})
    refuse_top_left("FlashAttention-4", problem)
    extras = given.extras
    if extras.leftpad_k is not None:
        raise UnsupportedError("FlashAttention-4 has no padding on the left")
    left, right = (None if edge < 0 else edge for edge in problem.window)
    window = (left, 0 if problem.causal and left is not None else right)
    q, k, v = (tensor.transpose(1, 2) for tensor in (given.query, given.key, given.value))
    asked: dict[str, Any] = {"causal": problem.causal and left is None, "window_size": window}
    asked["softmax_scale"] = problem.softmax_scale
    if problem.softcap:
        asked["softcap"] = problem.softcap
    function = flash_attn_func
    if problem.varlen:
        q, k, v = q[0], k[0], v[0]
        asked |= {"cu_seqlens_q": extras.cu_seqlens_q, "cu_seqlens_k": extras.cu_seqlens_k}
        asked |= {"max_seqlen_q": problem.seq_q, "max_seqlen_k": problem.seq_kv}
    if problem.ranges:
        asked |= {name: getattr(extras, name) for name in ("seqused_q", "seqused_k")}
    if problem.varlen or problem.ranges:
        function = flash_attn_varlen_func

    def read(found: Any) -> Any:
        out = found[0] if isinstance(found, tuple) else found
        return (out[None] if problem.varlen else out).transpose(1, 2)

    return Written(lambda: function(q, k, v, **asked), read=read)


def _installed(name: str) -> bool:
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True
