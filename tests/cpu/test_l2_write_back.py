"""What an L2 writes back behind a memset: a scripted L2's figures are found, each launch behind its own flush."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from microbench.machine.arch import Machine, by_name
from microbench.measure.alternate import FLUSHED_L2S
from microbench.measure.launch import Launch, Measured
from microbench.point import Curves
from microbench.probes.memory.l2_write_back import PROBE, STREAM, by_warp, run

L2_BYTES, SMS, BYTES_PER_S, RATIO, LAUNCH_S = 60 << 20, 4, 4e12, 0.6, 3e-6
SCRATCH, SOURCE = 1 << 40, 1 << 50


class Scripted:
    """A GPU whose L2 holds what was written last, and writes back RATIO of a byte for each that is read."""

    machine = Machine("g", "G", by_name("sm90a"), SMS, 1.98e9, 4.8e12, 80 << 30, L2_BYTES)

    def __init__(self, ratio: float) -> None:
        self.ratio, self.dirty = ratio, 0.0

    def kernels(self, _: Any) -> tuple[Any]:
        return (None,)

    def footprint(self, nbytes: int) -> int:
        return nbytes

    def inputs(self, _kind: str, _count: int, _dtype: Any) -> Any:
        return SimpleNamespace(data=SimpleNamespace(ptr=SOURCE))

    def empty(self, nbytes: int) -> Any:
        return SimpleNamespace(data=SimpleNamespace(ptr=SCRATCH), fill=lambda _: self.fill(nbytes))

    def fill(self, nbytes: int) -> None:
        self.dirty = self.ratio * min(nbytes, L2_BYTES)

    def launch(self, launch: Launch) -> float:
        """Seconds: a byte written back takes as long as one that is read."""
        address, chunks, _ = launch.args
        assert launch.grid == SMS * STREAM.blocks
        back = min(self.dirty, self.ratio * int(chunks) * STREAM.chunk_bytes)
        self.dirty -= back
        assert int(address) == SOURCE or int(chunks) == FLUSHED_L2S * L2_BYTES // STREAM.chunk_bytes
        return LAUNCH_S + (int(chunks) * STREAM.chunk_bytes + back) / BYTES_PER_S

    def timed(self, launch: Launch, behind: Callable[[], object]) -> Measured:
        behind()
        took = self.launch(launch)
        return Measured(took, took, took, 15, 1980.0)


def constants(ratio: float, quick: bool) -> dict[str, float]:
    points = tuple(PROBE.points(quick))
    samples = [{sample.metric: sample.value for sample in run(Scripted(ratio), point)} for point in points]  # type: ignore[arg-type]
    return {
        each.name: float(each.reduce(Curves(points, np.array([[row[each.metric] for row in samples]]))).per_campaign[0])
        for each in PROBE.constants
    }


@pytest.mark.parametrize("quick", [False, True])
def test_the_share_and_all_that_goes_back_are_found(quick: bool) -> None:
    found = constants(RATIO, quick)
    assert found["l2_write_back_ratio"] == pytest.approx(RATIO, rel=1e-6)
    assert found["l2_write_back_bytes"] == pytest.approx(RATIO * L2_BYTES, rel=1e-6)


def test_an_l2_that_writes_through_has_a_figure_that_is_next_to_nothing() -> None:
    assert all(0 < value < 1e5 for value in constants(0.0, quick=True).values())


def test_the_bus_bounds_what_is_read_and_no_time_that_is_measured_is_below_it() -> None:
    for point in PROBE.points():
        samples = {sample.metric: sample.value for sample in run(Scripted(RATIO), point)}  # type: ignore[arg-type]
        for name in ("behind_memset_ns", "behind_read_ns"):
            lower, _ = PROBE.metric(name).bound.at(Scripted.machine, point)
            assert lower is not None and lower < samples[name] < 3 * lower


def test_a_warp_leaves_what_it_read_of_every_chunk_of_its_block() -> None:
    grid, words = 3, np.random.default_rng(1).integers(0, 2**32, 7 * STREAM.chunk_bytes // 4, np.uint32)
    found = by_warp(words, grid)
    assert found.shape == (grid, STREAM.threads // 32)
    of_warp = words.reshape(7, STREAM.flight, STREAM.threads // 32, 32 * 4)[1::grid, :, 5]
    assert found[1, 5] == np.bitwise_xor.reduce(of_warp, axis=None)
