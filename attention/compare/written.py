"""A call as its user writes it, and what this project puts around it to name a backend and to compare results.

Graphs are captured of the whole; what the host takes is asked of the user's part alone.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any


def _as_it_is(out: Any) -> Any:
    return out


@dataclass(frozen=True, eq=False)
class Written:
    """`plain` is the user's; `around` is on meanwhile; `read` makes (B, H, S, Dv) of the result."""

    plain: Callable[[], Any]
    around: Callable[[], AbstractContextManager[Any]] = nullcontext
    read: Callable[[Any], Any] = _as_it_is

    def __call__(self) -> Any:
        with self.around():
            return self.read(self.plain())


def written(call: Callable[[], Any]) -> Written:
    """A call, whatever it is, as its user writes it."""
    return call if isinstance(call, Written) else Written(call)
