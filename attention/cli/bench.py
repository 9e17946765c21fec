"""`bench`: how fast our kernels are here, beside torch's and everybody else's."""

from importlib.util import find_spec
from typing import Annotated

import typer

from attention.choose import learned
from attention.cli.options import SHAPE_HELP, Backward, Dtype, Only, pass_asked
from attention.compare import bench as benchmark
from attention.compare import bench_table
from attention.compare.calls import grid
from attention.compare.calls.show import show as show_calls
from attention.errors import ADDS_TORCH, EnvironmentLacks
from attention.problem import AttentionProblem
from microbench import console
from microbench.console import Json
from microbench.console.progress import say
from microbench.console.si import counted
from microbench.errors import InputError
from microbench.machine.cpu import host_slug
from microbench.machine.nvml import visible_gpus


def bench(
    shape: Annotated[list[str] | None, typer.Option("--shape", help=SHAPE_HELP + " Repeatable.")] = None,
    dtype: Dtype = None,
    causal: Annotated[
        bool | None, typer.Option("--causal/--full", help="Only causal, or only full; both by default.")
    ] = None,
    only: Only = None,
    every: Annotated[bool, typer.Option("--all", help="Every legal configuration, not the best alone.")] = False,
    peers: Annotated[
        bool, typer.Option("--peers", help="On a GPU: time the grid and ten more cells beside every installed peer.")
    ] = False,
    backward: Backward = False,
    calls: Annotated[
        bool,
        typer.Option("--calls", help="On a CPU: 100 whole calls of sdpa beside torch's function."),
    ] = False,
    flex: Annotated[bool, typer.Option("--flex", help="With --peers: FlexAttention too, slow to compile.")] = False,
    after_run: Annotated[
        str | None,
        typer.Option("--after-run", help="host or any: what `make bench` does last; any stops beside a GPU."),
    ] = None,
    json: Json = False,
) -> None:
    """Time our kernel beside torch's on this CPU, or beside all peers on a GPU; timings go to data/attention."""
    if peers:
        chosen = (("--shape", shape), ("--dtype", dtype), ("--causal/--full", causal), ("--only", only))
        for option, value in (*chosen, ("--backward", backward or None)):
            if value is not None:
                raise InputError(f"--peers times its own grid of cells; leave out {option} or --peers.")
        _bench_peers(every, flex, json)
        return
    if calls:
        show_calls(json)
        return
    if flex:
        raise InputError("--flex adds a peer to --peers; pass --peers too, or leave --flex out.")
    if after_run is not None and not _can_follow(after_run):
        return
    if shape:
        problems = [
            AttentionProblem.parse_shape(text, dtype=dtype or "float32", causal=triangle)
            for text in shape
            for triangle in ((False, True) if causal is None else (causal,))
        ]
    else:
        problems = grid.problems(dtype, causal)
    unpredicted = bool(shape) or backward
    measured = benchmark.bench(problems, passes=pass_asked(backward), only=only, every=every, unpredicted=unpredicted)
    disturbed = next((each.disturbed for each in measured if each.disturbed), ())
    if disturbed:
        say(
            f"Other processes used a tenth of the cores or more ({', '.join(disturbed)}), so these timings were not "
            "kept. Run `smscope bench-attention` again on an idle machine."
        )
    else:
        learned.write_of(host_slug())
    if after_run is not None:
        if not disturbed:
            what = counted(len(problems), "problem")
            say(f"Timed our attention kernel beside torch's on {what}. Choices on this CPU use these timings.")
    elif json:
        console.emit([bench_table.row(each, measured) for each in measured])
    else:
        headings = ("problem", "candidate", "predicted", "measured", "middle half", "speed", "of torch's", "")
        title = f"{counted(len(problems), 'problem')} on this CPU"
        rows = [bench_table.cells(each, measured) for each in measured]
        console.draw(console.table(title, headings, rows))
    if any(each.failure for each in measured):
        raise typer.Exit(1)


def _can_follow(where: str) -> bool:
    """Whether `make bench` can end with timings of this CPU's kernels: a GPU's run is followed by none."""
    if where != "host" and visible_gpus():
        return False
    if find_spec("torch") is None:
        say(
            "Torch is not installed here, so attention was not timed. Torch's own kernel serves this CPU until "
            "`smscope bench-attention` has run."
        )
        return False
    return True


def _bench_peers(every: bool, flex: bool, json: bool) -> None:
    if find_spec("torch") is None:
        raise EnvironmentLacks(f"The peers are torch's kernels among others, and torch is not installed; {ADDS_TORCH}.")
    from attention.compare import run

    outcomes = run.compare(every=every, flex=flex, tell=lambda outcome: None)
    timed = [outcome.timing for outcome in outcomes if outcome.timing is not None]
    if timed:
        learned.write_of(timed[0].gpu)
        _draw_peers(timed[0].gpu)
    if json:
        console.emit([outcome.row for outcome in outcomes])
        return
    headings = ("problem", "candidate", "time", "speed", "")
    console.draw(console.table("our kernels beside their peers", headings, [each.cells for each in outcomes]))


def _draw_peers(gpu: str) -> None:
    """The figure of what was just timed; the timings are on file whether it can be drawn or not."""
    try:
        from attention.compare import figure
    except ImportError as error:
        say(f"No figure was drawn, because {error.name} is not installed; install it by `make report` or pip.")
        return
    path = figure.write(gpu)
    if path is not None:
        say(f"Drew {path}.")
