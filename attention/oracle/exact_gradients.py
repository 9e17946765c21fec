"""Gradients in float64, written out, of the heads that a comparison looks at: those that the first key head serves."""

from typing import Any

from attention.problem import AttentionProblem


def checked(problem: AttentionProblem, gradients: tuple[Any, ...]) -> list[Any]:
    """Of the gradients of query, key and value, in the first sequence, the first key head and its query heads."""
    group = problem.heads_q // problem.heads_kv
    return [each[0, :heads].double().cpu().numpy() for each, heads in zip(gradients, (group, 1, 1), strict=True)]


def gradients(problem: AttentionProblem, query: Any, key: Any, value: Any, d_out: Any) -> list[Any]:
    """What `checked` should give, computed on the device of the tensors."""
    import torch

    k, v = (each[0, 0].double() for each in (key, value))
    d_k, d_v, d_q = torch.zeros_like(k), torch.zeros_like(v), []
    for head in range(problem.heads_q // problem.heads_kv):
        q, d_o = query[0, head].double(), d_out[0, head].double()
        scores = (q @ k.T).mul_(problem.softmax_scale)
        if problem.causal:
            scores.masked_fill_(torch.ones_like(scores, dtype=torch.bool).triu_(1), -torch.inf)
        weights = scores.softmax(-1)
        del scores
        d_v += weights.T @ d_o
        delta = ((weights @ v) * d_o).sum(-1, keepdim=True)
        d_scores = weights * (d_o @ v.T - delta) * problem.softmax_scale
        d_q.append(d_scores @ k)
        d_k += d_scores.T @ q
    return [each.cpu().numpy() for each in (torch.stack(d_q), d_k[None], d_v[None])]
