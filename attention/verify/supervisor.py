"""Keeps a campaign going: a worker that dies or hangs costs one row, not the rows before or behind it."""

import os
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from attention.verify.problems import Case
from attention.verify.rows import LOST, append, failed
from microbench import paths
from microbench.console.progress import Watcher, watching
from microbench.errors import DeviceError

CHUNK = 500  # problems of one process; starting one takes seconds
START_SECONDS, HANG_SECONDS = 240.0, 60.0
FAULTS_MAX = 25  # a kernel that is broken altogether need not be met two thousand times


# -P, so that a file beside the user is not what a worker imports.
WORKER = (sys.executable, "-P", "-m", "attention.verify")


@dataclass(frozen=True)
class Ended:
    """How a worker came to its end: rows that it wrote, and why it stopped before the last one."""

    rows: int
    started: bool
    status: int | None  # None: it hung, and was ended
    said: str


def supervise(cases: Sequence[Case], out: Path, options: list[str], worker: Sequence[str] = WORKER) -> None:
    """Run every case in worker processes, in order. Raises DeviceError where no worker starts."""
    at = faults = 0
    with watching(len(cases)) as watch:
        while at < len(cases):
            last = min(at + CHUNK, len(cases))
            span = _span(cases, at, last)
            command = [*worker, str(out), *options, *span]
            ended = watched(command, last - at, watch)
            if not ended.started:
                raise DeviceError(
                    f"No worker starts on this GPU; its last words: {ended.said or 'none. See what nvidia-smi shows.'}"
                )
            at += ended.rows
            if ended.status == 0 and at == last:
                continue
            faults += 1
            if ended.status != LOST and at < last:
                why = f"no result in {HANG_SECONDS:.0f} s" if ended.status is None else f"status {ended.status}"
                append(out, failed(cases[at], f"the process ended: {why}: {ended.said}"))
                watch.finished()
                at += 1
            if faults == FAULTS_MAX:
                watch.say(f"{faults} workers were lost; stopped at problem {at} of {len(cases)}")
                return


def environment() -> dict[str, str]:
    """Ours, with these packages importable from whatever folder the campaign was started in."""
    path = os.pathsep.join(filter(None, (str(paths.PACKAGE.parent), os.environ.get("PYTHONPATH"))))
    # NVML's order, so that the GPU named in the results is the GPU that ran.
    return {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", **os.environ, "PYTHONPATH": path}


def _span(cases: Sequence[Case], at: int, last: int) -> list[str]:
    """What tells a worker its part. One problem alone keeps its number."""
    if len(cases) == 1:
        return ["--only", str(cases[0].index)]
    return ["--first", str(at), "--last", str(last)]


def watched(command: Sequence[str], rows: int, watch: Watcher) -> Ended:
    """Run a worker, and end it where it says nothing for long."""
    done, started, status = 0, False, None
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment()) as worker,
    ):
        lines: queue.Queue[str | None] = queue.Queue()
        assert worker.stdout is not None
        listener = threading.Thread(target=_listen, args=(worker.stdout, lines))
        listener.start()
        while True:
            try:
                line = lines.get(timeout=HANG_SECONDS if started else START_SECONDS)
            except queue.Empty:
                worker.kill()
                break
            if line is None:
                status = worker.wait()
                break
            if not started:
                started = line == "ready"
                continue
            done += 1
            watch.doing("campaign", f"problem {line}")
            watch.finished()
        listener.join()
        errors.seek(0)
        said = " ".join(errors.read().strip().splitlines()[-3:])
    return Ended(min(done, rows), started, status, said)


def _listen(stream: IO[str], lines: "queue.Queue[str | None]") -> None:
    for line in stream:
        lines.put(line.strip())
    lines.put(None)
