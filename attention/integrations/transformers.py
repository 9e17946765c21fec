"""The second door: `attn_implementation="smscope"` for the models of Transformers, 5.17 to the last 5.

    import attention.integrations.transformers as smscope

    smscope.register()
    model = AutoModelForCausalLM.from_pretrained(name, attn_implementation="smscope")

Windows, softcap, sinks, grouped heads and padding are served together, by one kernel; so are the models that
Transformers' own `sdpa` refuses for them (Gemma 2, GPT-OSS). Causality, windows, padding and static caches reach the
kernel as such; packed sequences as a dense mask of bools. On a GPU, queries that are padding on the right give 0.
Additive masks (T5's position bias) and dropout are torch's. What nobody serves is refused by a sentence: nothing is
dropped.
"""

import warnings
from dataclasses import replace
from typing import Any

import torch

from attention.errors import EnvironmentLacks, UnsupportedError
from attention.integrations.attend import attend
from attention.integrations.band_mask import BandMask, KeyBand
from attention.integrations.key_ranges import KeyRanges, attend_ranges, ranges_of

NAME = "smscope"
OLDEST = (5, 17)
BEFORE = (6, 0)
# What models hand over that changes attention and has no kernel here: which keys an indexer selected, a sink for each
# token (Inkling 2). Other names carry nothing that the mask and the tensors do not say.
REFUSED = ("indices", "block_indices", "sinks")
Maybe = torch.Tensor | None


def register() -> None:
    """Make attn_implementation="smscope" known to Transformers; a second call changes nothing.

    Raises EnvironmentLacks where Transformers is not installed, or is none of 5.17 to the last 5.
    """
    try:
        import transformers
    except ImportError as error:
        raise EnvironmentLacks(
            f"attn_implementation={NAME!r} needs Transformers, which is not installed here; "
            "`pip install transformers` adds it."
        ) from error
    first, second = (int(part) for part in transformers.__version__.split(".")[:2])
    if not OLDEST <= (first, second) < BEFORE:
        raise EnvironmentLacks(
            f"attn_implementation={NAME!r} needs Transformers 5.17 or a later 5, and this is "
            f"{transformers.__version__}; use attn_implementation='sdpa' with attention.install()."
        )
    from transformers.masking_utils import AttentionMaskInterface

    transformers.AttentionInterface.register(NAME, attention_forward)
    AttentionMaskInterface.register(NAME, attention_mask)


def attention_mask(
    batch_size: int,
    q_length: int,
    kv_length: int,
    q_offset: Any = 0,
    kv_offset: Any = 0,
    mask_function: Any = None,
    attention_mask: Maybe = None,
    local_size: int | None = None,
    allow_is_causal_skip: bool = True,
    allow_is_bidirectional_skip: bool = False,
    use_vmap: bool = False,
    device: Any = "cpu",
    **kwargs: Any,
) -> Maybe:
    """The mask of a model's layers, (B, 1, Sq, Skv): a BandMask where a band and padding say it all, else dense bools.

    None in a compiled graph where Transformers leaves causality to is_causal.
    """
    from transformers import masking_utils

    function = masking_utils.causal_mask_function if mask_function is None else mask_function
    whole = {
        "batch_size": batch_size,
        "q_length": q_length,
        "kv_length": kv_length,
        "q_offset": q_offset,
        "kv_offset": kv_offset,
        "mask_function": function,
        "attention_mask": attention_mask,
        "use_vmap": use_vmap,
        "device": device,
    }
    skips = (allow_is_causal_skip or allow_is_bidirectional_skip) and not use_vmap
    shift: Any = q_offset - kv_offset
    if torch.compiler.is_compiling() or torch._C._is_tracing():
        # A window would come back as None where it is longer than the keys, from which nobody could tell it again.
        skips = skips and local_size is None
        mask: Maybe = masking_utils.sdpa_mask(
            **whole,
            allow_is_causal_skip=skips and allow_is_causal_skip,
            allow_is_bidirectional_skip=skips and allow_is_bidirectional_skip,
        )
        return mask

    def dense() -> torch.Tensor:
        found: torch.Tensor = masking_utils.sdpa_mask(**whole, allow_is_causal_skip=False)
        return found

    edges = _edges(function) if skips and type(attention_mask) in (type(None), torch.Tensor) else None
    placed = isinstance(shift, int) and shift in (0, kv_length - q_length)
    where = torch.device(device)
    if edges is None or not (placed or where.type == "cuda"):
        return dense()
    keys = masking_utils.prepare_padding_mask(attention_mask, kv_length, kv_offset)
    keys = None if keys is None else keys[:, kv_offset : kv_offset + kv_length]
    keys, ranges = _used(edges, shift, keys, batch_size, q_length, kv_length, where)
    if placed:
        band = replace(edges, bottom_right=shift != 0)
        return BandMask(batch_size, q_length, kv_length, where, band, keys, ranges)
    if ranges is None:
        return dense()
    return BandMask(batch_size, q_length, kv_length, where, None, None, ranges, dense)


def _used(
    band: KeyBand, shift: Any, keys: Maybe, batch: int, rows: int, columns: int, device: torch.device
) -> tuple[Maybe, KeyRanges | None]:
    """Keys, None where none of them is padding; and the ranges that say the same as band and keys, where any do.

    The device is waited for once: as a model is captured into a graph nothing is read, and keys stay what they are.
    """
    captured = device.type == "cuda" and torch.cuda.is_current_stream_capturing()
    if keys is not None and captured:
        return keys, None
    ranges, whole = ranges_of(band, shift, keys, batch, rows, columns, device)
    if keys is None or (whole is None and bool(keys.all())):
        return None, ranges
    if whole is None:
        return keys, None
    none_hidden, is_range = torch.stack((keys.all(), whole)).tolist()
    return None if none_hidden else keys, ranges if is_range else None


