"""What a test runs elsewhere: Python in a process of its own, and work on threads that begin together."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

ROOT = Path(__file__).resolve().parents[1]
Result = TypeVar("Result")


def python(*arguments: str, cwd: Path | None = None, **variables: str) -> subprocess.CompletedProcess[str]:
    """`python ...` with these variables beside our own."""
    environment = os.environ | variables
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, cwd=cwd, env=environment)


def printed(program: str, *arguments: str, cwd: Path | None = None, **variables: str) -> str:
    """What a program prints, which must end well."""
    done = python("-c", program, *arguments, cwd=cwd, **variables)
    assert done.returncode == 0, done.stderr
    return done.stdout


def on_threads(count: int, work: Callable[[], Result]) -> list[Result]:
    """What `work` returns on each of so many threads; one that raises raises here."""
    together = threading.Barrier(count)

    def one(_: int) -> Result:
        together.wait(30)
        return work()

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(one, range(count)))
