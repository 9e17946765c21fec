"""Tensor copies: boxes of one to five dimensions, every swizzle, every type of element."""

import itertools
import math
from functools import partial
from typing import Any

import numpy as np

from microbench.emulator import Swizzle
from microbench.emulator.tensor_map import Element
from microbench.verify.differential.attention_case import bf16_bits
from microbench.verify.differential.case import Buffer, Case, Launch, Map

_NUMPY: dict[Element, Any] = {
    "u8": np.uint8,
    "u16": np.uint16,
    "u32": np.uint32,
    "f16": np.float16,
    "bf16": np.uint16,
    "f32": np.float32,
}
# Box and tensor by rank, outermost first, for elements of four bytes; the innermost sides are in 16-byte chunks.
_BOXES = {1: (8,), 2: (16, 8), 3: (2, 8, 8), 4: (2, 3, 4, 8), 5: (2, 2, 2, 4, 8)}
_TENSORS = {1: (24,), 2: (40, 16), 3: (5, 24, 16), 4: (3, 5, 12, 16), 5: (2, 3, 5, 8, 16)}


def copy_box(rank: int, element: Element, swizzle: Swizzle, seeds: range) -> list[Launch]:
    """Boxes that start anywhere, also outside of the tensor; the additions are of integers.

    Along the innermost dimension a box starts at a multiple of 16 bytes, and what is stored not before the tensor:
    elsewhere a Hopper GPU ends in cudaErrorIllegalInstruction (and the emulator says why).
    """
    dtype = np.dtype(_NUMPY[element])
    chunk = 16 // dtype.itemsize
    shape = (*_TENSORS[rank][:-1], _TENSORS[rank][-1] * chunk)
    box = (*_BOXES[rank][:-1], (swizzle // 16 if swizzle else _BOXES[rank][-1]) * chunk)
    one = bf16_bits(np.ones(1))[0] if element == "bf16" else 1
    maps = tuple(Map(i, box, element, swizzle) for i in range(3))
    made = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        sides = list(zip(shape, box, strict=True))
        loaded = [int(rng.integers(-(side // 2), n - side // 2 + 1)) for n, side in sides]
        stored = [int(rng.integers(0, n - side // 2 + 1)) for n, side in sides]
        loaded[-1], stored[-1] = (start[-1] // chunk * chunk for start in (loaded, stored))
        whole = rng.integers(1, 128, shape)
        source = bf16_bits(whole) if element == "bf16" else whole.astype(dtype)
        image = np.zeros(math.prod(box), dtype)
        arrays = (
            source,
            np.zeros_like(source),
            np.full_like(source, one),
            np.array([*loaded[::-1], *stored[::-1]], np.int32),
            image,
        )
        args: tuple[Buffer | Map | int | float, ...] = (*maps, Buffer(3), Buffer(4), image.nbytes // 4)
        made.append(Launch((1,), (32,), 32776, arrays, args, (1, 2, 4)))
    return made


def cases() -> list[Case]:
    """Every rank under every swizzle with f32; the other elements in two dimensions."""
    made = []
    spans: tuple[Swizzle, ...] = (0, 32, 64, 128)
    ends: tuple[Swizzle, ...] = (0, 128)
    f32: Element = "f32"
    ranks = [(rank, f32, span) for rank, span in itertools.product(range(1, 6), spans)]
    elements = [(2, element, span) for element in _NUMPY if element != f32 for span in ends]
    for rank, element, span in [*ranks, *elements]:
        # Additions of 8 and 16 bits are none of the instruction's.
        adds = element not in ("u8", "u16")
        name = "tensor_load, tensor_store" + (", tensor_add" if adds else "")
        defines, run = (("RANK", rank), ("ADDS", int(adds))), partial(copy_box, rank, element, span)
        made.append(Case(name, f"{rank}D {element} swizzle {span}", "integers", "copy_box", defines, run))
    return made
