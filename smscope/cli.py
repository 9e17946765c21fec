"""`smscope VERB`: every verb of both packages under one name. A verb's module is loaded when that verb is typed.

Exit codes are those of microbench/errors.py.
"""

import importlib
import sys
from dataclasses import dataclass
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup


@dataclass(frozen=True)
class Verb:
    """A command of the Typer app in `module`, there under its own name or as `command`."""

    name: str
    module: str
    help: str
    command: str = ""


SECTIONS = {
    "Measure this machine": (
        Verb("bench", "smscope.verbs", "Measure, then say which attention kernels run here."),
        Verb("run", "microbench.cli", "Measure only, all probes or some."),
        Verb("doctor", "microbench.cli", "Say whether this GPU is healthy, in half a minute."),
        Verb("bench-attention", "attention.cli", "Time our attention kernels beside torch's.", "bench"),
        Verb("campaign", "smscope.verbs", "Time every tile on a set of problems, for the model."),
    ),
    "Read what was measured": (
        Verb("list", "microbench.cli", "List every probe and the question it asks."),
        Verb("show", "microbench.cli", "Show the profile of one machine."),
        Verb("compare", "microbench.cli", "Compare one machine with another, or with the literature."),
        Verb("regret", "smscope.verbs", "Say what the model's choices cost, by campaigns."),
        Verb("floors", "smscope.verbs", "Say how our kernels stand beside peers, by campaigns."),
        Verb("report", "microbench.cli", "Write a page of each machine, figures inside."),
        Verb("export", "microbench.cli", "Write the rows of every run as CSV or Parquet."),
        Verb("profile", "smscope.verbs", "Write profiles and corrections again from what was measured."),
    ),
    "Choose an attention kernel": (
        Verb("explain", "attention.cli", "Say which kernel serves a problem, here or elsewhere, and why."),
        Verb("picks", "attention.cli", "Say which kernel serves three usual problems."),
        Verb("estimate", "attention.cli", "Estimate a kernel's speed from its machine code alone."),
        Verb("tune", "smscope.verbs", "Time candidates on your problems, so that timings choose."),
        Verb("prewarm", "attention.cli", "Compile ahead what a program's calls will run."),
    ),
    "Verify": (
        Verb("check", "smscope.verbs", "Compile every kernel, without a GPU, and read its SASS."),
        Verb("check-attention", "attention.cli", "Compile and read the attention kernels alone.", "check"),
        Verb("verify", "smscope.verbs", "Say what this GPU confirms and refutes, in one file."),
        Verb("test-gpu", "smscope.verbs", "Test the attention kernels, and more, on this GPU."),
    ),
}


class Later(TyperCommand):
    """A command that is loaded when it is called or completed; until then its name and help will do."""

    def __init__(self, verb: Verb) -> None:
        super().__init__(verb.name, help=verb.help, rich_markup_mode=None)
        self.verb = verb

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        app = importlib.import_module(self.verb.module).app
        group: Any = typer.main.get_command(app)
        real = group.commands[self.verb.command or self.verb.name]
        return real.make_context(info_name, args, parent=parent, **extra)


class Verbs(TyperGroup):
    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = {verb.name: Later(verb) for verbs in SECTIONS.values() for verb in verbs}

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        for title, verbs in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(verb.name, verb.help) for verb in verbs])


app = typer.Typer(cls=Verbs, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None)


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        print(f"smscope {version('smscope')}")
        raise typer.Exit


@app.callback()
def smscope(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say which release this is.")
    ] = False,
) -> None:
    """Measure an NVIDIA GPU (or this CPU) down to its instructions, and let that choose the attention kernel.

    `python -m microbench` and `python -m attention` have the same verbs, each package's own.
    """
    from microbench import console  # no --help and no completion waits for it

    console.plainly()


def main(arguments: list[str] | None = None) -> None:
    try:
        app(arguments, prog_name="smscope")
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package in ("", "smscope", "microbench", "attention"):
            raise
        sys.exit(f"This Python lacks {package}, which smscope needs; install smscope with pip, which brings it.")
    except Exception as error:
        code = getattr(error, "exit_code", None)
        if not isinstance(code, int):
            raise
        print(error, file=sys.stderr)
        sys.exit(code)
