"""One virtual environment: is it usable, make it, and let pip install into it with one live line of progress.

Needs venv and pip of the Python that runs it, whichever of the two that Python has: where ensurepip was split off
(Debian's python3 without python3-venv), the outer pip installs into an environment made without one.
"""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

CANDIDATES = ("python3.13", "python3.12", "python3.11", "python3")
DOWNLOADING = re.compile(r"\s*Downloading (?P<what>\S+) \((?P<size>[^)]+)\)")
LOG_TAIL_LINES = 15


class SetupError(Exception):
    """The environment cannot be made; the message says what to do."""


@dataclass(frozen=True)
class Environment:
    """The virtual environment in `folder`, there or not yet."""

    folder: Path

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / "bin" / "python"

    def version(self) -> tuple[int, int] | None:
        """(major, minor), or None where its interpreter does not run or the folder was moved here from elsewhere."""
        try:
            # `activate` names the folder that it was made in; a moved environment's scripts still run the old one.
            if str(self.folder) not in (self.folder / "bin" / "activate").read_text():
                return None
        except OSError:
            return None
        return _version(str(self.python))

    def make(self, python: str) -> None:
        """Make it, empty, for `python`. Raises SetupError where the folder holds something else, or venv fails."""
        if self.folder.exists() and not (self.folder / "pyvenv.cfg").exists() and any(self.folder.iterdir()):
            raise SetupError(f"{self.folder.name} holds no virtual environment; move it away and run this again.")
        bare = [] if _runs(python, "import ensurepip") else ["--without-pip"]
        made = subprocess.run(
            [python, "-m", "venv", "--clear", *bare, str(self.folder)], capture_output=True, text=True
        )
        if made.returncode != 0:
            raise SetupError(f"python -m venv failed: {_last_line(made.stdout + made.stderr)}")

    def pip(self) -> list[str]:
        """The command that installs into it. Raises SetupError where neither Python has pip."""
        if _runs(str(self.python), "import pip"):
            return [str(self.python), "-m", "pip"]
        if importlib.util.find_spec("pip") is not None:
            return [sys.executable, "-m", "pip", "--python", str(self.python)]
        raise SetupError("This Python has no pip; install your system's python3-pip or python3-venv package.")

    def lacks(self, extras: list[str], lane: str) -> list[str]:
        """What it lacks of these extras, with the lane's exact versions; all of it where it has no pip yet."""
        ask = [str(self.python), str(Path(__file__).with_name("lacking.py")), lane, ",".join(extras)]
        answer = subprocess.run(ask, capture_output=True, text=True)
        return answer.stdout.splitlines() if answer.returncode == 0 else ["everything"]

    def finds(self, name: str, version: str) -> bool:
        """True where pip's indexes, as its configuration names them, hold this very version (2.13.0+cpu, say)."""
        ask = [*self.pip(), "--disable-pip-version-check", "index", "versions", name]
        answer = subprocess.run(ask, capture_output=True, text=True).stdout
        return version in re.split(r"[\s,()]+", answer)

    def install(self, arguments: list[str]) -> None:
        """Run `pip install`. Raises SetupError with pip's own last line; the whole log stays in the folder."""
        log = self.folder / "pip.log"
        command = [*self.pip(), "--disable-pip-version-check", "--no-input", "install", *arguments]
        environment = {**os.environ, "PIP_USER": "0", "PYTHONUNBUFFERED": "1"}
        with (
            log.open("w") as record,
            subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
            ) as process,
        ):
            assert process.stdout is not None
            for line in process.stdout:
                record.write(line)
                _show(line)
        _show(None)
        if process.returncode != 0:
            tail = "".join(log.read_text().splitlines(keepends=True)[-LOG_TAIL_LINES:])
            raise SetupError(f"pip could not install this lane; its last lines ({log.name} holds all):\n{tail}")


def suitable(lowest: tuple[int, int], highest: tuple[int, int]) -> str:
    """A Python whose version the lane has wheels for: this one, else one on PATH. Raises SetupError where none is."""
    if lowest <= sys.version_info[:2] <= highest:
        return sys.executable
    for name in CANDIDATES:
        version = _version(name)
        if version is not None and lowest <= version <= highest:
            return name
    wanted = f"{_dotted(lowest)} to {_dotted(highest)}"
    raise SetupError(
        f"This lane's pinned wheels exist for Python {wanted}, and none is on PATH (this one is "
        f"{_dotted(sys.version_info[:2])}); install one, or name an environment with PYTHON=."
    )


def _dotted(version: tuple[int, int]) -> str:
    return ".".join(str(part) for part in version)


def _version(python: str) -> tuple[int, int] | None:
    try:
        ask = [python, "-c", "import sys; print(*sys.version_info[:2])"]
        answer = subprocess.run(ask, capture_output=True, text=True, check=True).stdout.split()
        return int(answer[0]), int(answer[1])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return None


def _runs(python: str, code: str) -> bool:
    return subprocess.run([python, "-c", code], capture_output=True).returncode == 0


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["no output"])[-1]


def _show(line: str | None) -> None:
    """Keep one line of the terminal at what pip does now; None clears it. Silent where no one looks on."""
    if not sys.stderr.isatty():
        return
    text = ""
    if line is not None:
        match = DOWNLOADING.match(line)
        if match:
            text = f"  downloading {match['what'].split('/')[-1].split('-')[0]} ({match['size']})"
        elif line.startswith("Installing collected packages"):
            text = f"  installing {line.count(',') + 1} packages"
        else:
            return
    width = shutil.get_terminal_size().columns - 1
    print(f"\r{text[:width]:<{width}}", end="\r" if line is None else "", file=sys.stderr, flush=True)
