"""`prewarm`: the kernels that calls will run, compiled ahead."""

from pathlib import Path
from typing import Annotated

import typer

from attention.ahead.prewarm import here
from attention.ahead.prewarm import prewarm as compile_ahead
from attention.ahead.recorded import RecordedCall, calls_of
from attention.choose.machine import nameable, named_machine
from attention.cli.options import DTYPE_HELP, SHAPE_HELP, usual_dtype
from attention.errors import ProblemError
from attention.problem import AttentionProblem
from microbench import console
from microbench.console import Json


def prewarm(
    file: Annotated[Path | None, typer.Argument(help="What attention.record wrote.")] = None,
    shape: Annotated[list[str] | None, typer.Option("--shape", help=f"{SHAPE_HELP} Repeatable.")] = None,
    dtype: Annotated[
        str | None, typer.Option("--dtype", help=f"{DTYPE_HELP} of shapes; bfloat16 by default, float16 before sm80.")
    ] = None,
    causal: Annotated[bool, typer.Option("--causal", help="The shapes are causal, as is_causal is.")] = False,
    gpu: Annotated[
        str | None,
        typer.Option(
            "--gpu", help="A profile, GPU or architecture: a100, sm89; this GPU by default.", autocompletion=nameable
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Compile the kernels that calls will run, on all cores, before a call waits for them."""
    if file is None and not shape:
        raise ProblemError("prewarm has nothing to compile; give a file of attention.record, or --shape.")
    usual = usual_dtype((named_machine(gpu) if gpu is not None else here()).profile)
    calls = list(calls_of(file)) if file is not None else []
    problems = (AttentionProblem.parse_shape(each, dtype=dtype or usual, causal=causal) for each in shape or ())
    done = compile_ahead([*calls, *map(RecordedCall, problems)], gpu=gpu)
    told = {
        "gpu": done.gpu,
        "arch": done.arch,
        "compiled": done.compiled,
        "kept": done.kept,
        "refused": list(done.refused),
        "caution": done.caution,
        "calls": [
            {"call": str(each.call), "variant": each.variant, "config": str(each.config), "why": each.why}
            for each in done.served
        ],
    }
    console.emit(told) if json else console.draw(str(done))
    if done.refused:
        raise typer.Exit(1)
