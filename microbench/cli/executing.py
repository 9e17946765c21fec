"""What `run --device emulated:<architecture>` prints: which points were executed, and which were wrong."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Protocol

import typer
from rich.table import Table

from microbench import console
from microbench.console.progress import say
from microbench.device.emulated import EmulatedGpu
from microbench.emulator import MODES
from microbench.errors import InputError
from microbench.probe import Probe
from microbench.verify.executed import Executed, execute
from microbench.verify.tables import BlindRow


def execute_probes(device: str, probes: tuple[Probe, ...], quick: bool, json: bool) -> None:
    """Execute the probes' kernels without their GPU; exit code 1 where one is wrong. Raises InputError."""
    gpu = EmulatedGpu(device.partition(":")[2])
    here = tuple(probe for probe in probes if probe.runs_on(gpu.machine.arch))
    if not here:
        raise InputError(f"None of these probes runs on {gpu.machine.arch.name}; `smscope list` says where each does.")
    say_executed(execute(here, gpu, quick), gpu, json)


class Problem(Protocol):
    """A row that is right or wrong."""

    ok: bool

    def model_dump(self) -> dict[str, Any]: ...


def say_executed(
    rows: tuple[Executed, ...],
    gpu: EmulatedGpu,
    json: bool,
    bugs: tuple[BlindRow, ...] = (),
    problems: Sequence[Problem] = (),
) -> None:
    """Draw what was executed and what came of planted bugs, or write JSON; exit code 1 where anything is wrong."""
    if json:
        executed = [asdict(row) | {"point": dict(row.point.values)} for row in rows]
        console.emit([*executed, *(row.model_dump() for row in bugs), *(row.model_dump() for row in problems)])
    else:
        if rows:
            console.draw(_table(rows, gpu.machine.name))
        for row in rows:
            if row.status == "failed":
                say(f"{row.probe}, {row.point}: {row.reason}")
        if bugs:
            lines = [(row.kernel, row.bug, *row.today) for row in bugs]
            console.draw(console.table("Planted bugs, and what each mode says", ("kernel", "bug", *MODES), lines))
    if any(row.status == "failed" for row in rows) or not all(row.ok for row in problems):
        raise typer.Exit(1)


def _table(rows: tuple[Executed, ...], machine: str) -> Table:
    found = {
        name: Counter(row.status for row in rows if row.probe == name) for name in dict.fromkeys(r.probe for r in rows)
    }
    checked = {name: sum(row.checked for row in rows if row.probe == name) for name in found}
    return console.table(
        f"Executed on {machine}: nothing was timed, and nothing is kept",
        ("probe", "points executed", "arrays right by NumPy", "left out", "failed"),
        [(name, n["emulated"], checked[name], n["unsupported"], n["failed"]) for name, n in found.items()],
    )
