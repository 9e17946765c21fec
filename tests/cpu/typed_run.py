"""`microbench run` in a process of its own, with another data folder."""

import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.elsewhere import ROOT

DRIVER = """
import sys
from pathlib import Path
from microbench import paths
data = Path(sys.argv.pop(1))
paths.writable_data = lambda: data
paths.data_roots = lambda: [data]
from microbench.cli import main
main(sys.argv[1:])
"""


def start(data: Path, *arguments: str, device: str = "host") -> subprocess.Popen[str]:
    """`python -m microbench run` with another data folder; Ctrl-C works even where our own parent ignores it."""
    command = [sys.executable, "-c", DRIVER, str(data), "run", "--device", device, "--retries", "0", *arguments]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, cwd=ROOT, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL), **pipes)


def wait_for_rows(data: Path, count: int, seconds: int = 60) -> Path:
    """The run's file, once it holds so many records."""
    for _ in range(10 * seconds):
        files = list(data.glob("runs/*/*.jsonl"))
        if files and files[0].read_text().count('"probe":') >= count:
            return files[0]
        time.sleep(0.1)
    raise AssertionError(f"the run wrote no {count} rows in {seconds} s")
