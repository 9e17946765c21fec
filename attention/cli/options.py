"""The options that verbs share, and what is read off them."""

from typing import Annotated

import typer

from attention.timed.timing import Pass
from microbench.results.profile import Profile

DTYPE_HELP = "float16, bfloat16, float32 or float64;"
Dtype = Annotated[str | None, typer.Option("--dtype", help=f"{DTYPE_HELP} float32 by default.")]
Only = Annotated[
    str | None, typer.Option("--only", help="smscope or torch, for that owner's kernels; or one variant's name.")
]
Backward = Annotated[bool, typer.Option("--backward", help="Of the gradients, from the forward's out and lse.")]
SHAPE_HELP = "B,Hq,Hkv,Sq,Skv,D, such as 1,8,8,1024,1024,64; a seventh number is Dv."


def pass_asked(backward: bool) -> Pass:
    return "backward" if backward else "forward"


def usual_dtype(profile: Profile) -> str:
    if profile.arch == "host":
        return "float32"
    return "float16" if profile.arch in ("sm70", "sm75") else "bfloat16"
