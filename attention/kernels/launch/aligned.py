"""A mask whose rows begin at whole 16 bytes: as the caller has it, or else a copy.

The sm90a forward brings them by TMA, which reads no others. Beside ranges, whose keys begin anywhere, lanes copy rows
by 16 bytes each; rows at whole 4 bytes come by 4, all others key by key through registers (MaskAhead of
features/mask.cuh): with rows of 6218 bools, one mask for all heads, head dim 88, causal and with ALiBi, that took
573 us on an H100, where the model, which counts on 16 bytes, says about 110. Masks of 197 or 257 keys, and of a batch
that is padded to its longest sequence, lie so.

A copy reads each element once, and what is the same for all heads or sequences stays one; the kernel reads it again for
each head and sequence. It is torch's, on the current stream, and gone after the launch: a graph that is captured holds
it, and the backward is given the caller's mask.
"""

import math
from functools import lru_cache, reduce
from operator import or_

import torch

from attention.call import Extras
from attention.kernels.common.layout import READ_BYTES

Sizes = tuple[int, ...]
WORD_BYTES = 4
WIDER = torch.int64, torch.int32, torch.int16


def aligned(extras: Extras) -> Extras:
    """The same tensors, with a mask (B, Hq, Sq, Skv) that is copied where it must or should be; without gradients."""
    mask: torch.Tensor | None = extras.mask
    if mask is None:
        return extras
    ranges = any(each is not None for each in (extras.seqused_q, extras.seqused_k, extras.leftpad_k))
    own = copied(mask.shape, mask.stride(), mask.element_size(), mask.data_ptr() % READ_BYTES, ranges)
    if own is None:
        return extras
    read = mask.detach()[tuple(map(slice, own))]
    unit = READ_BYTES // mask.element_size()
    *rows, keys = own
    held = read.new_empty((*rows, -(-keys // unit) * unit))[..., :keys]
    wide = copied_as(read.shape, read.stride(), mask.element_size(), mask.data_ptr() % READ_BYTES)
    if wide is None:
        held.copy_(read)
    else:
        held.view(wide).copy_(read.view(wide))
    return extras._replace(mask=held.expand(mask.shape))


@lru_cache(maxsize=4096)
def copied(sizes: Sizes, strides: Sizes, element_bytes: int, address: int, ranges: bool = False) -> Sizes | None:
    """What a copy holds of a mask, with 1 where one is read for all; None where it is read as it lies.

    A copy of its own for each head and sequence is read once: where lanes copy, beside `ranges`, it pays for keys that
    come one by one, not for words.
    """
    unit = _bytes_at_once(sizes, strides, element_bytes, address)
    *outer, keys = sizes
    own = (*(1 if stride == 0 else size for size, stride in zip(outer, strides, strict=False)), keys)
    is_read_once = 2 * math.prod(own) >= math.prod(sizes)
    if unit == READ_BYTES or (ranges and unit == WORD_BYTES and is_read_once) or 0 in sizes:
        return None
    return own


@lru_cache(maxsize=4096)
def copied_as(sizes: Sizes, strides: Sizes, element_bytes: int, address: int) -> torch.dtype | None:
    """Integers of the most bytes that rows are made of, where elements are smaller; torch copies them one by one.

    It views no others so, whatever the stride of a single one. 239 million bools of 15452 a row took an H100 about
    0.5 ms one by one.
    """
    places = address | element_bytes * reduce(or_, strides[:-1], sizes[-1])
    if strides[-1] != 1:
        return None
    return next((dtype for dtype in WIDER if dtype.itemsize > element_bytes and places % dtype.itemsize == 0), None)


def _bytes_at_once(sizes: Sizes, strides: Sizes, element_bytes: int, address: int) -> int:
    """As MaskAhead decides it for the head and sequence that lie worst: 16, 4, or 0 for key by key.

    It looks at the stride of rows even where there is one.
    """
    if strides[-1] != 1:
        return 0
    (batch, heads, _, keys), (of_batch, of_head, of_row, _) = sizes, strides
    steps = of_row | (of_head if heads > 1 else 0) | (of_batch if batch > 1 else 0)
    places = address | steps * element_bytes
    if places % READ_BYTES == 0:
        return READ_BYTES
    return WORD_BYTES if (places | keys * element_bytes) % WORD_BYTES == 0 else 0