def _edges(function: Any) -> KeyBand | None:
    """A mask function of Transformers as the edges of a band; None where it is another."""
    from transformers import masking_utils as theirs

    edges: dict[str, int | None] = {"left": None, "right": None}
    parts = _closed_over(function, "mask_functions") if _is(function, "and_masks") else (function,)
    for part in parts:
        if part is theirs.causal_mask_function:
            edges["right"] = 0
        elif _is(part, "sliding_window_overlay"):
            edges["left"] = _closed_over(part, "sliding_window") - 1
        elif _is(part, "sliding_window_bidirectional_overlay"):
            edges["left"] = edges["right"] = _closed_over(part, "sliding_window")
        elif part is not theirs.bidirectional_mask_function:
            return None
    return KeyBand(edges["left"], edges["right"])


def _is(function: Any, maker: str) -> bool:
    """Whether a function was made by that one of transformers.masking_utils."""
    module, name = getattr(function, "__module__", ""), getattr(function, "__qualname__", "")
    return module == "transformers.masking_utils" and name.startswith(f"{maker}.<locals>.")


def _closed_over(function: Any, name: str) -> Any:
    return function.__closure__[function.__code__.co_freevars.index(name)].cell_contents


def attention_forward(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: Maybe,
    dropout: float = 0.0,
    scaling: float | None = None,
    is_causal: bool | None = None,
    sliding_window: int | None = None,
    softcap: float | None = None,
    s_aux: Maybe = None,
    position_bias: Maybe = None,
    cache: Any = None,
    **kwargs: Any,
) -> tuple[torch.Tensor, None]:
    """Attention of query (B, Hq, Sq, D), key (B, Hkv, Skv, D) and value (B, Hkv, Skv, Dv): (out (B, Sq, Hq, Dv), None).

    attention_mask: as this module's attention_mask makes it; bools, or floats that are added. None hides nothing, but
    what is_causal (the module's, where it is None) and sliding_window do: both aligned top-left, as Transformers means.
    softcap, s_aux (Hq,): as AttentionProblem has softcap and sinks. position_bias: floats, added to the scores.
    Raises UnsupportedError for what no kernel serves together, and for selected keys and paged caches.
    """
    _refuse(cache, kwargs)
    scale = scaling.item() if isinstance(scaling, torch.Tensor) else scaling
    band, mask = KeyBand(), attention_mask
    if mask is None:
        causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
        band = _unmasked(query.shape[2] > 1 and causal, sliding_window)
    elif isinstance(mask, BandMask):
        needed = mask.keys is not None or mask.band is None  # a band alone may be torch's as well
        if mask.ranges is not None and needed and position_bias is None and not dropout:
            ranged = attend_ranges(query, key, value, mask.ranges, scale=scale, softcap=softcap or 0.0, sinks=s_aux)
            if ranged is not None:
                return ranged.transpose(1, 2).contiguous(), None
        if mask.band is None:
            mask = mask.dense()
        else:
            band, mask = mask.band, None if mask.keys is None else mask.keys[:, None, None, :]
    if kwargs.get("cu_seq_lens_q") is not None and mask is None:  # a mask holds what position_ids said of sequences
        mask = _sequences(query, key, kwargs["cu_seq_lens_q"])
    out = attend(
        *(query, key, value, mask, band),
        scale=scale,
        softcap=softcap or 0.0,
        sinks=s_aux,
        bias=position_bias,
        dropout_p=dropout,
    )
    return out.transpose(1, 2).contiguous(), None


def _unmasked(causal: bool, sliding_window: int | None) -> KeyBand:
    """The band that hides keys where there is no mask; a window is as long as Transformers' flash path has it."""
    left = None if sliding_window is None else sliding_window - 1
    return KeyBand(left, 0 if causal else left)


def _sequences(query: torch.Tensor, key: torch.Tensor, starts: torch.Tensor) -> torch.Tensor:
    """Which queries and keys of a packed row lie in the same sequence: bools (1, 1, S, S)."""
    rows, columns = query.shape[2], key.shape[2]
    if query.shape[0] != 1 or rows != columns:
        raise UnsupportedError(
            f"cu_seq_lens_q comes with {query.shape[0]} rows of {rows} queries and {columns} keys; "
            f"attn_implementation={NAME!r} needs one packed row with as many queries as keys."
        )
    at = torch.bucketize(torch.arange(rows, device=query.device), starts.to(query.device), right=True)
    return (at[:, None] == at)[None, None]


def _refuse(cache: Any, others: dict[str, Any]) -> None:
    """Raise UnsupportedError for what would be dropped; warn of weights that nobody gets."""
    if type(cache).__name__ == "PagedAttentionCache":
        raise UnsupportedError(
            f"attn_implementation={NAME!r} has no kernel for the paged cache of continuous batching; use 'sdpa' there."
        )
    for name in REFUSED:
        if others.get(name) is not None:
            raise UnsupportedError(
                f"The model passes {name!r} to its attention, and attn_implementation={NAME!r} would drop it; "
                "use 'eager'."
            )
    if others.get("output_attentions"):
        warnings.warn(
            f"attn_implementation={NAME!r} never computes attention weights and returns None for them; use 'eager'.",
            stacklevel=3,
        )
