"""Work on the GPU in processes of its own: a fault ends the process that met it, and a fresh one takes the next piece.

A kernel that faults breaks the CUDA context of its process for good; one that hangs can only be ended with it.
"""

import multiprocessing
import os
import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from microbench.errors import EnvironmentLacks

LANES = max(1, min(16, os.cpu_count() or 1))  # processes at a time
START_LIMIT_S = 120.0  # CuPy's import and a context
PIECE_LIMIT_S = 60.0
MOST_FAULTS = 3  # of one family, after which the rest of it is not tried


@dataclass(frozen=True)
class Failed:
    """In place of an answer: why there is none; `lacks` where this machine has not what every piece needs."""

    reason: str
    lacks: bool = False


# Opens the device in the worker, and gives what answers a piece there.
Opens = Callable[[], Callable[[Any], Any]]


def answers(
    families: Sequence[Sequence[Any]], opens: Opens, lanes: int = LANES, limit_s: float = PIECE_LIMIT_S
) -> Iterator[tuple[Any, Any]]:
    """(piece, its answer or Failed) of every piece, as they come. Families run side by side, `opens` is pickled.

    A process that is silent for `limit_s` seconds is ended.

    Raises EnvironmentLacks where a worker does.
    """
    waiting: queue.SimpleQueue[Sequence[Any]] = queue.SimpleQueue()
    done: queue.SimpleQueue[tuple[Any, Any]] = queue.SimpleQueue()
    for family in families:
        waiting.put(family)

    def lane() -> None:
        while True:
            try:
                family = waiting.get_nowait()
            except queue.Empty:
                return
            for each in _family(family, opens, limit_s):
                done.put(each)

    for _ in range(min(lanes, len(families))):
        threading.Thread(target=lane, daemon=True).start()
    for _ in range(sum(map(len, families))):
        piece, answer = done.get()
        if isinstance(answer, Failed) and answer.lacks:
            raise EnvironmentLacks(answer.reason)
        yield piece, answer


def _family(pieces: Sequence[Any], opens: Opens, limit_s: float) -> Iterator[tuple[Any, Any]]:
    left, faults = list(pieces), 0
    while left:
        if faults == MOST_FAULTS:
            yield from ((piece, Failed(f"not tried: {faults} before it failed")) for piece in left)
            return
        for answer in _one_process(left, opens, limit_s):
            yield left.pop(0), answer
            faults += isinstance(answer, Failed)


def _one_process(pieces: Sequence[Any], opens: Opens, limit_s: float) -> Iterator[Any]:
    """The answers of one process, up to the first that failed."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, opens, list(pieces)), daemon=True)
    try:
        process.start()
        theirs.close()
        opening = _receive(ours, START_LIMIT_S, process)
        if isinstance(opening, Failed):
            yield opening
            return
        for _ in pieces:
            answer = _receive(ours, limit_s, process)
            yield answer
            if isinstance(answer, Failed):
                return
    finally:
        process.kill()
        process.join()
        ours.close()


def _receive(pipe: Connection, limit_s: float, process: Any) -> Any:
    try:
        if not pipe.poll(limit_s):
            return Failed(f"no answer within {limit_s:g} s; its process was ended")
        return pipe.recv()
    except (EOFError, OSError):
        process.join(10)
        return Failed(f"its process ended with exit code {process.exitcode}")


def _serve(pipe: Connection, opens: Opens, pieces: list[Any]) -> None:
    """In the worker: say that the device is open, then answer piece by piece until one fails."""
    try:
        answer = opens()
        pipe.send(None)
        for piece in pieces:
            pipe.send(answer(piece))
    except EnvironmentLacks as error:
        pipe.send(Failed(str(error), lacks=True))
    except Exception as error:  # whatever it is, it is the reason
        pipe.send(Failed(f"{type(error).__name__}: {error}"))
