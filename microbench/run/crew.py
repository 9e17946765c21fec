"""The workers of a run: the one that measures, and on a GPU the next one, which imports meanwhile.

CuPy's import takes seconds, a context half of one. The next worker does the first beside a measurement, on a core that
the measuring one does not use; it opens the GPU only when the one before has ended, so that no context of ours ever
stands beside a measurement. On a CPU nothing runs ahead, for it would take what is being measured.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from microbench.machine.cpu import cores
from microbench.run import remote
from microbench.run.remote import RemoteWorker

# The measuring worker's own threads (CuPy's, the driver's), the supervisor, and the next worker.
CORES_TO_RUN_AHEAD = 4


@dataclass
class Crew:
    """Workers for one device. Whoever makes one must close it."""

    device: str
    quick: bool
    folders: Sequence[Path] = ()
    starting_s: float = 0.0  # waited for devices to open
    _worker: RemoteWorker | None = None
    _spare: RemoteWorker | None = None

    @property
    def runs_ahead(self) -> bool:
        return self.device != "host" and len(cores()) >= CORES_TO_RUN_AHEAD

    def worker(self, more: bool = False) -> RemoteWorker:
        """The one that measures, its device open; `more` where another will follow it. Raises DeviceError and kin."""
        started = time.perf_counter()
        if self._worker is None:
            spare, self._spare = self._spare, None
            if more:  # beside the first one's own start too
                self._ahead()
            self._worker = remote.opened(spare, self.device, self.quick, self.folders)
            self.starting_s += time.perf_counter() - started
        return self._worker

    def _ahead(self) -> None:
        if self.runs_ahead:
            try:
                self._spare = RemoteWorker(self.device, self.quick, self.folders)
            except OSError:
                self._spare = None  # it will be started, and complained about, when it is needed

    def relieve(self) -> None:
        """The campaign is over: the next one gets a fresh process."""
        started = time.perf_counter()
        if self._worker is not None:
            self._worker.close()
            self._worker = None
        self.starting_s += time.perf_counter() - started

    def lose(self) -> None:
        """The worker hangs, is dead, or its context is broken."""
        if self._worker is not None:
            self._worker.kill()
            self._worker = None

    def close(self) -> None:
        self.lose()
        if self._spare is not None:
            self._spare.kill()
            self._spare = None
