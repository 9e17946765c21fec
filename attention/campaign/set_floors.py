"""The set of floors: problems of which it is asked how our pick stands beside peers, by the point that asks.

A point is a part of what was set for the forward: head dims, head dims of values, ranges of keys, masks, small
problems. A masked problem stands behind the same without a mask, and skewed packing before the same tokens dealt
evenly: some floors are ratios of the two.
"""

from collections.abc import Mapping
from functools import cache
from typing import Literal, get_args

from attention.campaign.posed import Posed, parse

Point = Literal["head dims", "value dims", "packed", "ranges", "masks", "small"]
POINTS: tuple[Point, ...] = get_args(Point)

# class    B   Hq Hkv     Sq    Skv  D/Dv     dtype words
LINES: Mapping[Point, str] = {
    "head dims": """
prefill    4   51  51   4096   4096   40      bf16
prefill    4   51  51   4096   4096   40      bf16  causal
prefill    4   28  28   4096   4096   72      bf16
prefill    4   28  28   4096   4096   72      bf16  causal
prefill    4   25  25   4096   4096   80      bf16
prefill    4   25  25   4096   4096   80      bf16  causal
prefill    4   18  18   4096   4096  112      bf16
prefill    4   18  18   4096   4096  112      bf16  causal
prefill    4   12  12   4096   4096  160      bf16
prefill    4   12  12   4096   4096  160      bf16  causal
""",
    "value dims": """
prefill    4   10  10   4096   4096  192/128  bf16
prefill    4   10  10   4096   4096  192/128  bf16  causal
prefill    4   16  16   4096   4096   64/256  bf16
prefill    4   16  16   4096   4096   64/256  bf16  causal
prefill    4    8   8   4096   4096   64/512  bf16
prefill    4    8   8   4096   4096   64/512  bf16  causal
prefill    4   16  16   4096   4096  128/64   bf16
prefill    4   16  16   4096   4096  128/64   bf16  causal
""",
    # 139,008 tokens in 512 sequences.
    "packed": """
packed     0   16  16      0      0  128      bf16  lengths=511x256+8192
packed     0   16  16      0      0  128      bf16  lengths=256x271+256x272
packed     0   16  16      0      0  128      bf16  causal lengths=511x256+8192
packed     0   16  16      0      0  128      bf16  causal lengths=256x271+256x272
packed     0   32  32      0      0   64      bf16  lengths=511x256+8192
packed     0   32  32      0      0   64      bf16  lengths=256x271+256x272
packed     0   32  32      0      0   64      bf16  causal lengths=511x256+8192
packed     0   32  32      0      0   64      bf16  causal lengths=256x271+256x272
""",
    # A static cache: a step of decoding and a prompt's chunk. Prompts padded on the right. The first slot is checked.
    "ranges": """
decode    16   32   8      1   8192  128      bf16  used=4x6000+4x8192+4x3000+4x500
decode    16   32   8      1   8192   64      bf16  used=4x6000+4x8192+4x3000+4x500
features   4   32   8    512   8192  128      bf16  causal used=6000+8192+3000+1000
features   8   16  16   2048   2048  128      bf16  used=2x1800+2x2048+2x1300+2x700
""",
    "masks": """
prefill    4   16  16   4096   4096  128      bf16
features   4   16  16   4096   4096  128      bf16  mask
features   4   16  16   4096   4096  128      bf16  bias
features   4   16  16   4096   4096  128      bf16  bias=f32
prefill    4   32  32   4096   4096   64      bf16
features   4   32  32   4096   4096   64      bf16  mask
features   4   32  32   4096   4096   64      bf16  bias
features   4   32  32   4096   4096   64      bf16  bias=f32
""",
    # Cross attention stands both ways round: 77 words that ask 4096 places, and 4096 places that ask 77 words.
    "small": """
short     64   16  16    256    256   64      bf16
short     64   16  16    256    256   64      bf16  causal
short      8   16  16     77   4096   64      bf16
short      8   16  16   4096     77   64      bf16
prefill   16   32  32   1024   1024   64      bf16
prefill   16   32  32   1024   1024   64      bf16  causal
prefill   16   16  16   1024   1024  128      bf16
prefill   16   16  16   1024   1024  128      bf16  causal
prefill   16    8   8   1024   1024  256      bf16
prefill   16    8   8   1024   1024  256      bf16  causal
short    128   12  12    197    197   64      bf16
prefill    1    8   8   4096   4096   40      bf16
prefill    1    8   8   4096   4096   64      bf16
prefill    1    8   8   4096   4096  128      bf16
""",
}


@cache
def problems() -> tuple[Posed, ...]:
    """The set, in the order of its lines."""
    return tuple(problem for point in POINTS for problem in of_point(point))


def of_point(point: Point) -> tuple[Posed, ...]:
    """The problems of a point."""
    return tuple(parse(line) for line in LINES[point].strip().splitlines())


@cache
def points() -> Mapping[str, Point]:
    """The point of each problem, by its text."""
    return {str(problem): point for point in POINTS for problem in of_point(point)}
