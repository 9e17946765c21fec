"""The backward: correct on every device, from out and lse alone, in torch matmuls; slow beside a fused kernel.

    P = exp(scale Q K^T - lse)    dV = P^T dO    dP = dO V^T    D = rowsum(dO * out) - dlse
    dS = P * (dP - D)             dQ = scale dS K               dK = scale dS^T Q

Scores are recomputed for a block of query rows at a time, so that memory grows with the sequence, not with its square.
"""

import torch

BLOCK_SCORES = 1 << 22  # score elements of one block, over all heads


def backward(
    grad_out: torch.Tensor,
    grad_lse: torch.Tensor,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    out: torch.Tensor,
    lse: torch.Tensor,
    causal: bool,
    scale: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Gradients of (B, Hq, Sq, D), (B, Hkv, Skv, D) and (B, Hkv, Skv, Dv), laid out as `torch.empty_like` of each.

    Works in float32, or float64 for float64 inputs. Group heads share their key head: its gradients are summed.
    """
    working = torch.float64 if query.dtype == torch.float64 else torch.float32
    batch, heads, seq_q, dim = query.shape
    kv_heads, seq_kv = key.shape[1], key.shape[2]
    group = heads // kv_heads
    k, v = key.to(working), value.to(working)
    delta = (grad_out.to(working) * out.to(working)).sum(-1) - grad_lse.to(working)
    grad_q = torch.empty_like(query)
    grad_k, grad_v = torch.zeros_like(k), torch.zeros_like(v)
    rows = max(1, BLOCK_SCORES // (batch * heads * seq_kv))

    def grouped(tensor: torch.Tensor) -> torch.Tensor:
        """(B, Hq, rows, ...) -> (B, Hkv, group * rows, ...): the heads of a group become rows of their key head."""
        return tensor.to(working).reshape(batch, kv_heads, -1, *tensor.shape[3:])

    for start in range(0, seq_q, rows):
        block = slice(start, min(start + rows, seq_q))
        count = block.stop - block.start
        q, d_out = grouped(query[:, :, block]), grouped(grad_out[:, :, block])
        row_lse, row_delta = grouped(lse[:, :, block]), grouped(delta[:, :, block])
        scores = (q @ k.transpose(-1, -2)).mul_(scale)
        if causal:
            position = torch.arange(block.start, block.stop, device=query.device).repeat(group)
            hidden = torch.arange(seq_kv, device=query.device) > position[:, None]
            scores.masked_fill_(hidden, -torch.inf)
        # A row that saw nothing has lse = -inf; its weights are 0, not exp(-inf + inf).
        weights = (scores - row_lse.masked_fill(row_lse == -torch.inf, 0.0)[..., None]).exp_()
        grad_v += weights.transpose(-1, -2) @ d_out
        grad_scores = weights * (d_out @ v.transpose(-1, -2) - row_delta[..., None])
        grad_k += (grad_scores.transpose(-1, -2) @ q).mul_(scale)
        grad_q[:, :, block] = (grad_scores @ k).mul_(scale).reshape(batch, heads, count, dim).to(query.dtype)
    return grad_q, torch.empty_like(key).copy_(grad_k), torch.empty_like(value).copy_(grad_v)
