"""How tensors lie in memory: the strides of results, alike for kernels and fakes, and rows that can be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

READ_BYTES = 16  # at once, by our kernels and by torch's
_WITHIN = READ_BYTES - 1
Where = tuple[int, int, int]


def addresses(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> Where | None:
    """Where they lie; None unless all can be read there, which what has no memory of its own cannot."""
    where = q, k, v = query.data_ptr(), key.data_ptr(), value.data_ptr()
    return None if (q | k | v) & _WITHIN or not (q and k and v) else where


def padded_rows(tensor: torch.Tensor) -> torch.Tensor:
    """A copy whose last dimension is filled up with zeros to whole 16 bytes.

    torch.nn.functional.pad keeps the order of strides, in which rows may not be contiguous.
    """
    width, unit = tensor.shape[-1], READ_BYTES // tensor.element_size()
    padded = tensor.new_zeros((*tensor.shape[:-1], -(-width // unit) * unit))
    padded[..., :width] = tensor
    return padded


def empty_out(query: torch.Tensor, head_dim_v: int, dtype: torch.dtype | None = None) -> torch.Tensor:
    """An empty out (B, Hq, Sq, Dv), laid out in memory as a dense `query` of the same width is, else contiguous.

    A query whose heads lie inside a row, (B, S, H, D) in memory, has an out of the same kind whatever its width is.
    """
    import torch

    if query.shape[-1] == head_dim_v:
        like = torch.empty_like(query, dtype=dtype)
        if like.stride(-1) == 1:
            return like
    batch, heads, rows, _ = query.shape
    if heads > 1 and rows > 1 and query.stride(-1) == 1 and query.stride(1) < query.stride(2):
        return query.new_empty(batch, rows, heads, head_dim_v, dtype=dtype).transpose(1, 2)
    return query.new_empty(batch, heads, rows, head_dim_v, dtype=dtype)


def empty_lse(query: torch.Tensor) -> torch.Tensor:
    """An empty, contiguous lse (B, Hq, Sq): float32, or float64 for float64 inputs."""
    return query.new_empty(query.shape[:-1], dtype=lse_dtype(query))


def empty_on_host(size: tuple[int, ...], strides: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """An empty tensor of a size and strides in elements, where a stand-in for a GPU has its memory."""
    import torch

    return torch.empty_strided(size, strides, dtype=dtype)


def lse_dtype(query: torch.Tensor) -> torch.dtype:
    """What lse, slopes and sinks are in, and what the slow path computes in."""
    import torch

    return torch.float64 if query.dtype == torch.float64 else torch.float32
