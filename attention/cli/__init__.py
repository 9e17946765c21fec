"""`python -m attention explain|bench|check|picks`: which kernel runs and why, and how fast it is here.

Exit codes: 0 done; 1 it could not be done, or a kernel gave a wrong result; 2 an input that makes no sense; 130 Ctrl-C.
"""

import json as json_module
import sys
from importlib.util import find_spec
from typing import Annotated, Any

import typer

from attention.choose import learned
from attention.choose.explain import explain_on
from attention.choose.machine import machine_profile, nameable, named_machine
from attention.cli.picks import PICKS, shown, this_machine
from attention.compare import bench as benchmark
from attention.compare import bench_table
from attention.compare.calls import grid
from attention.compare.calls.show import show as show_calls
from attention.errors import AttentionError, ProblemError
from attention.problem import AttentionProblem
from attention.timed.timing import FIELDS, Pass
from attention.verify import build_matrix
from microbench import console
from microbench.console import Json
from microbench.console.progress import say
from microbench.console.si import counted
from microbench.errors import InputError, SmscopeError
from microbench.machine.arch import by_name
from microbench.machine.cpu import host_slug
from microbench.machine.nvml import visible_gpus
from microbench.results.profile import Profile

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Attention that is chosen by what was measured of this machine.",
)


DTYPE_HELP = "float16, bfloat16, float32 or float64;"
Dtype = Annotated[str | None, typer.Option("--dtype", help=f"{DTYPE_HELP} float32 by default.")]
ExplainedDtype = Annotated[
    str | None,
    typer.Option("--dtype", help=f"{DTYPE_HELP} by default float32 on a CPU, bfloat16 on a GPU (float16 before sm80)."),
]
Causal = Annotated[
    bool, typer.Option("--causal", help="Query i sees keys 0 to i (top-left, as is_causal); see --flash.")
]
Scale = Annotated[float | None, typer.Option("--scale", help="The factor before the softmax; 1/sqrt(D) by default.")]
Only = Annotated[
    str | None, typer.Option("--only", help="smscope or torch, for that owner's kernels; or one variant's name.")
]
ExplainedGpu = Annotated[
    str | None,
    typer.Option(
        "--gpu", help="A profile, GPU or architecture: a100, sm89; this CPU by default.", autocompletion=nameable
    ),
]
Backward = Annotated[bool, typer.Option("--backward", help="Of the gradients, from the forward's out and lse.")]
SHAPE_HELP = "B,Hq,Hkv,Sq,Skv,D, such as 1,8,8,1024,1024,64; a seventh number is Dv."


@app.command()
def explain(
    shape: Annotated[str, typer.Option("--shape", help=SHAPE_HELP)] = PICKS[1][0],
    dtype: ExplainedDtype = None,
    causal: Causal = False,
    scale: Scale = None,
    flash: Annotated[
        bool, typer.Option("--flash", help="flash_attn_func's alignment: the last query sees the last key.")
    ] = False,
    window: Annotated[
        str | None, typer.Option("--window", help="Keys left and right that are seen, such as 1024,0; -1 is all.")
    ] = None,
    feature: Annotated[
        list[str] | None, typer.Option("--feature", help="Such as softcap=30, alibi, sinks, mask=bool. Repeatable.")
    ] = None,
    varlen: Annotated[
        str | None, typer.Option("--varlen", help="Packed: TQ,TKV rows in all; B sequences of at most Sq and Skv.")
    ] = None,
    gpu: ExplainedGpu = None,
    only: Only = None,
    backward: Backward = False,
    json: Json = False,
) -> None:
    """Which kernel serves a problem, which measured constants decided, and why every other kernel does not."""
    machine = machine_profile("cpu") if gpu is None else named_machine(gpu)
    tokens = pair("--varlen", varlen) if varlen is not None else (0, 0)
    problem = AttentionProblem.parse_shape(
        shape,
        dtype=dtype or _usual_dtype(machine.profile),
        causal=causal,
        scale=scale,
        alignment="bottom_right" if flash or window is not None or varlen is not None else "top_left",
        window=pair("--window", window) if window is not None else (-1, -1),
        **dict(field_of(text) for text in feature or ()),
        varlen=varlen is not None,
        tokens_q=tokens[0],
        tokens_kv=tokens[1],
    )
    passes = pass_asked(backward)
    explanation = explain_on(
        machine.profile, problem, only=only, passes=passes, caution=machine.caution, known=machine.known
    )
    console.emit(json_module.loads(explanation.to_json())) if json else console.draw(explanation)


