"""Who takes part: FlashAttention-2 and cuDNN by torch, FlexAttention, FlashAttention-4, cuDNN itself, and our variants.

Each is asked to prepare one cell: it says why it cannot, or gives a call without arguments that returns out in the
layout of the query (B, H, S, D).
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from typing import Any

from attention.call import NO_EXTRAS, Extras
from attention.compare import cudnn_frontend
from attention.compare.cells import Cell, Tensors
from attention.errors import UnsupportedError
from attention.variant import Config, Variant

Call = Callable[[], Any]


@dataclass(frozen=True)
class Candidate:
    """`name` as it stands in data; `prepare` raises UnsupportedError where it cannot take a cell."""

    name: str
    version: str
    prepare: Callable[[Cell, Tensors], Call]


def ours(variant: Variant, config: Config) -> Candidate:
    """One configuration of a variant of ours."""

    def prepare(cell: Cell, given: Tensors) -> Call:
        run = variant.load()
        extras = Extras(cu_seqlens_q=given.starts, cu_seqlens_k=given.starts) if cell.lengths else NO_EXTRAS
        return lambda: run(given.query, given.key, given.value, cell.problem, config, extras)[0]

    return Candidate(variant.path, metadata.version("smscope") if _installed("smscope") else "", prepare)


def torchs() -> tuple[Candidate, ...]:
    """The two of torch's kernels that its function chooses from on a GPU since Ampere."""
    torch = metadata.version("torch")
    return Candidate("peer/torch_flash", torch, _flash2), Candidate("peer/torch_cudnn", torch, _cudnn)


def memory_efficient() -> Candidate:
    """Torch's memory-efficient kernel: on a GPU before Ampere the only fused one that its function has."""
    return Candidate("peer/torch_efficient", metadata.version("torch"), _efficient)


def missing() -> tuple[str, ...]:
    """The peers that are not installed here, by their names in the field."""
    optional = {"FlashAttention-4": "flash-attn-4", "cuDNN's frontend": cudnn_frontend.PACKAGE}
    return tuple(name for name, package in optional.items() if not _installed(package))


def peers(flex: bool = True) -> tuple[Candidate, ...]:
    """Every peer that is installed here."""
    torch, found = metadata.version("torch"), list(torchs())
    if flex:
        found.append(Candidate("peer/torch_flex", torch, _flex))
    if _installed("flash-attn-4"):
        found.append(Candidate("peer/flash_attn_4", metadata.version("flash-attn-4"), _flash4))
    if _installed(cudnn_frontend.PACKAGE):
        found.append(Candidate("peer/cudnn_frontend", cudnn_frontend.version(), cudnn_frontend.prepare))
    return tuple(found)


def _flash2(cell: Cell, given: Tensors) -> Call:
    """FlashAttention-2 as torch ships it: through its operator where SDPA has no argument for what is asked."""
    import torch

    problem = cell.problem
    left, right = problem.window
    if cell.plain:
        return _sdpa(cell, given, torch.nn.attention.SDPBackend.FLASH_ATTENTION)
    q, k, v = (tensor.transpose(1, 2) for tensor in (given.query, given.key, given.value))
    if cell.lengths:
        q, k, v = q[0], k[0], v[0]
    edges = {} if problem.window == (-1, -1) else {"window_size_left": left, "window_size_right": max(right, 0)}

    def call() -> Any:
        out = torch.ops.aten._flash_attention_forward(
            *(q, k, v, given.starts, given.starts, problem.seq_q, problem.seq_kv, 0.0, problem.causal, False),
            scale=problem.softmax_scale,
            **edges,
        )[0]
        return (out[None] if cell.lengths else out).transpose(1, 2)

    return call


def _cudnn(cell: Cell, given: Tensors) -> Call:
    import torch

    if not cell.plain:
        raise UnsupportedError("torch passes neither packed sequences nor windows on to cuDNN")
    return _sdpa(cell, given, torch.nn.attention.SDPBackend.CUDNN_ATTENTION)


def _efficient(cell: Cell, given: Tensors) -> Call:
    import torch

    if not cell.plain:
        raise UnsupportedError("torch's memory-efficient kernel is asked neither for packed sequences nor for windows")
    return _sdpa(cell, given, torch.nn.attention.SDPBackend.EFFICIENT_ATTENTION)


def _sdpa(cell: Cell, given: Tensors, backend: Any) -> Call:
    import torch

    from attention.torch_private import torch_sdpa

    gqa = cell.problem.heads_q != cell.problem.heads_kv

    def call() -> Any:
        with torch.nn.attention.sdpa_kernel(backend):
            return torch_sdpa(given.query, given.key, given.value, is_causal=cell.problem.causal, enable_gqa=gqa)

    return call


def _flex(cell: Cell, given: Tensors) -> Call:
    import torch
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    problem = cell.problem
    if cell.lengths:
        raise UnsupportedError("packed sequences are not set up for FlexAttention here")
    left = problem.window[0]

    def seen(batch: Any, head: Any, row: Any, column: Any) -> Any:
        inside = column <= row
        return inside & (column >= row - left) if left >= 0 else inside

    mask = create_block_mask(seen, None, None, problem.seq_q, problem.seq_kv) if problem.causal else None
    torch.compiler.reset()  # behind eight shapes of one function torch would run it uncompiled
    compiled = torch.compile(flex_attention, dynamic=False)
    gqa = problem.heads_q != problem.heads_kv
    return lambda: compiled(given.query, given.key, given.value, block_mask=mask, enable_gqa=gqa)


def _flash4(cell: Cell, given: Tensors) -> Call:
    from flash_attn.cute import flash_attn_func, flash_attn_varlen_func

    problem = cell.problem
    left, right = (None if edge < 0 else edge for edge in problem.window)
    window = (left, 0 if problem.causal and left is not None else right)
    q, k, v = (tensor.transpose(1, 2) for tensor in (given.query, given.key, given.value))
    causal = problem.causal and left is None

    def call() -> Any:
        if cell.lengths:
            out = flash_attn_varlen_func(
                *(q[0], k[0], v[0]),
                cu_seqlens_q=given.starts,
                cu_seqlens_k=given.starts,
                max_seqlen_q=problem.seq_q,
                max_seqlen_k=problem.seq_kv,
                causal=causal,
                window_size=window,
            )
            return (out[0] if isinstance(out, tuple) else out)[None].transpose(1, 2)
        out = flash_attn_func(q, k, v, causal=causal, window_size=window)
        return (out[0] if isinstance(out, tuple) else out).transpose(1, 2)

    return call


def _installed(name: str) -> bool:
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True
