"""A mask, a window, softcap, sinks and grouped heads in one call, for adapters of other people's interfaces."""

import torch

from attention.call import Call, Extras, Options
from attention.errors import UnsupportedError
from attention.frontends.route import trained, unserved
from attention.frontends.sdpa import sdpa
from attention.integrations.band_mask import KeyBand, written
from attention.kernels.common.layout import lse_dtype
from attention.kernels.torch.common import own
from attention.op import dispatch
from attention.op.plan import warn_once

Maybe = torch.Tensor | None
NO_BAND = KeyBand()
FIRST_KEYS = KeyBand(right=0)  # causal from the top left, as torch's is_causal


def attend(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: Maybe,
    band: KeyBand,
    *,
    scale: float | None = None,
    softcap: float = 0.0,
    sinks: Maybe = None,
    bias: Maybe = None,
    dropout_p: float = 0.0,
) -> torch.Tensor:
    """Out (B, Hq, Sq, Dv) of query (B, Hq, Sq, D), key (B, Hkv, Skv, D) and value (B, Hkv, Skv, Dv).

    mask: broadcasts to (B, Hq, Sq, Skv); bools, True may be seen, or floats, which are added. bias: likewise, floats.
    A key is seen where mask and band both let it through. softcap: 0.0 is none. sinks: (Hq,), in any float dtype.
    Floats, dropout and devices without a kernel of ours are torch's, with one FallbackWarning for each reason. Raises
    UnsupportedError where torch would have to drop softcap or sinks; ProblemError for inputs that do not fit.
    """
    if bias is not None:
        mask, band = _added(bias, mask, band, query, key), NO_BAND
    elif band != NO_BAND and query.shape[2] == 1:
        key, value, mask = _seen_by_one(band, key, value, mask)
        band = NO_BAND
    floats = mask is not None and mask.is_floating_point()
    lacks = unserved(query.device.type, dropout_p)
    if softcap or sinks is not None:
        if lacks is not None:
            named = "softcap" if softcap else "attention sinks"
            raise UnsupportedError(
                f"{lacks}, and torch has no {named}; use attn_implementation='eager' for this model."
            )
    elif lacks is not None or floats:
        warn_once(lacks or "No tuned kernel takes a float mask")
        return _by_torch(query, key, value, mask, band, scale, dropout_p)
    elif band == NO_BAND or (band == FIRST_KEYS and mask is None):
        return sdpa(query, key, value, mask, 0.0, band == FIRST_KEYS, scale, enable_gqa=True)
    elif _has_the_slow_path_alone(query, key, value, mask):
        return _by_torch(query, key, value, mask, band, scale, dropout_p)
    left, right = (-1 if edge is None else edge for edge in (band.left, band.right))
    sinks = None if sinks is None else sinks.to(lse_dtype(query))
    options = Options(
        causal=right == 0,
        bottom_right=band.bottom_right,
        window_left=left,
        window_right=right,
        softcap=softcap,
        scale=scale,
    )
    out, _ = dispatch.forward(Call(query, key, value, Extras(mask=mask, sinks=sinks), options))
    return out


def _has_the_slow_path_alone(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: Maybe) -> bool:
    """True where our operator has no kernel for this call or its gradients, and torch does, with the band in a mask."""
    with_grad = trained(query, key, value)
    return (with_grad or mask is not None) if query.device.type == "cpu" else (with_grad and mask is not None)


def _seen_by_one(
    band: KeyBand, key: torch.Tensor, value: torch.Tensor, mask: Maybe
) -> tuple[torch.Tensor, torch.Tensor, Maybe]:
    """The keys that a single query sees: a view, so that decoding is attention without a band."""
    at = key.shape[2] - 1 if band.bottom_right else 0
    start = 0 if band.left is None else max(0, at - band.left)
    stop = key.shape[2] if band.right is None else min(key.shape[2], at + band.right + 1)
    if mask is not None and mask.shape[-1] > 1:
        mask = mask[..., start:stop]
    return key[:, :, start:stop], value[:, :, start:stop], mask


def _added(bias: torch.Tensor, mask: Maybe, band: KeyBand, query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
    """Bias and what is hidden as one float mask; the lowest number hides, so that no row of -inf alone can be."""
    if mask is not None and mask.is_floating_point():
        bias, mask = bias + mask, None
    seen = _seen(mask, band, query, key)
    bias = bias.to(query.dtype)
    return bias if seen is None else torch.where(seen, bias, torch.finfo(bias.dtype).min)


def _seen(mask: Maybe, band: KeyBand, query: torch.Tensor, key: torch.Tensor) -> Maybe:
    if band == NO_BAND:
        return mask
    inside = written(band, None, 1, query.shape[2], key.shape[2], query.device)
    return inside if mask is None else mask & inside


def _by_torch(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: Maybe,
    band: KeyBand,
    scale: float | None,
    p: float,
) -> torch.Tensor:
    causal = band == FIRST_KEYS and mask is None
    if mask is not None and mask.is_floating_point():
        mask = _added(mask, None, band, query, key)
    elif not causal:
        mask = _seen(mask, band, query, key)
    groups = query.shape[1] // key.shape[1]
    if groups > 1 and mask is not None:  # with grouped heads and a mask, torch on CUDA has its math kernel only
        key, value = (tensor.repeat_interleave(groups, dim=1) for tensor in (key, value))
    return own.scaled_dot_product_attention(query, key, value, mask, p, causal, scale, mask is None)
