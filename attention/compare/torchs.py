"""Torch's kernels, each asked for a problem alone: what torch's function has no argument for goes into a mask.

That is how its callers have to say it: causality from the bottom right beside a cache, and how many keys each sequence
uses. FlashAttention-2 is asked by the operator below the function for these, which takes no mask. Masks are made once,
when a call is prepared, and as small as they broadcast.
"""

from collections.abc import Callable, Collection
from typing import Any

from attention.call import Tensors
from attention.compare.written import Written
from attention.errors import UnsupportedError
from attention.problem import AttentionProblem

Call = Callable[[], Any]
# Words of problems (attention.problem.WORDS).
ALIGNED, WINDOW, VARLEN, RANGES = "bottom-right causality", "sliding window", "variable lengths", "ranges of rows"
MASKS = ("bool mask", "float mask")


def refuse_others(who: str, problem: AttentionProblem, serves: Collection[str]) -> None:
    """Raise UnsupportedError for what `who` does not compute, or not as the problem has it."""
    lacks = [word for word in problem.features if word not in serves]
    if lacks:
        raise UnsupportedError(f"{who} has no {', no '.join(lacks)}")


def refuse_top_left(who: str, problem: AttentionProblem) -> None:
    """Raise UnsupportedError for a band of a rectangle that begins top-left, where `who` has it end bottom-right."""
    if not problem.edges.open and problem.alignment == "top_left" and problem.seq_q != problem.seq_kv:
        raise UnsupportedError(f"{who} aligns causality bottom-right")


def flash(problem: AttentionProblem, given: Tensors) -> Call:
    """FlashAttention-2 as torch ships it: through its operator where SDPA has no argument for what is asked."""
    import torch

    refuse_others("torch's FlashAttention-2", problem, {ALIGNED, WINDOW, VARLEN, RANGES})
    if not problem.features:
        return sdpa(problem, given, torch.nn.attention.SDPBackend.FLASH_ATTENTION)
    refuse_top_left("torch's operator of FlashAttention-2", problem)
    extras, (left, right) = given.extras, problem.window
    q, k, v = (tensor.transpose(1, 2) for tensor in (given.query, given.key, given.value))
    shape = (*q.shape[:-1], v.shape[-1])
    asked: dict[str, Any] = {"scale": problem.softmax_scale}
    if problem.window != (-1, -1):
        asked |= {"window_size_left": left, "window_size_right": 0 if problem.causal else right}
    starts_q, starts_k = extras.cu_seqlens_q, extras.cu_seqlens_k
    if problem.ranges:
        if problem.varlen or extras.seqused_q is not None or extras.leftpad_k is not None:
            raise UnsupportedError("torch's operator of FlashAttention-2 is told how many keys a slot holds, no more")
        asked["seqused_k"] = extras.seqused_k
        starts_q, starts_k = (
            torch.arange(problem.batch + 1, device=q.device, dtype=torch.int32) * rows
            for rows in (problem.seq_q, problem.seq_kv)
        )
    if problem.varlen or problem.ranges:
        q, k, v = (tensor.flatten(0, 1) for tensor in (q, k, v))

    def plain() -> Any:
        return torch.ops.aten._flash_attention_forward(
            *(q, k, v, starts_q, starts_k, problem.seq_q, problem.seq_kv, 0.0, problem.causal, False), **asked
        )[0]

    return Written(plain, read=lambda out: out.reshape(shape).transpose(1, 2))


def cudnn(problem: AttentionProblem, given: Tensors) -> Call:
    import torch

    if problem.window != (-1, -1) or problem.varlen:
        raise UnsupportedError("torch passes neither packed sequences nor windows on to cuDNN")
    refuse_others("torch's function", problem, {ALIGNED, RANGES, *MASKS})
    return sdpa(problem, given, torch.nn.attention.SDPBackend.CUDNN_ATTENTION)


