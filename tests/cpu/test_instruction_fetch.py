"""What code costs at its first run: which slopes its constants are, which SM's readings belong together, its bound."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from microbench.machine.arch import Machine, by_name
from microbench.measure.launch import Launch
from microbench.point import Curves, Point
from microbench.probes.issue import instruction_fetch
from microbench.probes.issue.instruction_fetch import AHEAD_LINES, PROBE, by_sm, cycles, least_cycles

ISSUE, AHEAD, L2, DRAM = 8, 12, 36, 97  # cycles a line
BENCH: Any = SimpleNamespace(host=np.asarray)


def machine(arch: str) -> Machine:
    return Machine("g", "G", by_name(arch), 132, 1.98e9, 3.35e12, 80 << 30, 50 << 20)


def taken(point: Point) -> float:
    """A run as an H200's, whose launches ask for the first AHEAD_LINES ahead."""
    lines, late = point["lines"], {"held": 0, "l2": L2, "dram": DRAM}[point["code"]]
    beyond = max(0, lines - AHEAD_LINES) * late
    return float(300 + lines * ISSUE + min(lines, AHEAD_LINES) * (AHEAD if late else 0) + beyond)


@pytest.mark.parametrize("quick", [False, True])
def test_constants_are_what_a_line_costs_beyond_held_code(quick: bool) -> None:
    points = tuple(PROBE.points(quick))
    curve = np.array([taken(point) for point in points])
    found = {
        constant.name: constant.reduce(Curves(points, np.stack([curve, curve + 50]))).per_campaign
        for constant in PROBE.constants
        if constant.quick or not quick
    }
    late = {} if quick else {"cold_past_64kib": DRAM, "l2_past_64kib": L2}
    for name, value in ({"cold": AHEAD, "l2": AHEAD} | late).items():
        assert found.pop(f"instruction_fetch_{name}_cycles_per_line") == pytest.approx(value)
    assert not found


def launched(ran_on: list[int], readings: list[list[list[int]]]) -> tuple[Launch, Any]:
    clocks = np.array(readings)
    kernel: Any = None
    return Launch(kernel, len(ran_on), 32 * clocks.shape[1], (np.array(ran_on, np.uint32),)), clocks


def test_readings_of_one_sm_are_compared_whichever_block_ran_there() -> None:
    before = launched([2, 0, 1], [[[10, 20]], [[1000, 1010]], [[1, 2]]])
    timed = launched([0, 2], [[[2000, 2100], [1990, 2090]], [[120, 220], [130, 245]]])
    started, ended = by_sm(BENCH, *timed)
    assert (started[[0, 2]] == [1990, 120]).all() and (ended[[0, 2]] == [2100, 245]).all() and np.isnan(ended[1])
    assert cycles(BENCH, before, timed) == ((110 + 125) / 2, (1090 + 225) / 2)


@pytest.mark.parametrize(("arch", "who", "least"), [("sm90a", "12_warps_per_sm", 24), ("sm80", "a_warp_per_sm", 16)])
def test_no_run_is_faster_than_its_instructions_issue(arch: str, who: str, least: int) -> None:
    assert least_cycles(machine(arch), Point((("lines", 64), ("code", "held"), ("who", who)))) == 64 * least


def test_what_evicts_is_larger_than_what_is_timed_and_the_record_names_the_timed_kernel() -> None:
    sizes = [dict(build.defines)["LINES"] for build in instruction_fetch.builds(next(PROBE.points()))]
    assert sizes == [instruction_fetch.MARKER_LINES, instruction_fetch.EVICTOR_LINES, instruction_fetch.SIZES[0]]
    assert 2 * max(instruction_fetch.SIZES) <= instruction_fetch.EVICTOR_LINES
