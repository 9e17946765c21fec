"""wgmma: both operands in shared memory or a in registers, every swizzle, both majors, eight widths."""

import itertools
from functools import partial

import numpy as np

from microbench.verify.differential import layouts
from microbench.verify.differential.case import Buffer, Case, Defines, Launch, Values
from microbench.verify.differential.operands import NUMBERS, answers, bits, fragments, operands, product

WIDTHS = (8, 16, 32, 64, 96, 128, 192, 256)


def wgmma(
    kind: str, columns: int, a_major: str, b_major: str, swizzle: int, values: Values, seeds: range
) -> list[Launch]:
    """One wgmma, its matrices laid out in shared memory as the descriptors say."""
    a, b, c = operands(values, seeds, kind, (64, 16), (16, columns), (64, columns), True)
    a_image, *a_strides = layouts.image_of(bits(a, kind), a_major == "MN", swizzle)
    b_image, *b_strides = layouts.image_of(bits(b.swapaxes(1, 2), kind), b_major == "MN", swizzle)
    (ra, ka), (rd, cd) = layouts.wgmma_a(), layouts.wgmma_accumulator(columns)
    arrays = a_image, b_image, fragments(a[:, ra, ka], kind), np.ascontiguousarray(c[:, rd, cd])
    args = (
        *(Buffer(0), a_image.shape[1], *a_strides),
        *(Buffer(1), b_image.shape[1], *b_strides),
        *(swizzle, Buffer(2), Buffer(3)),
    )
    exact = product(values, a, b, c)
    expected = answers(None if exact is None else exact[:, rd, cd])
    return [Launch((len(seeds),), (128,), 65536, arrays, args, (3,), expected)]


def cases() -> list[Case]:
    """Every layout that the descriptors can say."""
    made = []
    shapes = itertools.product(("ss", "rs"), ("f16", "bf16"), WIDTHS, (0, 32, 64, 128))
    for source, kind, n, span in shapes:
        for a, b in itertools.product(("K", "MN") if source == "ss" else ("K",), ("K", "MN")):
            if b == "MN" and span and n % (span // 2):
                continue  # an MN-major tile is made of whole spans
            name = f"wgmma_{kind}_{source}"
            of_a = ("A_MAJOR", a) if source == "ss" else ("FROM_REGISTERS", 1)
            defines: Defines = ("COLUMNS", n), ("WGMMA", name), of_a, ("B_MAJOR", b)
            layout = f"n{n} {a if source == 'ss' else 'registers'}.{b} swizzle {span}"
            for values, off in NUMBERS:
                run = partial(wgmma, kind, n, a, b, span, values)
                made.append(Case(name, layout, values, "wgmma", defines, run, off))
    return made