def efficient(problem: AttentionProblem, given: Tensors) -> Call:
    import torch

    if problem.window != (-1, -1) or problem.varlen:
        raise UnsupportedError("torch's memory-efficient kernel is asked neither for packed sequences nor for windows")
    refuse_others("torch's function", problem, {ALIGNED, RANGES, *MASKS})
    return sdpa(problem, given, torch.nn.attention.SDPBackend.EFFICIENT_ATTENTION)


def math(problem: AttentionProblem, given: Tensors) -> Call:
    """What torch computes piece by piece where none of its kernels serves."""
    import torch

    if problem.window != (-1, -1) or problem.varlen:
        raise UnsupportedError("torch's function has neither packed sequences nor windows")
    refuse_others("torch's function", problem, {ALIGNED, RANGES, *MASKS})
    return sdpa(problem, given, torch.nn.attention.SDPBackend.MATH)


def sdpa(problem: AttentionProblem, given: Tensors, backend: Any) -> Call:
    """Torch's function with one backend, and a mask where it has no other word for the problem."""
    import torch

    from attention.torch_private import torch_sdpa

    mask = mask_of(problem, given)
    causal = problem.causal and not _in_mask(problem)
    gqa = problem.heads_q != problem.heads_kv
    query, key, value, scale = given.query, given.key, given.value, problem.softmax_scale

    def plain() -> Any:
        return torch_sdpa(query, key, value, mask, is_causal=causal, scale=scale, enable_gqa=gqa)

    return Written(plain, lambda: torch.nn.attention.sdpa_kernel(backend))


def mask_of(problem: AttentionProblem, given: Tensors) -> Any:
    """What torch's function is given as attn_mask, (B or 1, Hq or 1, Sq or 1, Skv); None where nothing is."""
    import torch

    mask = None if given.extras.mask is None else as_small(given.extras.mask)
    if not _in_mask(problem):
        return mask
    device, extras = given.query.device, given.extras
    row, key = torch.arange(problem.seq_q, device=device)[:, None], torch.arange(problem.seq_kv, device=device)
    first, end, queries = (
        otherwise if tensor is None else tensor.view(-1, 1, 1, 1)
        for tensor, otherwise in (
            (extras.leftpad_k, 0),
            (extras.seqused_k, problem.seq_kv),
            (extras.seqused_q, problem.seq_q),
        )
    )
    seen = (key >= first) & (key < end)
    if extras.seqused_q is not None:
        seen = seen & (row < queries)
    if problem.causal:
        shift = end - first - queries if problem.alignment == "bottom_right" else 0
        seen = seen & (key - first <= row + shift)
    seen = seen[(None,) * (4 - seen.dim())]
    if mask is None:
        return seen
    return mask & seen if mask.dtype == torch.bool else mask.masked_fill(~seen, -torch.inf)


def flex(problem: AttentionProblem, given: Tensors) -> Call:
    import torch
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    if problem.varlen:
        raise UnsupportedError("packed sequences are not set up for FlexAttention here")
    refuse_others("FlexAttention, as it is set up here,", problem, {WINDOW})
    left = problem.window[0]

    def seen(batch: Any, head: Any, row: Any, column: Any) -> Any:
        inside = column <= row
        return inside & (column >= row - left) if left >= 0 else inside

    mask = create_block_mask(seen, None, None, problem.seq_q, problem.seq_kv) if problem.causal else None
    torch.compiler.reset()  # behind eight shapes of one function torch would run it uncompiled
    compiled = torch.compile(flex_attention, dynamic=False)
    gqa = problem.heads_q != problem.heads_kv
    return lambda: compiled(given.query, given.key, given.value, block_mask=mask, enable_gqa=gqa)


def _in_mask(problem: AttentionProblem) -> bool:
    """Whether is_causal does not say what is asked: torch takes no mask beside it, and has it begin top-left."""
    masked = problem.mask != "none"
    return bool(problem.ranges or (problem.causal and (masked or problem.alignment == "bottom_right")))


def as_small(mask: Any) -> Any:
    """Without the axes along which it is the same memory again."""
    return mask[tuple(slice(0, 1) if stride == 0 else slice(None) for stride in mask.stride())]
