"""The verb `verify`: what runs on this machine's GPU and is right, a file of results for each probe and each kernel."""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from attention.verify import kernel as attention_kernel
from attention.verify import sanitizer
from attention.verify.builds import tuned
from microbench import console, device, paths
from microbench.cli.executing import execute_probes
from microbench.console import Json
from microbench.console.progress import say
from microbench.console.si import counted
from microbench.device.protocol import EMULATED
from microbench.errors import EnvironmentLacks, InputError
from microbench.machine import arch
from microbench.machine import nvml as clocks
from microbench.probe import Probe
from microbench.probes import discover
from microbench.run import lock
from microbench.verify import probed, results
from microbench.verify.results import KernelResult, ProbeResult

PROBLEMS, QUICK_PROBLEMS = 1000, 100  # random problems a kernel
SHOWN = 5  # failures of one probe or kernel; the file has them all


@dataclass(frozen=True)
class Chosen:
    """The probes and attention kernels to verify."""

    probes: tuple[Probe, ...]
    kernels: tuple[str, ...]


def verify(
    problems: Annotated[
        int | None, typer.Option(min=1, help=f"Random problems of each attention kernel, {PROBLEMS} in a full run.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer points, and fewer problems.")] = False,
    sanitize: Annotated[bool, typer.Option("--sanitize", help="A few problems more, under compute-sanitizer.")] = False,
    only: Annotated[
        list[str] | None, typer.Option("--only", help="A probe's name, or an attention kernel's; repeatable.")
    ] = None,
    where: Annotated[
        str | None, typer.Option("--device", help="cuda:N; or emulated:sm100a, which executes probes alone.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the random problems.")] = 0,
    no_wait: Annotated[bool, typer.Option("--no-wait", help="Refuse where another run holds the GPU.")] = False,
    json: Json = False,
) -> None:
    """Verify the probes and the attention kernels on this machine's GPU.

    What each probe's kernels leave is held against NumPy, and each of our attention kernels that serves this GPU is
    held against float64 on random problems. Every probe and kernel adds a line to a file of its own in
    data/verification. With --device emulated:<architecture> the probes are executed without a GPU, and nothing is kept.
    """
    if (where or "").startswith(EMULATED):
        _emulated(str(where), quick, sanitize or problems is not None, only or (), json)
        return
    if where == "host":
        raise InputError("A CPU is verified by `make test`; use --device cuda:N or emulated:<architecture>.")
    gpus = clocks.visible_gpus()
    if not gpus:
        raise EnvironmentLacks(
            f"There is no NVIDIA GPU to verify here ({clocks.why_no_gpu()}); `smscope verify --device emulated:sm90a` "
            "executes the probes without one."
        )
    found = device.choose(where)
    index = int(found.device.partition(":")[2])
    of_run = results.where(gpus[index], quick)
    chosen = choose(only or (), str(of_run["arch"]))
    _require(chosen, gpus[index].name)
    tool = sanitizer.tool_path() if sanitize and chosen.kernels else None
    say(f"Verifying {found.device}: {found.why}.")
    with lock.hold(found.device, not no_wait, say):
        rows: list[ProbeResult | KernelResult] = []
        for row in probed.verify(chosen.probes, found.device, of_run):
            rows.append(row)
            results.append(row)
        count = problems or (QUICK_PROBLEMS if quick else PROBLEMS)
        for path in chosen.kernels:
            rows.append(attention_kernel.verify(path, of_run, count, index, seed, tool))
            results.append(rows[-1])
    _say_all(rows, json)


def choose(only: Sequence[str], of: str) -> Chosen:
    """What runs on this architecture; of that, `only` what is named. Raises InputError for another name."""
    here = arch.by_name(of)
    probes = {probe.name: probe for probe in discover() if probe.runs_on(here)}
    kernels = tuned(here.name)
    for name in only:
        if name not in (*probes, *kernels):
            near = get_close_matches(name, (*probes, *kernels))
            hint = f"did you mean {', '.join(near)}?" if near else "`smscope list` shows where each probe runs."
            raise InputError(f"No probe or attention kernel of {here.name} is called {name!r}; {hint}")
    return Chosen(
        tuple(probe for name, probe in probes.items() if not only or name in only),
        tuple(path for path in kernels if not only or path in only),
    )


def _require(chosen: Chosen, gpu: str) -> None:
    """Raises EnvironmentLacks for what would be missed after minutes."""
    if chosen.probes and find_spec("cupy") is None:
        raise EnvironmentLacks(
            f"CuPy is not installed, so no probe can be verified on {gpu}; `make bench` installs it, or `pip install "
            "cupy-cuda13x` (cupy-cuda12x for a driver of CUDA 12)."
        )
    if chosen.kernels and find_spec("torch") is None:
        raise EnvironmentLacks(
            f"Torch is not installed, so no attention kernel can be verified on {gpu}; install it, or name probes with "
            "--only."
        )


def _emulated(where: str, quick: bool, refused: bool, only: Sequence[str], json: bool) -> None:
    if refused:
        raise InputError(f"{where} executes probes alone; leave --sanitize and --problems out.")
    found = device.choose(where)
    chosen = choose(only, found.device.partition(":")[2])
    if chosen.kernels and only:
        raise InputError(f"{where} executes probes alone, and {chosen.kernels[0]} is an attention kernel.")
    execute_probes(found.device, chosen.probes, quick, json)


def _say_all(rows: Sequence[ProbeResult | KernelResult], json: bool) -> None:
    """Draw both tables and the failures, or write JSON. Raises typer.Exit(1) where something was wrong."""
    if json:
        console.emit([{"ok": row.ok, **row.model_dump(mode="json")} for row in rows])
    else:
        probes = [row for row in rows if isinstance(row, ProbeResult)]
        kernels = [row for row in rows if isinstance(row, KernelResult)]
        if probes:
            headings = ("probe", "points", "arrays right by NumPy", "left out", "failed")
            lines = [(row.probe, row.points, row.arrays, row.unsupported, len(row.failures)) for row in probes]
            console.draw(console.table(f"{counted(len(probes), 'probe')} on {probes[0].gpu}", headings, lines))
        if kernels:
            columns = ("attention kernel", "problems", "right", "worst error", "of lse", "sanitizer")
            title = f"{counted(len(kernels), 'attention kernel')} on {kernels[0].gpu}; 1 is what an error may be"
            console.draw(console.table(title, columns, map(_cells, kernels)))
        for row in rows:
            for failure in row.failures[:SHOWN]:
                say(f"{results.path(row).stem}: {failure.what}: {failure.reason}")
        say(f"Wrote {counted(len(rows), 'file')} in {console.near(_folder(rows[0]))}.")
    if not all(row.ok for row in rows):
        raise typer.Exit(1)


def _folder(row: ProbeResult | KernelResult) -> Path:
    return paths.writable_data() / "verification" / row.gpu


def _cells(row: KernelResult) -> tuple[object, ...]:
    said = "; ".join(f"{each.tool}: {each.complaint or 'nothing found'}" for each in row.sanitizer) or "not asked"
    worst = max(row.worst_ratio, row.worst_block_ratio)
    return row.kernel, row.problems, row.right, worst, row.worst_lse_ratio, said
