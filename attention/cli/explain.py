"""`explain`: which kernel serves a problem, and why."""

import json as json_module
from typing import Annotated, Any

import typer

from attention.campaign.posed import read_lengths
from attention.choose.explain import brief as briefly
from attention.choose.explain.explain import explain_named
from attention.choose.lengths import UNKNOWN, Lengths, counted
from attention.choose.machine import machine_profile, nameable, named_machine
from attention.cli.options import DTYPE_HELP, SHAPE_HELP, Backward, Only, pass_asked, usual_dtype
from attention.cli.picks import PICKS
from attention.errors import ProblemError
from attention.problem import AttentionProblem
from attention.timed.timing import FIELDS
from microbench import console
from microbench.console import Json

ExplainedDtype = Annotated[
    str | None,
    typer.Option("--dtype", help=f"{DTYPE_HELP} by default float32 on a CPU, bfloat16 on a GPU (float16 before sm80)."),
]
Causal = Annotated[
    bool, typer.Option("--causal", help="Query i sees keys 0 to i (top-left, as is_causal); see --flash.")
]
Scale = Annotated[float | None, typer.Option("--scale", help="The factor before the softmax; 1/sqrt(D) by default.")]
ExplainedGpu = Annotated[
    str | None,
    typer.Option(
        "--gpu", help="A profile, GPU or architecture: a100, sm89; this CPU by default.", autocompletion=nameable
    ),
]


BOOLS = {"": True, "1": True, "true": True, "0": False, "false": False}


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
        str | None, typer.Option("--varlen", help="Packed: TQ,TKV rows in all; B sequences, the longest of Sq and Skv.")
    ] = None,
    lengths: Annotated[
        str | None,
        typer.Option("--lengths", help="Rows of each packed sequence, 4096+15x256: for --varlen."),
    ] = None,
    gpu: ExplainedGpu = None,
    only: Only = None,
    backward: Backward = False,
    brief: Annotated[
        bool, typer.Option("--brief", help="The pick, its time and bound, and the second best alone.")
    ] = False,
    json: Json = False,
) -> None:
    """Which kernel serves a problem, which measured constants decided, and why every other kernel does not."""
    machine = machine_profile("cpu") if gpu is None else named_machine(gpu)
    runs = UNKNOWN if lengths is None else lengths_of(lengths, shape)
    if lengths is not None and varlen is not None:
        raise ProblemError("--lengths and --varlen both say how sequences are packed; give one of them.")
    if runs:
        varlen = ",".join([str(sum(run.many * run.queries for run in runs))] * 2)
    tokens = packed(varlen, shape) if varlen is not None else (0, 0)
    problem = AttentionProblem.parse_shape(
        shape,
        dtype=dtype or usual_dtype(machine.profile),
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
    explanation = explain_named(machine, problem, only=only, passes=passes, lengths=runs)
    if brief:
        console.show(json, briefly.told(explanation), *briefly.brief(explanation))
        return
    console.emit(json_module.loads(explanation.to_json())) if json else console.draw(explanation)


def packed(text: str, shape: str) -> tuple[int, int]:
    """Packed rows of queries and of keys: as many as the longest sequence has, up to a shape's room for them.

    Raises ProblemError.
    """
    tokens, most = pair("--varlen", text, "4096,4096"), AttentionProblem.parse_shape(shape)
    longest, batch = (most.seq_q, most.seq_kv), most.batch
    if all(each <= asked <= batch * each for asked, each in zip(tokens, longest, strict=True)):
        return tokens
    rows = [f"{each} to {batch * each}" if batch > 1 else f"{each}" for each in longest]
    needed = [max(min(each, asked), -(-asked // batch)) for asked, each in zip(tokens, longest, strict=True)]
    other = f", or --shape {_shape(most, batch, *needed)}" if min(tokens) >= 1 else ""
    raise ProblemError(
        f"--varlen {text} does not fit B={batch} sequences of which the longest has {longest[0]} queries and "
        f"{longest[1]} keys; give {rows[0]} rows of queries and {rows[1]} of keys{other}."
    )


def lengths_of(text: str, shape: str) -> Lengths:
    """Lengths of packed sequences, of queries and keys alike, that a shape agrees with. Raises ProblemError."""
    most = AttentionProblem.parse_shape(shape)
    try:
        found = read_lengths(text)
    except ValueError:
        raise ProblemError(f"--lengths {text} are no lengths; write them as in --lengths 4096+15x256.") from None
    if min(found) < 1 or (len(found), max(found), max(found)) != (most.batch, most.seq_q, most.seq_kv):
        raise ProblemError(
            f"--lengths {text} are {len(found)} sequences of {min(found)} to {max(found)} rows, and the shape is of "
            f"{most.batch} with at most {most.seq_q} queries and {most.seq_kv} keys; give lengths from 1 on, and "
            f"--shape {_shape(most, len(found), max(found), max(found))}."
        )
    return counted(found, found)


def _shape(like: AttentionProblem, batch: int, queries: int, keys: int) -> str:
    """As typed for --shape, of the heads and head dims of a problem."""
    dims = f"{like.head_dim}" + (f",{like.head_dim_v}" if like.head_dim_v != like.head_dim else "")
    return f"{batch},{like.heads_q},{like.heads_kv},{queries},{keys},{dims}"


def pair(option: str, text: str, example: str = "1024,0") -> tuple[int, int]:
    """Two whole numbers as typed. Raises ProblemError."""
    try:
        first, second = (int(part) for part in text.split(","))
    except ValueError:
        raise ProblemError(f"{option} {text} is not two whole numbers; write them as in {option} {example}.") from None
    return first, second


def field_of(text: str) -> tuple[str, Any]:
    """A field of a feature and its value, of the kind of its default. Raises ProblemError."""
    name, _, value = text.partition("=")
    if name not in FIELDS:
        raise ProblemError(f"--feature {text}: no feature has a field {name!r}; there are {', '.join(sorted(FIELDS))}.")
    if isinstance(FIELDS[name], bool):
        if value.lower() not in BOOLS:
            raise ProblemError(f"--feature {text}: {name} is asked for or not; write --feature {name}.")
        return name, BOOLS[value.lower()]
    if not value:
        raise ProblemError(f"--feature {text} has no value; write --feature {name}=VALUE.")
    return name, value
