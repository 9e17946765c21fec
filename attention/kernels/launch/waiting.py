"""What a cold call waits for, in one sentence, where it waits longer than half a second.

A warning, and no info: who waits is as a rule who has set up no logging, and Python shows such a one warnings alone.
"""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from attention.problem import AttentionProblem
from attention.variant import CudaBuild
from microbench.machine.arch import Arch

PATIENCE_SECONDS = 0.5
_log = logging.getLogger("attention")
_problem: ContextVar[AttentionProblem | None] = ContextVar("_problem", default=None)


@contextmanager
def on_behalf_of(problem: AttentionProblem) -> Iterator[None]:
    """Inside, a kernel that is compiled is compiled for this problem."""
    before = _problem.set(problem)
    try:
        yield
    finally:
        _problem.reset(before)


@contextmanager
def said(folder: Path, build: CudaBuild, arch: Arch) -> Iterator[None]:
    """Inside a kernel is fetched from the cache or compiled: what takes long is named once, while it lasts."""
    problem = _problem.get()  # a timer's thread has no context of this one
    of = f" of {problem}" if problem is not None else ""
    sentence = (
        f"The first call{of} waits for {build.kernel} ({'/'.join(folder.parts[-3:])}) to be compiled for {arch.name}, "
        "once on this machine; attention.prewarm or `smscope prewarm` compiles ahead, on all cores."
    )
    timer = threading.Timer(PATIENCE_SECONDS, _log.warning, ["%s", sentence])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
