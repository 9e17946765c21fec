"""Make `.venv` ready for one step, or check an environment that exists: what every target of the Makefile runs first.

    python constraints/prepare.py bench             .venv, made or adopted, with what the lane's `bench` needs
    python constraints/prepare.py bench --check     this very Python, as it is: names what it lacks, installs nothing

A ready .venv is known by `.venv/smscope.json`, written only after pip has ended well, so an interrupted set-up is
finished by the next one. Standard library only.
"""

import argparse
import fcntl
import hashlib
import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import lacking
import lane
from installer import Environment, SetupError, suitable

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parent
VENV = Environment(CHECKOUT / ".venv")
STATE = VENV.folder / "smscope.json"
INTERRUPTED = 130  # the shell's exit code for a program that SIGINT ended


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
    """Exit code 0 where the environment is ready, 2 where it cannot be, 130 after Ctrl-C."""
    lanes = [name for name, table in lacking.tables().items() if "megabytes" in table]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=lacking.steps())
    parser.add_argument("--lane", choices=["", *lanes], default="", help="instead of what the hardware says")
    parser.add_argument("--check", action="store_true", help="check this Python; install nothing")
    asked = parser.parse_args()
    try:
        if asked.check:
            return check(asked.step, asked.lane)
        with _alone():
            prepare(asked.step, asked.lane)
    except (lane.NoLaneError, SetupError) as error:
        _say(str(error))
        return 2
    except KeyboardInterrupt:
        _say("interrupted; the same command goes on where this one stopped.")
        return INTERRUPTED
    return 0


def check(step: str, asked: str) -> int:
    """Name what this Python lacks for `step`; it stays as it is."""
    choice = _choose(asked)
    lacks = lacking.lacking(lacking.tables()[choice.lane]["extras"][step], choice.lane)
    found = f"{choice.why} -> lane {choice.lane}; Python {sys.version.split()[0]} as it is"
    if lacks:
        _say(f"{found} lacks {', '.join(lacks)}; install that there, or leave PYTHON= out to have .venv made.")
        return 2
    _say(f"{found} has what this needs.")
    return 0


def prepare(step: str, asked: str) -> None:
    """Bring .venv to where `step` can run. Raises NoLaneError, SetupError."""
    state, hardware, inputs = _read(), lane.hardware(), _inputs()
    # A lane with a GPU holds everything that the host lane needs, so LANE=host may use its .venv.
    decided = state is not None and state.hardware == hardware and asked in (state.asked, state.lane, "host")
    choice = lane.Choice(state.lane, state.why) if state is not None and decided else _choose(asked)
    table = lacking.tables()[choice.lane]
    chosen = f"{choice.why} -> lane {choice.lane} ({table['what']})"
    lowest, highest = (_parts(version) for version in table["python"])

    version = VENV.version() if state is None or state.lane == choice.lane else None
    if version is None or not lowest <= version <= highest:
        python = suitable(lowest, highest)
        _say(f"{chosen}; making .venv.")
        VENV.make(python)
        state = None
    else:
        _say(f"{chosen}; using .venv.")
    held = state.step if state is not None and state.inputs == inputs else ""
    if _order(step) > _order(held):
        furthest = max(step, state.step if state is not None else "", key=_order)
        _install(furthest, held, choice.lane)
        held = furthest
    decision = state if state is not None and decided else State(choice.lane, choice.why, asked, hardware, "", "")
    _write(replace(decision, inputs=inputs, step=held))


def _install(step: str, held: str, name: str) -> None:
    table = lacking.tables()[name]
    extras, megabytes, note = table["extras"], table["megabytes"], ""
    if step in table.get("extras_with_cuda_torch", {}) and sys.platform == "linux":
        if VENV.finds("torch", f"{lacking.pins(name)['torch']}+cpu"):
            note = ", torch as its CPU wheel"
        else:
            extras, megabytes = (table[key] | table[f"{key}_with_cuda_torch"] for key in ("extras", "megabytes"))
            note = ", most of it CUDA for torch (pip's configuration names no index of CPU wheels)"
    if VENV.lacks(extras[step], name):
        # What pip's own cache holds is not fetched again, and is not known beforehand.
        download = megabytes[step] - megabytes.get(held, 0)
        _say(f"installing for `{step}`: up to {download} MB to download{note}.")
    else:
        _say(f"installing for `{step}`: nothing to download, everything is there.")
    began = time.monotonic()
    STATE.unlink(missing_ok=True)
    project = f"{CHECKOUT}[{','.join(extras[step])}]" if extras[step] else str(CHECKOUT)
    VENV.install(["--constraint", str(HERE / f"{name}.txt"), "--editable", project])
    _say(f".venv is ready ({time.monotonic() - began:.0f} s).")


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


def _write(state: State) -> None:
    partial = STATE.with_suffix(".partial")
    partial.write_text(json.dumps(asdict(state), indent=2) + "\n")
    partial.replace(STATE)


@contextmanager
def _alone() -> Iterator[None]:
    """Two makes at once set up one after the other. The lock is on this script, so that it leaves no file behind."""
    with Path(__file__).open() as script:
        try:
            fcntl.flock(script, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _say("another make is setting up .venv; waiting for it.")
            fcntl.flock(script, fcntl.LOCK_EX)
        yield


def _order(step: str) -> int:
    """Place of a step among the steps; -1 where nothing is installed."""
    return lacking.steps().index(step) if step else -1


def _parts(version: str) -> tuple[int, int]:
    major, minor = version.split(".")
    return int(major), int(minor)


def _say(sentence: str) -> None:
    print(f"smscope: {sentence}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
