"""Padding and static caches as ranges of keys: two or three numbers for each row of the batch, on the device.

A kernel that reads them (features/ranges.py) needs no dense mask: it skips padding on the left, ends where the used
keys end, and places the band by what is used. Where no kernel of ours does, the mask says the same.
"""

from dataclasses import dataclass

import torch

from attention.call import Call, Extras, Options
from attention.errors import UnsupportedError
from attention.frontends.route import trained
from attention.integrations.band_mask import KeyBand
from attention.judge.shapes import OPERATOR, facts_of
from attention.kernels.common.layout import lse_dtype
from attention.op import dispatch
from attention.op.plan import Plan, plan_of

Maybe = torch.Tensor | None


@dataclass(frozen=True)
class KeyRanges:
    """A band aligned bottom-right over what each sequence uses, as flash-attn has it: (B,) int32 on the device.

    Queries past seqused_q are padding: they give 0, where a mask would let them see what the last one sees.
    """

    band: KeyBand
    seqused_q: Maybe
    seqused_k: torch.Tensor
    leftpad_k: Maybe


def ranges_of(
    band: KeyBand, shift: int | torch.Tensor, keys: Maybe, batch: int, rows: int, columns: int, device: torch.device
) -> tuple[KeyRanges | None, torch.Tensor | None]:
    """The ranges of a band in which query i stands at key i + shift; and whether `keys` are such, a bool on the device.

    keys: (B, columns) bool, False is padding; None where there is none, and nothing to find out.
    None where no range says it: keys to the right of the diagonal whose number changes with their end.
    """
    tight = isinstance(shift, int) and shift == columns - rows
    if band.right not in (0, None) and not tight:
        return None, None
    aligned = band.left is not None or band.right is not None
    end = torch.full((batch,), columns, dtype=torch.int32, device=device)
    first, whole = None, None
    if keys is not None:
        some, counts = keys.any(1), keys.to(torch.uint8)
        first = counts.argmax(1).where(some, 0).to(torch.int32)
        end = (columns - counts.flip(1).argmax(1)).where(some, 0).to(torch.int32)
        whole = (end - first == keys.sum(1)).all()
    if band.right == 0 and not tight:  # what lies further right nobody sees
        end = end.minimum(torch.as_tensor(shift + rows, dtype=torch.int32, device=device))
    used = None
    if aligned and not (keys is None and (tight or band.right == 0)):
        used = (end - shift).clamp(0, rows).to(torch.int32)
    if aligned and band.right is None and not tight:
        return None, None  # of a window without causality the end is that of the keys, wherever the queries stand
    return KeyRanges(KeyBand(band.left, band.right, bottom_right=aligned), used, end, first), whole


def attend_ranges(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    ranges: KeyRanges,
    *,
    scale: float | None,
    softcap: float,
    sinks: Maybe,
) -> Maybe:
    """Out (B, Hq, Sq, Dv) by a kernel of ours that reads the ranges; None where none serves, and with gradients."""
    if query.device.type != "cuda" or trained(query, key, value):
        return None
    left, right = (-1 if edge is None else edge for edge in (ranges.band.left, ranges.band.right))
    options = Options(
        causal=right == 0,
        bottom_right=ranges.band.bottom_right,
        window_left=left,
        window_right=right,
        softcap=softcap,
        scale=scale,
    )
    extras = Extras(
        sinks=None if sinks is None else sinks.to(lse_dtype(query)),
        seqused_q=ranges.seqused_q,
        seqused_k=ranges.seqused_k,
        leftpad_k=ranges.leftpad_k,
    )
    plan = _plan(query, key, value, extras, options)
    if plan is None:
        return None
    out, _ = dispatch.forward(Call(query, key, value, extras, options), plan)
    return out


def _plan(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, extras: Extras, options: Options) -> Plan | None:
    given = tuple(None if each is None else facts_of(each) for each in extras)
    try:
        plan = plan_of(OPERATOR, facts_of(query), facts_of(key), facts_of(value), given, options, "")
    except UnsupportedError:
        return None
    return plan if plan.owner == "smscope" and plan.fallback is None else None
