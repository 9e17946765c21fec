"""A candidate that does not end is named and noted, and the process left: nothing takes a GPU back from a kernel."""

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from attention.campaign import lost
from attention.campaign.posed import Posed
from microbench.errors import DeviceError

ENDS_S = 300.0  # a first call compiles


@dataclass
class Watch:
    """Over the candidates of one problem; `candidate` is the one whose call was begun last."""

    posed: Posed
    seconds: float = ENDS_S
    candidate: str = ""

    @contextmanager
    def over(self, candidate: str = "") -> Iterator[None]:
        """Leave the process where this takes longer than so many seconds."""
        self.candidate = candidate
        late = threading.Timer(self.seconds, self._leave)  # waiting for a GPU lets other threads run
        late.daemon = True
        late.start()
        try:
            yield
        finally:
            late.cancel()

    def noting(self, candidate: str, call: Callable[[], Any]) -> Callable[[], Any]:
        """The same call, known to be the one that runs."""

        def noted() -> Any:
            self.candidate = candidate
            return call()

        return noted

    def _leave(self) -> None:
        why = f"it did not end within {self.seconds:.0f} s"
        lost.note(self.posed, self.candidate, why)
        print(
            f"{self.candidate} lost the GPU on {self.posed}: {why}. It is left out from now on, and what was timed "
            "before is kept: run again.",
            file=sys.stderr,
            flush=True,
        )
        os._exit(DeviceError.exit_code)  # an exit of Python's would wait for the kernel
