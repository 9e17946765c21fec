"""Install into `.venv` what one step needs, or check an environment that exists; every target of the Makefile does so.

    constraints/environment.sh bench              .venv, made or adopted, with what the lane's `bench` needs
    python constraints/prepare.py bench --check   this very Python, as it is: names what it lacks, installs nothing

A ready .venv is known by `.venv/smscope.json`, written only after pip has ended well, so an interrupted set-up is
finished by the next one. Standard library only.
"""

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import lacking
import lane

HERE = Path(__file__).resolve().parent
STATE = HERE.parent / ".venv" / "smscope.json"
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")
# What takes time: downloads of 10 MB and more, and the installation.
SHOWN = re.compile(r"\s*(Downloading \S+ \((?:\d{2,}(?:\.\d+)? M|[\d.]+ G)B\)|Installing collected packages)")
LOG_TAIL_LINES = 15
OTHER_LANE = 3  # exit code by which environment.sh makes .venv anew
INTERRUPTED = 130  # the shell's exit code for a program that SIGINT ended


class SetupError(Exception):
    """The environment cannot be made; the message says what to do."""


@dataclass(frozen=True)
class State:
    """What .venv holds, and what that was decided by."""

    lane: str
    why: str
    asked: str  # the lane that LANE= named, '' where the hardware chose
    hardware: list[str]
    inputs: str  # digest of everything that says what to install
    step: str  # the furthest one; it holds those before it


def main() -> int:
    """Exit code 0 where the environment is ready, 2 where it cannot be, 3 for OTHER_LANE, 130 after Ctrl-C."""
    lanes = [name for name, table in lacking.tables().items() if "megabytes" in table]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=lacking.steps())
    parser.add_argument("--lane", choices=["", *lanes], default="", help="instead of what the hardware says")
    parser.add_argument("--check", action="store_true", help="check this Python; install nothing")
    asked = parser.parse_args()
    try:
        if asked.check:
            return check(asked.step, asked.lane)
        return prepare(asked.step, asked.lane)
    except (lane.NoLaneError, SetupError) as error:
        _say(str(error))
        return 2
    except KeyboardInterrupt:
        _say("interrupted; the same command goes on where this one stopped.")
        return INTERRUPTED


def check(step: str, asked: str) -> int:
    """Name what this Python lacks for `step`; it stays as it is."""
    choice = _choose(asked)
    lacks = lacking.lacking(lacking.tables()[choice.lane]["extras"][step])
    found = f"{choice.why} -> lane {choice.lane}; Python {sys.version.split()[0]} as it is"
    if lacks:
        _say(f"{found} lacks {', '.join(lacks)}; install that there, or leave PYTHON= out to have .venv made.")
        return 2
    _say(f"{found} has what this needs.")
    return 0


def prepare(step: str, asked: str) -> int:
    """Bring .venv to where `step` can run; OTHER_LANE asks for an empty one first. Raises NoLaneError, SetupError."""
    state, hardware, inputs = _read(), lane.hardware(), _inputs()
    # A lane with a GPU holds everything that the host lane needs, so LANE=host may use its .venv.
    decided = state is not None and state.hardware == hardware and asked in (state.asked, state.lane, "host")
    choice = lane.Choice(state.lane, state.why) if state is not None and decided else _choose(asked)
    if state is not None and state.lane != choice.lane:
        STATE.unlink()
        return OTHER_LANE
    _say(f"{choice.why} -> lane {choice.lane} ({lacking.tables()[choice.lane]['what']}); using .venv.")
    held = state.step if state is not None and state.inputs == inputs else ""
    if _order(step) > _order(held):
        furthest = max(step, state.step if state is not None else "", key=_order)
        _install(furthest, held, choice.lane)
        held = furthest
    decision = state if state is not None and decided else State(choice.lane, choice.why, asked, hardware, "", "")
    partial = STATE.with_suffix(".partial")
    partial.write_text(json.dumps(asdict(replace(decision, inputs=inputs, step=held)), indent=2) + "\n")
    partial.replace(STATE)
    return 0


def _install(step: str, held: str, name: str) -> None:
    table, pins = lacking.tables()[name], name
    extras, megabytes, note = table["extras"], table["megabytes"], ""
    if step in table.get("extras_with_cuda_torch", {}) and sys.platform == "linux":
        if _finds("torch", f"{lacking.pins(name)['torch']}+cpu"):
            note = ", torch as its CPU wheel"
        else:
            extras, megabytes = (table[key] | table[f"{key}_with_cuda_torch"] for key in ("extras", "megabytes"))
            note, pins = ", most of it CUDA for torch (pip's configuration names no index of CPU wheels)", "cuda"
    # What pip's own cache holds is not fetched again, and is not known beforehand.
    _say(f"installing for `{step}`: up to {megabytes[step] - megabytes.get(held, 0)} MB to download{note}.")
    began = time.monotonic()
    STATE.unlink(missing_ok=True)
    project = f"{HERE.parent}[{','.join(extras[step])}]" if extras[step] else str(HERE.parent)
    _pip_install("--constraint", str(HERE / f"{pins}.txt"), "--editable", project)
    _say(f".venv is ready ({time.monotonic() - began:.0f} s).")


def _pip_install(*arguments: str) -> None:
    """Raises SetupError with pip's own last lines; the whole log stays in .venv."""
    log = STATE.with_name("pip.log")
    environment = {**os.environ, "PIP_USER": "0", "PYTHONUNBUFFERED": "1"}
    command = [*PIP, "--no-input", "install", "--progress-bar", "off", *arguments]
    pip = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
    with log.open("w") as record, pip:
        assert pip.stdout is not None
        for line in pip.stdout:
            record.write(line)
            if shown := SHOWN.match(line):
                print(f"  {shown[1]}", flush=True)
    if pip.returncode != 0:
        tail = "".join(log.read_text().splitlines(keepends=True)[-LOG_TAIL_LINES:])
        raise SetupError(f"pip could not install this lane; its last lines ({log.name} holds all):\n{tail}")


def _finds(name: str, version: str) -> bool:
    """True where pip's indexes, as its configuration names them, hold this very version (2.13.0+cpu, say)."""
    answer = subprocess.run([*PIP, "index", "versions", name], capture_output=True, text=True).stdout
    return version in re.split(r"[\s,()]+", answer)


def _choose(asked: str) -> lane.Choice:
    return lane.Choice(asked, f"LANE={asked} asked for") if asked else lane.choose(lane.find_gpus())


def _inputs() -> str:
    """Digest of what says what to install; pyproject's tables for tools are no part of it."""
    digest = hashlib.sha256(json.dumps(lacking.project(), sort_keys=True).encode())
    for file in sorted([*HERE.glob("*.txt"), HERE / "lanes.toml"]):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _read() -> State | None:
    try:
        return State(**json.loads(STATE.read_text()))
    except (OSError, ValueError, TypeError):
        return None


def _order(step: str) -> int:
    """Place of a step among the steps; -1 where nothing is installed."""
    return lacking.steps().index(step) if step else -1


def _say(sentence: str) -> None:
    print(f"smscope: {sentence}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
