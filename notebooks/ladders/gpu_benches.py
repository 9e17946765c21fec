"""What RRZE's gpu-benches printed on a board, beside what our three runs of that board, in the same lease, gave."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from microbench import paths
from microbench.probes import discover
from microbench.results import record
from microbench.results.repeats import repeats

GPU, BOARD = "h200-sxm-141gb", "769b8950"
SMS, CLOCK_HZ = 132, 1.98e9
KIB = 1 << 10
# Footprints in KiB: the half of the L2 that an SM sees as its own, both halves, beyond.
NEAR, FAR, BEYOND = (2 * KIB, 20 * KIB), (36 * KIB, 46 * KIB), (70 * KIB, 1e9)


@dataclass(frozen=True)
class Beside:
    """One quantity by both, in the same unit; `why` says what decided where they differ by more than 3 %."""

    quantity: str
    theirs: float
    ours: float
    unit: str
    of: str
    why: str = ""

    @property
    def cells(self) -> tuple[str, ...]:
        return (
            self.quantity,
            f"{self.theirs:.4g}",
            f"{self.ours:.4g}",
            self.unit,
            f"{100 * (self.ours / self.theirs - 1):+.1f} %",
            self.of,
            self.why,
        )


def rows() -> tuple[Beside, ...]:
    """Latencies, bandwidths, and where they come from."""
    ours = _ours()
    latency = _lines("latency", first=2, second=4)  # KiB, cycles by the median of its launches
    cached = _lines("l2-cache", first=1, second=4)  # KiB, GB/s
    l1 = max(rate for _, rate in _lines("cache", first=0, second=3)) * 1e9 / (SMS * CLOCK_HZ)
    written = max(float(line.split(":")[1].split()[0]) for line in _text("stream") if "GB/s:" in line)
    one_sm = _of_one_sm()
    near_empty = "each of its launches fetches the ring once from the L2; toward no ring it comes to 32.6"
    slices = "counters: theirs finds 1.1 % in the L1, and its slices gave 9.56 TB/s to our 9.08 (data/experiments)"
    return (
        Beside("L1 latency", latency[0][1], ours("l1_latency_cycles"), "cycles", "gpu-latency, 2 KiB", near_empty),
        Beside("L2 latency of one SM", _level(latency, *NEAR), one_sm(*NEAR), "cycles", "gpu-latency, 2 to 20 MiB"),
        Beside("L2 latency, other half", _level(latency, *FAR), one_sm(*FAR), "cycles", "gpu-latency, 36 to 46 MiB"),
        Beside("DRAM latency of one SM", _level(latency, *BEYOND), one_sm(*BEYOND), "cycles", "gpu-latency, 70 MiB on"),
        Beside("L1 bandwidth", l1, ours("l1_bandwidth_bytes_per_clk_sm"), "B/clk/SM", "gpu-cache"),
        Beside(
            "L2 read, 8 MiB",
            _level(cached, 8192, 8192) * 1e-3,
            ours("l2_bandwidth_bytes_per_s") * 1e-12,
            "TB/s",
            "gpu-l2-cache",
            slices,
        ),
        Beside(
            "DRAM write", written * 1e-3, ours("dram_write_bandwidth_bytes_per_s") * 1e-12, "TB/s", "gpu-stream, init"
        ),
        Beside(
            "DRAM read",
            _level(cached, 150000, 1e9) * 1e-3,
            ours("dram_bandwidth_bytes_per_s") * 1e-12,
            "TB/s",
            "gpu-l2-cache, 142 to 188 MiB",
            "our plateau is of 64 and 128 KiB in flight an SM; with 128 alone it is 4.50",
        ),
    )


def _ours() -> Callable[[str], float]:
    runs = record.read_all(GPU, board=BOARD)[0]
    (found,) = repeats(runs, discover())
    values = {each.name: median(each.values) for each in found.constants}
    return values.__getitem__


def _of_one_sm() -> Callable[[float, float], float]:
    """Cycles between two footprints in KiB, by `l2_visible_size`: one thread on one SM, as gpu-latency has it.

    `memory_latency` has one on every SM, and gives the mean of SMs that lie nearer and further.
    """
    runs = record.read_all(GPU, probes=("l2_visible_size",), board=BOARD)[0]
    points = [
        (float(row.point["footprint_bytes"]) / KIB, row.value)
        for run in runs
        for row in run.records
        if row.value and row.metric == "latency_cycles"
    ]
    return lambda low, high: _level(points, low, high)


def _text(name: str) -> list[str]:
    file: Path = paths.SHIPPED / "experiments" / GPU / "gpu-benches" / f"gpu-{name}.txt"
    return file.read_text(encoding="utf-8").splitlines()


def _lines(name: str, first: int, second: int) -> list[tuple[float, float]]:
    """Two columns of every line of numbers; units and signs between them are no column."""
    found = []
    for line in _text(name):
        numbers = re.findall(r"[\d.]+", line)
        if len(numbers) > second and re.match(r"\s*\d", line):
            found.append((float(numbers[first]), float(numbers[second])))
    return found


def _level(lines: list[tuple[float, float]], low: float, high: float) -> float:
    """The median of what was measured at these footprints, in KiB."""
    return median(value for kib, value in lines if low <= kib <= high)
