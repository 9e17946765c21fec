"""What `make bench` ends with: three problems and their kernels by the new profile, and what to type next."""

import json as json_module
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import Annotated, Any

import typer
from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from attention.choose.explain.explain import doubts_of, explain_on
from attention.choose.explain.explanation import Explanation
from attention.choose.machine import named_machine
from attention.cli.options import Backward, pass_asked, usual_dtype
from attention.errors import ADDS_TORCH
from attention.problem import AttentionProblem
from microbench import console, paths
from microbench.console import Json
from microbench.console.si import written
from microbench.machine.nvml import visible_gpus
from microbench.results.doubt import told
from microbench.results.profile import Profile

# A short and a long prompt, and one token against a long cache; whether causal.
PICKS = (("4,16,16,1024,1024,64", False), ("1,32,8,4096,4096,128", True), ("8,32,8,1,4096,128", False))


def this_machine() -> str:
    """The name that a run on this machine has: its first GPU's slug, else 'host'."""
    gpus = visible_gpus()
    return gpus[0].slug if gpus else "host"


def shown(profile: Profile, found: Sequence[Explanation], name: str) -> Iterator[RenderableType]:
    """The picks in 80 columns, the constants in doubt that kept candidates out, and the next command.

    `name` is what the profile was asked for by: 'host' needs no --gpu.
    """
    yield "The attention kernels that this profile picks:"
    for each in found:
        yield from _pick(each)
    doubted = tuple(dict.fromkeys(doubt for each in found for doubt in doubts_of(profile, each.choice)))
    if find_spec("torch") is None:
        yield f"Torch is not installed here, and every call needs it; {ADDS_TORCH}."
    yield from told(doubted)
    options = "" if name == "host" else f" --gpu {profile.gpu}"
    options += " --backward" if found[0].choice.passes == "backward" else ""
    command = f"  {console.smscope()} explain \\\n    --shape {PICKS[0][0]}{options}"
    if doubted:
        yield "Next, on an idle machine, to settle what is in doubt:"
        command = f"  {paths.typed('bench')}"
    else:
        yield "Next, for all candidates and reasons:"
    yield console.line(command)


def _pick(explanation: Explanation) -> Iterator[RenderableType]:
    """A problem, and below it the pick, its time and bound, and the next one."""
    choice = explanation.choice
    beaten = [each for each in choice.candidates if each.variant != choice.pick.variant]
    second = ""
    if beaten and beaten[0].prediction is not None:
        second = f"{beaten[0].variant}, {written(beaten[0].prediction.seconds, 's')}"
        doubted = beaten[0] in choice.mistrusted
        second = f"; timings do not confirm {second}" if doubted else f"; next {second}"
    fallback = f" (fallback: {choice.fallback})" if choice.fallback else ""
    problem, _, why = explanation.headline().partition(": ")
    yield Padding(Text(problem), (0, 0, 0, 2), expand=False)
    yield Padding(Text(f"{why}{second}{fallback}"), (0, 0, 0, 6), expand=False)


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
        AttentionProblem.parse_shape(shape, dtype=usual_dtype(profile), causal=causal) for shape, causal in PICKS
    )
    options: dict[str, Any] = {"passes": pass_asked(backward), "caution": machine.caution, "known": machine.known}
    found = [explain_on(profile, each, **options) for each in problems]
    if json:
        console.emit([json_module.loads(each.to_json()) for each in found])
    else:
        cautions = (f"Caution: {machine.caution}.",) if machine.caution else ()
        console.draw(*shown(profile, found, name), *cautions, log_columns=console.BENCH_COLUMNS)
