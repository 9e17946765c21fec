"""The verb `verify`: what runs on this machine's GPU and is right, a file of results for each probe and each kernel."""

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from importlib.util import find_spec
from typing import Annotated

import typer

from attention.errors import ADDS_TORCH
from attention.variant import by_path
from attention.verify import kernel as attention_kernel
from attention.verify import sanitizer
from attention.verify.builds import as_source, tuned
from attention.verify.rows import ForwardProblemRow
from microbench import console, device, paths
from microbench.cli.executing import say_executed
from microbench.console import Json
from microbench.console.progress import say
from microbench.console.si import counted
from microbench.device.emulated import EmulatedGpu
from microbench.device.protocol import EMULATED
from microbench.errors import EnvironmentLacks, InputError
from microbench.machine import arch
from microbench.machine import nvml as clocks
from microbench.probe import Probe
from microbench.probes import discover
from microbench.run import lock
from microbench.verify import probed, results
from microbench.verify.blind import cases as blind
from microbench.verify.blind import found
from microbench.verify.differential import compare
from microbench.verify.executed import execute
from microbench.verify.results import Result
from smscope.verified import lacks, whole
from smscope.verified.budget import parsed
from smscope.verified.plan import Asked

PROBLEMS, QUICK_PROBLEMS = 1000, 100  # random problems a kernel
EMULATED_PROBLEMS = 6  # a second or two each, and ten where the emulator compiles the kernel first
SHOWN = 5  # failures of one probe or kernel; the file has them all


