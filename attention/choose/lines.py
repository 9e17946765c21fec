"""What a row of K or V asks of a load unit and of the L2, cut into the spans that are asked for one by one.

A span is what one box of TMA has of a row, or neighbouring threads of cp.async. Rows of heads side by side, or one
below another, begin at multiples of their own bytes, so that all such places are as likely. Where heads are even in
number all rows of a head begin inside of sectors, or none, and kernels let spans begin with a sector (`leads`,
kernels/common/lead.cuh).

lines_of    lines that spans touch: cp.async of a warp takes a cycle of the SM's load unit for each (coefficients)
shared_of   sectors that spans touch beside what their bytes fill: two that share one have it sent twice. Rows of 232
            numbers took an H200's cp.async 26 to 30 % longer where every other one begins inside of a sector than where
            they lie 480 bytes apart, and 13 to 14 % at 72, 88 and 152 (software_pipelined)
granules_of granules of DRAM that a row touches: where heads lie side by side, one that two of them share is read again
            if the L2 has lost it meanwhile
inside_of   of rows those that begin inside of a line, in which another head's row ends
slots_of    what spans take of the L2, whose slices give 64 bytes a clock (Nsight Compute on an H200, l2_bandwidth.py)
            of one request: a span takes 64 bytes for each half of a line that it touches. A rule, and no mechanism that
            was measured alone: where a row begins inside of a sector, each sector that a span touches takes as much.
            So counted an H100's L2 gave warpgroups at most 0.98 of its bandwidth, and 0.8 to 0.98 where narrow boxes
            keep it busy (head dims 72, 80, 144, 168, 176, 208). By whole lines it would have given 1.19 of it at 80,
            and no more than 0.77 at 72 and 168.
"""

from functools import cache
from math import gcd
from statistics import fmean

from attention.choose.coefficients.table import BYTES, GRANULE, LINE, SECTOR, SLOT
from attention.problem import AttentionProblem


def leads(problem: AttentionProblem) -> bool:
    """Whether spans of K and V begin with a sector, wherever rows do."""
    return problem.heads_kv % 2 == 0


@cache
def lines_of(dim: int, span_bytes: int = LINE, from_sector: bool = False) -> float:
    """Of a row of so many numbers, on the average over its places."""
    return fmean(_touched(dim, span_bytes, place, LINE, from_sector) for place in _places(dim))


@cache
def shared_of(dim: int, span_bytes: int = LINE, from_sector: bool = False) -> float:
    """Likewise."""
    touched = fmean(_touched(dim, span_bytes, place, SECTOR, from_sector) for place in _places(dim))
    return touched - _touched(dim, span_bytes, 0, SECTOR)


@cache
def granules_of(dim: int) -> float:
    """Likewise, of whole rows."""
    return fmean(_touched(dim, BYTES * dim, place, GRANULE) for place in _places(dim))


@cache
def inside_of(dim: int) -> float:
    """Likewise."""
    return fmean(map(bool, _places(dim)))


@cache
def stored_slots_of(dim: int) -> float:
    """Likewise of a row of out, which quads store 64 bytes at a time."""
    return fmean(_touched(dim, SLOT, place, SLOT) for place in _places(dim))


@cache
def slots_of(dim: int, span_bytes: int = LINE, from_sector: bool = False) -> float:
    """Likewise."""
    units = ((place, SECTOR if place % SECTOR and not from_sector else SLOT) for place in _places(dim))
    return fmean(_touched(dim, span_bytes, place, unit, from_sector) for place, unit in units)


def _places(dim: int) -> range:
    """Where in a line rows begin."""
    return range(0, LINE, gcd(BYTES * dim, LINE))


def _touched(dim: int, span_bytes: int, place: int, unit: int, from_sector: bool = False) -> int:
    """Aligned units of so many bytes that spans of a row touch, a unit again for each span."""
    end, first = place + BYTES * dim, place - place % SECTOR if from_sector else place
    spans = ((max(place, begin), min(end, begin + span_bytes)) for begin in range(first, end, span_bytes))
    return sum(-(-beyond // unit) - begin // unit for begin, beyond in spans)
