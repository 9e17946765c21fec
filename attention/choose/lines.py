"""Lines of L2 that a row of K or V touches, cut into spans: what one box of TMA, or neighbouring threads, ask for.

Rows of heads side by side, or one below another, begin at multiples of their own bytes, so that all such places are as
likely. Spans of 128 bytes that begin at multiples of them touch no more than they hold. What a line costs is the
kernel's:

warpgroups  A rule, and no mechanism that was measured alone: rows that are no whole lines cost the L2 as if each
            touched line came whole. At head dim 72 they hold 1.1 lines and touch 2.9, at 112 1.75 and 3.25. An H100
            took 551 us by two warpgroups for 32 heads of 4096 rows at head dim 72, and 388 by three, which read K and V
            two thirds as often. Bytes alone, sectors, and lines of each of TMA's boxes are further from what was timed.
warps       cp.async of a warp takes a cycle of the SM's load unit for each line (coefficients: copied_lines).
"""

from functools import cache
from math import gcd
from statistics import fmean

from attention.choose.coefficients import BYTES, LINE


@cache
def lines_of(dim: int, span_bytes: int = LINE) -> float:
    """Of a row of so many numbers, on the average over its places."""
    row = BYTES * dim
    places = range(0, LINE, gcd(row, LINE))
    spans = [(begin, min(row, begin + span_bytes)) for begin in range(0, row, span_bytes)]
    return fmean(sum(-(-(place + end) // LINE) - (place + begin) // LINE for begin, end in spans) for place in places)
