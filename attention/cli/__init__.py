"""`python -m attention explain|bench|check|picks|estimate|prewarm`: which kernel runs and why, and how fast it is.

Exit codes are those of microbench/errors.py.
"""

import sys

import typer

from attention.cli import bench, check, estimate, explain, picks, prewarm
from attention.errors import AttentionError
from microbench import console
from microbench.errors import SmscopeError

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Attention that is chosen by what was measured of this machine.",
)

app.command()(explain.explain)
app.command()(bench.bench)
app.command()(check.check)
app.command()(picks.picks)
app.command()(estimate.estimate)
app.command()(prewarm.prewarm)


def main(arguments: list[str] | None = None) -> None:
    console.plainly()
    try:
        app(arguments, prog_name="python -m attention")
    except (AttentionError, SmscopeError) as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)