def verify(
    problems: Annotated[
        int | None, typer.Option(min=1, help=f"Random problems of each attention kernel, {PROBLEMS} in a full run.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer points, and fewer problems.")] = False,
    sanitize: Annotated[bool, typer.Option("--sanitize", help="A few problems more, under compute-sanitizer.")] = False,
    only: Annotated[
        list[str] | None, typer.Option("--only", help="A probe, wrappers or an attention kernel; repeatable.")
    ] = None,
    where: Annotated[
        str | None, typer.Option("--device", help="cuda:N; or emulated:sm100a, for what needs no GPU.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the random problems.")] = 0,
    no_wait: Annotated[bool, typer.Option("--no-wait", help="Refuse where another run holds the GPU.")] = False,
    within: Annotated[
        str | None, typer.Option("--budget", help="9m, 90s or 1h: stop cleanly before; the next call goes on.")
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Begin anew where an unfinished run could go on.")] = False,
    json: Json = False,
) -> None:
    """Verify all of it on this machine's GPU: health, probes, wrappers of PTX, attention kernels, peers.

    What each probe's kernels leave is held against NumPy, what each wrapper does against the emulator, and each of our
    attention kernels that serves this GPU against float64 on random problems, before it is timed beside torch's. All
    of it is one file and one page to send, in data/verification/<gpu>; what was interrupted goes on in the next call,
    and what this host lacks is a named gap. Exit code 1 where something was wrong.

    --only verifies parts by name, each of which adds a line to a file of its own; also a kernel of ours for an earlier
    generation, whose source is compiled for this GPU. With --device emulated:<architecture>
    probes and small problems of attention are executed without a GPU, which keeps nothing, and the emulator is given
    kernels with planted bugs; what it finds is data/verification/blind_bugs.csv.
    """
    if only or (where or "").startswith(EMULATED):
        for option, given in (("--budget", within), ("--fresh", fresh)):
            if given:
                raise InputError(f"{option} is of a whole run on a GPU: leave out {option}, or what selects less.")
    if within is not None:
        parsed(within)
    if (where or "").startswith(EMULATED):
        if sanitize:
            raise InputError(
                f"compute-sanitizer needs a GPU; leave --sanitize out with {where}, which checks every access."
            )
        _emulated(str(where), quick, only or (), problems or EMULATED_PROBLEMS, json)
        return
    if where == "host":
        raise InputError("A CPU is verified by `make test`; use --device cuda:N or emulated:<architecture>.")
    gpus = clocks.visible_gpus()
    if not gpus:
        without = "`smscope verify --device emulated:sm90a` executes the probes without one"
        raise clocks.no_gpu("to verify here", without)
    chosen = device.choose(where)
    index = int(chosen.device.partition(":")[2])
    count = problems or (QUICK_PROBLEMS if quick else PROBLEMS)
    asked = Asked(gpus[index], index, count, quick, seed, sanitize, not no_wait)
    said = f"Verifying {chosen.device}: {chosen.why}."
    if only:
        _say_all(_named_parts(asked, only, said), json)
    else:
        say(said)
        again = _again(where, problems, within, quick=quick, sanitize=sanitize, seed=seed, no_wait=no_wait)
        whole.verify(asked, whole.Call(within, fresh, json, again))


def _named_parts(asked: Asked, only: Sequence[str], said: str) -> list[Result]:
    """Verify the parts of these names; each result is on file before the next part begins."""
    of_run = asked.where()
    probes = _probes(asked.arch)
    ours = (*tuned(asked.arch), *as_source(asked.arch))
    of_probes, wrappers, kernels = named(only, asked.gpu.name, [*probes], compare.NAMES, ours)
    for lacking in (of_probes or wrappers) and lacks.cupy(asked.gpu.name), kernels and lacks.torch(asked.gpu.name):
        if lacking:
            raise EnvironmentLacks(str(lacking))
    tool = sanitizer.tool_path() if asked.sanitize and kernels else None
    say(said)

    def steps() -> Iterator[Result]:
        yield from probed.verify([probes[name] for name in of_probes], asked.device, of_run)
        yield from compare.verify(wrappers, asked.index, of_run)
        for path in kernels:
            yield attention_kernel.verify(path, of_run, asked.problems, asked.index, asked.seed, tool)

    with lock.hold(asked.device, asked.wait, say):
        rows: list[Result] = []
        for row in steps():
            rows.append(row)
            results.append(row)
    return rows


def _again(where: str | None, problems: int | None, within: str | None, **others: bool | int) -> str:
    """The command that goes on with what this one leaves."""
    words = [console.smscope(), "verify"]
    for name, value in (("--device", where), ("--problems", problems), ("--budget", within)):
        words += [name, str(value)] if value is not None else []
    for name, given in others.items():
        flag = f"--{name.replace('_', '-')}"
        words += ([flag] if given else []) if isinstance(given, bool) else ([flag, str(given)] if given else [])
    return " ".join(words)


def named(only: Sequence[str], where: str, *groups: Sequence[str]) -> list[tuple[str, ...]]:
    """These names in each group, all where there is none. Raises InputError for one that is in no group."""
    known = [name for group in groups for name in group]
    short = {path.rpartition("/")[2]: path for path in known if "/" in path}
    only = [short.get(name, name) for name in only]
    for name in only:
        if name not in known:
            near = get_close_matches(name, known)
            hint = f"did you mean {', '.join(near)}?" if near else "`smscope list` shows where each probe runs."
            raise InputError(f"Nothing called {name!r} is verified on {where}; {hint}")
    return [tuple(name for name in group if not only or name in only) for group in groups]


def _probes(of: str) -> dict[str, Probe]:
    here = arch.by_name(of)
    return {probe.name: probe for probe in discover() if probe.runs_on(here)}


def _emulated(where: str, quick: bool, only: Sequence[str], problems: int, json: bool) -> None:
    of = device.choose(where).device.partition(":")[2]
    probes = _probes(of)
    planted = [name for name, kernel in blind.KERNELS.items() if kernel.arch == of]
    of_probes, wrong, kernels = named(only, where, [*probes], planted, tuned(of))
    gpu = EmulatedGpu(of)
    executed = execute(tuple(probes[name] for name in of_probes), gpu, quick)
    bugs = found.rows_of(wrong)
    if bugs and paths.CHECKOUT:
        found.write(bugs)
    if kernels and find_spec("torch") is None:
        lacking = "Attention kernels are executed by way of torch's tensors, and torch is not installed"
        if only:
            raise EnvironmentLacks(f"{lacking}; {ADDS_TORCH}.")
        say(f"{lacking}, so they are left out; {ADDS_TORCH}.")
        kernels = ()
    rows = [row for path in kernels for row in _problems_of(path, of, problems)]
    if rows and not json:
        lines = [(row.variant, row.problem, row.config, row.reason or "right") for row in rows]
        console.draw(console.table("Attention on the emulator", ("kernel", "problem", "configuration", ""), lines))
    say_executed(executed, gpu, json, bugs, rows)


def _problems_of(path: str, of: str, problems: int) -> Sequence[ForwardProblemRow]:
    from attention.verify import emulated

    return emulated.judged(emulated.cases_with(by_path(path), most=problems, arch=of))


def _say_all(rows: Sequence[Result], json: bool) -> None:
    """Draw a table and the failures, or write JSON. Raises typer.Exit(1) where something was wrong."""
    if json:
        console.emit([{"ok": row.ok, **row.model_dump(mode="json")} for row in rows])
    else:
        lines = [(row.folder, row.subject, row.told, "right" if row.ok else "WRONG") for row in rows]
        console.draw(console.table(f"Verified on {rows[0].gpu}", ("", "name", "found", ""), lines))
        for row in rows:
            for failure in row.failures[:SHOWN]:
                say(f"{row.subject}: {failure.what}: {failure.reason}")
        folder = paths.writable_data() / "verification" / rows[0].gpu
        say(f"Wrote {counted(len(rows), 'file')} in {console.near(folder)}.")
    if not all(row.ok for row in rows):
        raise typer.Exit(1)