@app.command()
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


@app.command()
def check(
    arch: Annotated[
        list[str] | None, typer.Option("--arch", help="sm70 ... sm120a; repeatable; all by default.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Every legal configuration with every feature.")] = False,
    combined: Annotated[
        bool, typer.Option("--combined", help="Every legal configuration with every combination of features: hours.")
    ] = False,
    write: Annotated[bool, typer.Option("--write", help="Write the tables in data/verification again.")] = False,
    json: Json = False,
) -> None:
    """Compile our CUDA kernels without a GPU: no spill, no fatal note, every instruction they were written for."""
    from microbench.verify import matrix, show, tables

    if write and (arch or every or combined):
        raise InputError("The tables cover the picks on all GPUs; leave out what selects others, or --write.")
    wanted = tuple(by_name(name).name for name in arch or ())
    jobs = build_matrix.jobs(wanted=wanted, every=every, combined=combined)
    for name in wanted:
        if all(job.arch != name for job in jobs):
            say(f"No tuned CUDA kernel for {name} yet, so there is nothing to compile.")
    if not jobs:
        if json:
            console.emit([])
        return
    rows = show.watched(jobs)
    show.say_all(rows, json)
    if write:
        show.say_written(tables.write_all(tables.AttentionRow, matrix.table(rows, tables.AttentionRow)))


@app.command()
def picks(
    gpu: Annotated[str | None, typer.Option("--gpu", help="A profile's name; this machine's own by default.")] = None,
    backward: Backward = False,
    json: Json = False,
) -> None:
    """Say for three attention shapes which kernel would run and why. Needs a profile, and no torch."""
    name = this_machine() if gpu is None else gpu
    machine = named_machine(name)
    profile = machine.profile
    problems = (
        AttentionProblem.parse_shape(shape, dtype=_usual_dtype(profile), causal=causal) for shape, causal in PICKS
    )
    options: dict[str, Any] = {"passes": pass_asked(backward), "caution": machine.caution, "known": machine.known}
    found = [explain_on(profile, each, **options) for each in problems]
    if json:
        console.emit([json_module.loads(each.to_json()) for each in found])
    else:
        cautions = (f"Caution: {machine.caution}.",) if machine.caution else ()
        console.draw(*shown(profile, found, name), *cautions, log_columns=console.BENCH_COLUMNS)


def pass_asked(backward: bool) -> Pass:
    return "backward" if backward else "forward"


def pair(option: str, text: str) -> tuple[int, int]:
    """Two whole numbers as typed. Raises ProblemError."""
    try:
        first, second = (int(part) for part in text.split(","))
    except ValueError:
        raise ProblemError(f"{option} {text} is not two whole numbers; write them as in {option} 1024,0.") from None
    return first, second


def field_of(text: str) -> tuple[str, Any]:
    """A field of a feature and its value, of the kind of its default. Raises ProblemError."""
    name, _, value = text.partition("=")
    if name not in FIELDS:
        raise ProblemError(f"--feature {text}: no feature has a field {name!r}; there are {', '.join(sorted(FIELDS))}.")
    if isinstance(FIELDS[name], bool):
        return name, value not in ("0", "false", "False")
    return name, value


def _usual_dtype(profile: Profile) -> str:
    if profile.arch == "host":
        return "float32"
    return "float16" if profile.arch in ("sm70", "sm75") else "bfloat16"


def main(arguments: list[str] | None = None) -> None:
    try:
        app(arguments, prog_name="python -m attention")
    except (AttentionError, SmscopeError) as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)
