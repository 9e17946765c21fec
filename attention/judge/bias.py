"""A CausalBias of torch.nn.attention.bias, which stands for causality where torch's own function takes a mask."""

from typing import Any

from attention.errors import ProblemError

Shape = tuple[int, ...]
MASK_AND_CAUSAL = "attn_mask and is_causal=True exclude each other; put the triangle into the mask."


def is_causal_bias(mask: Any) -> bool:
    """Whether a mask is a CausalBias of torch.nn.attention.bias: a tensor subclass that holds no mask, but says one.

    Told by name, because importing that module imports the compiler, several seconds.
    """
    kind = type(mask)
    return kind.__name__ == "CausalBias" and kind.__module__ == "torch.nn.attention.bias"


def aligned_bottom_right(bias: Any, query: Shape, key: Shape) -> bool:
    """Whether a CausalBias lets the last query see the last key; else query 0 sees key 0. Raises ProblemError."""
    lengths = (*query[-2:-1], *key[-2:-1])
    if len(lengths) == 2 and (bias.seq_len_q, bias.seq_len_kv) != lengths:
        raise ProblemError(
            f"attn_mask is causal for {bias.seq_len_q} queries and {bias.seq_len_kv} keys, and there are "
            f"{lengths[0]} and {lengths[1]}; make it for these."
        )
    return bool(bias.variant.name == "LOWER_RIGHT") and bias.seq_len_q != bias.seq_len_kv
