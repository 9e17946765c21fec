"""One part of the work, before it is done."""

from collections.abc import Callable
from dataclasses import dataclass

from smscope.verified.record import AnyResult

STEPS = ("doctor", "suite", "probes", "wrappers", "kernels", "sanitizer", "peers")  # in this order; doctor or suite


@dataclass(frozen=True)
class Part:
    """`run` looks at one thing and gives its result; where the host `lacks` something it is not called."""

    step: str  # of STEPS
    name: str
    run: Callable[[], AnyResult]
    lacks: str = ""

    @property
    def key(self) -> str:
        """By which a run knows that it was done."""
        return f"{self.step}/{self.name}"
