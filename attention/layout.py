"""Which strides results have. Kernels and fakes call the same function, so that compiled graphs never disagree."""

import torch


def empty_out(query: torch.Tensor, head_dim_v: int, dtype: torch.dtype | None = None) -> torch.Tensor:
    """An empty out (B, Hq, Sq, Dv), laid out in memory as a dense `query` of the same width is, else contiguous."""
    dtype = dtype or query.dtype
    if query.shape[-1] == head_dim_v:
        like = torch.empty_like(query, dtype=dtype)
        if like.stride(-1) == 1:
            return like
    return query.new_empty(*query.shape[:-1], head_dim_v, dtype=dtype)


def empty_lse(query: torch.Tensor) -> torch.Tensor:
    """An empty, contiguous lse (B, Hq, Sq): float32, or float64 for float64 inputs."""
    return query.new_empty(query.shape[:-1], dtype=torch.float64 if query.dtype == torch.float64 else torch.float32)
