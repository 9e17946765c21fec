"""What rounding may do to attention's gradients: the bound of oracle.rounding, carried through the backward pass."""

import numpy as np
import torch

from attention.oracle.rounding import Rounded, gradients


def bounds(q, k, v, out_grad, *, scale=None, is_causal=False, enable_gqa=False):
    """How far a float32 out, and the gradients of q, k and v, may be from float64's, each of its tensor's shape."""
    group = q.shape[-3] // k.shape[-3] if enable_gqa else 1
    arrays = [each.detach().double().numpy() for each in (q, k, v)]
    arrays[1:] = (np.repeat(each, group, axis=-3) if group > 1 else each for each in arrays[1:])
    leading = np.broadcast_shapes(*(each.shape[:-2] for each in arrays))
    wide = [Rounded.exact(np.broadcast_to(each, (*leading, *each.shape[-2:]))) for each in arrays]
    seen = np.tri(q.shape[-2], k.shape[-2], dtype=bool) if is_causal else None
    scale = 1 / np.sqrt(q.shape[-1]) if scale is None else scale
    out, *found = gradients(*wide, Rounded.exact(out_grad.double().numpy()), scale=scale, seen=seen)
    found = [
        _gathered(wide_one, each.shape, group if place else 1)
        for place, (wide_one, each) in enumerate(zip(found, (q, k, v), strict=True))
    ]
    return [torch.from_numpy(each.error) for each in (out, *found)]


def close(query, key, **options):
    """How far two float32 computations on normal values of these shapes may be apart: twice the largest bound."""
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(shape, generator=generator) for shape in (query, key, key))
    out_grad = torch.ones(*query[:-1], key[-1])
    return {"rtol": 0, "atol": 2 * max(float(each.max()) for each in bounds(q, k, v, out_grad, **options))}


def _gathered(wide, shape, group):
    """Summed over the heads of a group, and over the axes that were stretched."""
    value, error = wide.value, wide.error
    if group > 1:
        split = (*value.shape[:-3], value.shape[-3] // group, group, *value.shape[-2:])
        summed = Rounded(value.reshape(split), error.reshape(split), wide.unit).sum(-3)
        wide = Rounded(summed.value.squeeze(-3), summed.error.squeeze(-3), wide.unit)
    extra = wide.value.ndim - len(shape)
    axes = (*range(extra), *(extra + i for i, n in enumerate(shape) if n == 1 and wide.value.shape[extra + i] > 1))
    if axes:
        wide = wide.sum(axes)
    return Rounded(wide.value.reshape(shape), wide.error.reshape(shape), wide.unit)
