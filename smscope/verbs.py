"""The verbs that need both packages: `bench`, `check`, `profile` and `test-gpu` do what `make` does by these names.

`verify` has a file of its own.
"""

import importlib.util
import io
import json as json_module
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from functools import wraps
from pathlib import Path
from typing import Annotated, Any
from xml.etree import ElementTree

import typer

from attention import cli as attention_cli
from attention.choose import learned
from attention.verify import build_matrix
from microbench import console, paths
from microbench.cli import check as probes_cli
from microbench.cli import measuring
from microbench.cli import profile as probes_cli_profile
from microbench.console import Archs, Folders, Json, Probes, Write
from microbench.console.progress import say
from microbench.console.si import counted
from microbench.device import require_measuring
from microbench.errors import EnvironmentLacks, InputError
from microbench.machine import arch as archs
from microbench.machine import nvml
from microbench.probes import discover
from microbench.results import derive
from microbench.results.profile import Profile, available
from microbench.verify import matrix, show, tables
from smscope import campaigning, flooring, regretting, tuning, verifying
from smscope.verified import received

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)

app.command()(verifying.verify)
app.command()(campaigning.campaign)
app.command()(regretting.regret)
app.command()(flooring.floors)
app.command("tune")(tuning.tune_verb)

BENCH_HELP = """Measure this machine, write one run and its profile, and say which attention kernels run by it.

It does `run`, on a CPU times attention, then does `picks`. --quick, --only and --json leave the timings out; --json
prints {"run": ..., "picks": ...}. `bench-attention` times the attention kernels alone."""


@app.command("bench", help=BENCH_HELP)
@wraps(measuring.run)
def bench(*arguments: Any, **options: Any) -> None:
    """`run` with its own options, then `picks` for the device that was measured."""
    require_measuring(options["where"] or "")
    gpu = _slug(options["where"])
    if not options["json"]:
        measuring.run(*arguments, **options)
        if not (options["quick"] or options["only"]):
            attention_cli.bench.bench(after_run="host" if gpu == "host" else "any")
        attention_cli.picks.picks(gpu)
        return
    with _told() as run:
        measuring.run(*arguments, **options)
    with _told() as picks:
        attention_cli.picks.picks(gpu, json=True)
    console.emit({"run": json_module.loads(run.getvalue()), "picks": json_module.loads(picks.getvalue())})


@contextmanager
def _told() -> Iterator[io.StringIO]:
    """What a verb writes to stdout, kept; written after all where the verb ends with an exit code."""
    kept = io.StringIO()
    try:
        with redirect_stdout(kept):
            yield kept
    except typer.Exit:
        print(kept.getvalue(), end="", flush=True)
        raise


def _slug(device: str | None) -> str | None:
    """The name that a run on `device` has; None for the best device there is."""
    if device is None or device == "host":
        return device
    index = device.partition(":")[2] or "0"
    gpus = nvml.visible_gpus()
    return gpus[int(index)].slug if index.isdecimal() and int(index) < len(gpus) else None


@app.command()
def check(
    gpu: probes_cli.Compared = None,
    arch: Archs = None,
    only: Probes = None,
    every: Annotated[bool, typer.Option("--all", help="Attention kernels in every legal configuration.")] = False,
    latencies: probes_cli.Latencies = False,
    write: Write = False,
    probes: Folders = None,
    json: Json = False,
) -> None:
    """Compile every kernel for every architecture, without a GPU, and hold its SASS to its contract.

    It compiles the kernels of the probes and of attention. With GPU, --only, --latencies or --probes it takes those of
    probes alone; `check-attention` takes those of attention alone.
    """
    if gpu or only or latencies or probes:
        if every:
            raise InputError("--all selects attention kernels; leave out --all, or what selects probes.")
        probes_cli.check(gpu, arch=arch, only=only, latencies=latencies, write=write, probes=probes, json=json)
        return
    if write and (arch or every):
        raise InputError("The tables of data/verification cover all kernels; leave out --arch and --all, or --write.")
    wanted = tuple(archs.by_name(name).name for name in arch or ())
    of_probes = show.watched(matrix.jobs(discover(), wanted))
    of_attention = show.watched(build_matrix.jobs(wanted=wanted, asked=build_matrix.EVERY if every else ()))
    if write:
        for kind, rows in ((tables.BuildRow, of_probes), (build_matrix.AttentionRow, of_attention)):
            show.say_written(tables.write_all(kind, matrix.table(rows, kind)))
    show.say_all([*of_probes, *of_attention], json)


