"""The memory ladder of one machine in a terminal: what a load takes, by how much memory the chase goes over.

It needs no plotting library, so that `make bench` can end with it; `make report` draws the same curve with every point.
"""

import math
import statistics
from collections.abc import Iterable, Sequence

from rich.bar import Bar
from rich.table import Table

from microbench.console import si
from microbench.results.profile import Profile
from microbench.results.record import Record

# The probe whose sweep is the ladder, on a CPU and on a GPU: by its first method.
PROBES = {"host_memory_latency": "host", "memory_latency": "nvrtc"}
METRIC, AXIS = "latency_ns", "footprint_bytes"
# Where each cache ends: the first of these constants that a profile has.
LEVELS = (
    ("L1", ("l1_size_bytes",)),
    ("L2", ("l2_size_bytes", "l2_visible_size_bytes")),
    ("L3", ("l3_size_bytes",)),
)
BAR_COLUMNS = 44


def curve(records: Iterable[Record]) -> dict[int, float]:
    """Footprint in bytes -> ns a load, ascending: the median over campaigns, the undisturbed ones if there are any."""
    values: dict[int, list[Record]] = {}
    for row in records:
        if PROBES.get(row.probe) == row.method and row.metric == METRIC and row.measured:
            values.setdefault(int(row.point[AXIS]), []).append(row)
    medians = {}
    for size in sorted(values):
        quiet = [row for row in values[size] if not row.disturbed] or values[size]
        medians[size] = statistics.median(row.value for row in quiet if row.value is not None)
    return medians


def octaves(points: dict[int, float]) -> dict[int, float]:
    """The points of a fine sweep that are nearest to a power of two."""
    chosen: dict[int, int] = {}
    for size in points:
        power = round(math.log2(size))
        best = chosen.setdefault(power, size)
        if abs(math.log2(size) - power) < abs(math.log2(best) - power):
            chosen[power] = size
    return {size: points[size] for size in chosen.values()}


def chart(records: Iterable[Record], profile: Profile) -> Table | None:
    """A bar an octave, on a logarithmic scale; None where the records hold no ladder."""
    points = octaves(curve(records))
    if len(points) < 2:
        return None
    lowest = min(points.values()) / 2  # so that the shortest bar is one octave long
    span = math.log2(max(points.values()) / lowest)
    drawn = Table.grid(padding=(0, 1))
    drawn.add_column(justify="right", no_wrap=True)
    drawn.add_column(no_wrap=True)
    drawn.add_column(justify="right", no_wrap=True)
    drawn.add_column(no_wrap=True)
    for (size, value), level in zip(points.items(), labels(tuple(points), profile), strict=True):
        bar = Bar(span, 0, math.log2(value / lowest), width=BAR_COLUMNS, color="cyan")
        drawn.add_row(si.written(size, "bytes"), bar, si.written(value, "ns"), level)
    return drawn


def labels(sizes: Sequence[int], profile: Profile) -> list[str]:
    """Beside the last footprint that a cache holds where it ends, beside the largest one DRAM; nothing in doubt."""
    found = [""] * len(sizes)
    if _known(profile, "dram_latency_ns"):
        found[-1] = "DRAM"
    for level, names in LEVELS:
        capacity = next((profile.value(name) for name in names if _known(profile, name)), None)
        inside = [at for at, size in enumerate(sizes) if capacity is not None and size <= capacity]
        if inside and capacity is not None:
            found[inside[-1]] = f"{level}, to {si.written(capacity, 'bytes')}"
    return found


def _known(profile: Profile, name: str) -> bool:
    return name in profile and not profile[name].doubtful
