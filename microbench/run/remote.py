"""A worker process as its supervisor sees it: start, open, ask with a time limit, end.

A process of its own for each campaign gives fresh allocations and a fresh context; a kernel that hangs can only be
ended together with its process.
"""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from multiprocessing import Pipe
from pathlib import Path

from microbench import errors, paths
from microbench.run import wire
from microbench.run.plan import Task

# CuPy's import and context take 3 to 6 s on a cold disk; the first compile of the clock kernels 2 s more.
START_LIMIT_S = 180.0


class WorkerLost(Exception):
    """The worker gave no answer: it hung, or it died. The message is a reason for a record."""


def start(device: str, quick: bool, folders: Sequence[Path] = ()) -> "RemoteWorker":
    """A worker with an open device; one that dies at its start gets a second try. Raises DeviceError and its kin."""
    return opened(None, device, quick, folders)


def opened(spare: "RemoteWorker | None", device: str, quick: bool, folders: Sequence[Path] = ()) -> "RemoteWorker":
    """The same with a worker that waits already, where there is one. Raises DeviceError and its kin."""
    try:
        try:
            return (spare or RemoteWorker(device, quick, folders)).open()
        except WorkerLost:
            return RemoteWorker(device, quick, folders).open()
    except WorkerLost as lost:
        raise errors.DeviceError(
            f"The worker for {device} died twice at its start: {lost} Run again; an interrupted run goes on."
        ) from lost
    except OSError as error:  # no process, pipe or temporary file to be had
        raise errors.DeviceError(
            f"The worker for {device} could not be started: {error.strerror or error}; free processes, files "
            f"or memory, or let {Path(sys.executable).name} be executed, and run again."
        ) from error


class RemoteWorker:
    """One worker: it imports what it needs, waits, and opens its device at `open`. Raises OSError."""

    hello: wire.Hello

    def __init__(self, device: str, quick: bool, folders: Sequence[Path] = ()) -> None:
        self._device = device
        self._output = tempfile.TemporaryFile()  # noqa: SIM115  (lives as long as the worker)
        self._pipe, theirs = Pipe()
        try:
            self._process = subprocess.Popen(
                [
                    # -P: a microbench.py, or a json.py, in the folder that the run was started in is none of ours.
                    *(sys.executable, "-P", "-m", "microbench.run.worker", str(theirs.fileno()), device),
                    *("quick" if quick else "full", *map(str, folders)),
                ],
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=self._output,
                env=_environment(),
                start_new_session=True,  # a Ctrl-C at the terminal is the supervisor's to handle
            )
        except BaseException:
            self._pipe.close()
            self._output.close()
            raise
        finally:
            theirs.close()

    def open(self) -> "RemoteWorker":
        """Itself, its device open. Raises what it met there (DeviceError, EnvironmentLacks), WorkerLost."""
        try:
            self.hello = self._greeting(self._device)
        except BaseException:
            self.kill()
            raise
        return self

    def _greeting(self, device: str) -> wire.Hello:
        try:
            with suppress(OSError):  # it is dead, or has refused already: what it left says why
                self._pipe.send(wire.Open())
            hello = self._receive(START_LIMIT_S)
        except WorkerLost as lost:
            if self._process.poll() is not None:
                raise WorkerLost(f"{lost}.{self._last_words()}") from lost
            raise errors.DeviceError(f"The worker for {device} did not start: {lost}.{self._last_words()}") from lost
        if isinstance(hello, wire.Refusal):
            raise getattr(errors, hello.kind)(hello.message)
        assert isinstance(hello, wire.Hello)
        return hello

    def ask(self, tasks: Sequence[Task]) -> Iterator[wire.Answer]:
        """Measure points of one probe, each within its time limit, and give each answer as it comes.

        Raises WorkerLost, after which only `kill` is left: the first point without an answer was its end.
        """
        probe = tasks[0].probe
        try:
            self._pipe.send(wire.Ask(probe.name, tuple((task.method, task.point) for task in tasks)))
        except OSError:
            raise WorkerLost(self._cause_of_death()) from None
        for _ in tasks:
            answer = self._receive(probe.time_limit_s)
            assert isinstance(answer, wire.Answer)
            yield answer

    def _receive(self, limit_s: float) -> object:
        try:
            if not self._pipe.poll(limit_s):
                raise WorkerLost(f"no answer within {limit_s:g} s; its worker was ended")
            return self._pipe.recv()
        except (EOFError, OSError):
            raise WorkerLost(self._cause_of_death()) from None

    def _cause_of_death(self) -> str:
        try:
            code = self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            return "its worker closed the pipe"
        how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        return f"its worker {how}"

    def _last_words(self) -> str:
        self._output.seek(0)
        lines = self._output.read().decode(errors="replace").split("\n")
        return next((f" Its last line was: {line.strip()}" for line in reversed(lines) if line.strip()), "")

    def close(self) -> None:
        """Ask the worker to end, and kill it where it does not."""
        with suppress(OSError, subprocess.TimeoutExpired):
            self._pipe.send(None)
            self._process.wait(timeout=10)
        self.kill()

    def kill(self) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._pipe.close()
        self._output.close()


def _environment() -> dict[str, str]:
    """This process's environment, with this package importable from whatever folder the run was started in."""
    path = os.pathsep.join(filter(None, (str(paths.PACKAGE.parent), os.environ.get("PYTHONPATH"))))
    return {**os.environ, "PYTHONPATH": path}