@app.command()
def profile(
    gpu: Annotated[str | None, typer.Argument(help="One machine; all that have runs by default.")] = None,
    sent: Annotated[
        Path | None,
        typer.Option(
            "--from", help="A file that somebody's `smscope verify` wrote.", exists=True, dir_okay=False, metavar="FILE"
        ),
    ] = None,
    probes: Folders = None,
    json: Json = False,
) -> None:
    """Write profiles again from the runs, byte for byte, and corrections from the timings of attention.

    With --from, the run in a file of `smscope verify` goes to data/runs, the file to data/verification, and the profile
    of that kind of GPU follows from its runs.
    """
    if sent is not None:
        if gpu or probes:
            raise InputError("--from names a file, which says of which GPU it is; leave out the GPU and --probes.")
        _profile_from(sent, json)
        return
    probes_cli_profile(gpu, probes=probes, json=json)
    # From a wheel the shipped corrections stand; a user's own are those of machines with runs or timings of his.
    everywhere = available() if paths.CHECKOUT else derive.gpus()
    learned.write_of(*([Profile.load(gpu).gpu] if gpu else everywhere))


def _profile_from(sent: Path, json: bool) -> None:
    found = received.receive(sent)
    learned.write_of(found.gpu)
    written = [str(path) for path in (*found.runs, found.file, found.profile)]
    console.show(
        json,
        {"gpu": found.gpu, "constants": found.constants, "problems": found.problems, "files": written},
        f"{found.gpu}: {counted(found.constants, 'constant')}.",
        *found.problems,
        *(f"Wrote {console.near(Path(path))}." for path in written),
        f"Once these are committed, `{paths.typed('profile')}` writes the profile again, byte for byte.",
    )


@app.command("test-gpu")
def test_gpu(
    arguments: Annotated[
        list[str] | None, typer.Argument(help="For pytest, in a checkout: smscope test-gpu -- -k forward")
    ] = None,
    json: Json = False,
) -> None:
    """Run the tests that need an NVIDIA GPU.

    In a checkout this runs all tests with the mark `gpu`, as `make test-gpu` does. An installed package has no tests;
    there it is `smscope verify --quick`.
    """
    if not nvml.visible_gpus():
        raise nvml.no_gpu("to test here")
    if paths.CHECKOUT is not None and (paths.CHECKOUT / "tests" / "gpu").is_dir():
        _run_tests(paths.CHECKOUT, arguments or [], json)
        return
    if arguments:
        raise InputError("Arguments are for pytest, and the GPU tests are in a checkout only; leave the arguments out.")
    say("The GPU tests are in a checkout of smscope only; `smscope verify --quick` runs instead.")
    verifying.verify(quick=True, json=json)


def _run_tests(checkout: Path, arguments: Sequence[str], json: bool) -> None:
    """What pytest says goes to stdout; with --json its summary alone does, and the rest to stderr."""
    if importlib.util.find_spec("pytest") is None:
        raise EnvironmentLacks("The GPU tests need pytest, which is not installed here; `make test-gpu` installs it.")
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-m", "gpu", f"--junitxml={results}", *arguments]
        done = subprocess.run(command, cwd=checkout, stdout=sys.stderr if json else None)
        if json and results.is_file():
            (suite,) = ElementTree.parse(results).getroot()
            counts = {name: int(suite.get(name, 0)) for name in ("tests", "failures", "errors", "skipped")}
            console.emit({**counts, "seconds": float(suite.get("time", 0.0))})
    if done.returncode:
        raise typer.Exit(1)
