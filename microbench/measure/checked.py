"""CheckedBench: a probe's `run` on a GPU, each launch once more, and its results held against NumPy's."""

from collections.abc import Callable
from functools import partial
from typing import Any

from microbench.measure.cuda import CudaBench
from microbench.measure.emulated import MOST_BYTES, MOST_TRIPS, NO_SECOND
from microbench.measure.launch import Launch, Measured
from microbench.measure.soak import Second


class CheckedBench(CudaBench):
    """What a probe measures with where its results count and its times do not, with footprints and loops cut short.

    `checked` counts the arrays held against NumPy's.
    """

    checked = 0

    def footprint(self, nbytes: int) -> int:
        """At most as many as the emulator takes: NumPy computes the same."""
        return min(nbytes, MOST_BYTES)

    def trips(self, count: int) -> int:
        """Likewise."""
        return min(count, MOST_TRIPS)

    def launch(self, launch: Launch, *more: Any) -> None:
        """One launch, and what it left. Raises DeviceError, MeasureError."""
        self._prepare(launch)
        self.checked += launch.held(partial(super().launch, launch, *more), self, self.probe.name)

    def cycles(self, short: Launch, long: Launch, operations: float) -> Measured:
        """Both held, then timed. Raises DeviceError, MeasureError."""
        for launch in (short, long):
            self.launch(launch, self.clocks(launch))
        return super().cycles(short, long, operations)

    def timed(
        self,
        launch: Launch,
        cold: bool = False,
        inner: int = 1,
        spaced_s: float = 0.0,
        behind: Callable[[], object] | None = None,
    ) -> Measured:
        """Held, then timed. Raises DeviceError, MeasureError."""
        self.launch(launch)
        return super().timed(launch, cold, inner, spaced_s, behind)

    def soak(self, launch: Launch, seconds: int) -> tuple[Second, ...]:
        """Held, and not repeated: nobody asks for its time here. Raises DeviceError, MeasureError."""
        self.launch(launch, self.clocks(launch))
        return (NO_SECOND,)
