"""`estimate`: how fast one of our kernels would be, from its machine code, on a GPU that need not be here."""

from dataclasses import asdict
from typing import Annotated

import typer

from attention.cli.options import SHAPE_HELP
from attention.estimate import held
from attention.estimate.predicted import BLOCK_A_TILE, Estimate, estimate_all, rates_of
from attention.problem import AttentionProblem
from attention.variant import by_path
from microbench import console
from microbench.console import Json
from microbench.console.progress import say
from microbench.console.si import counted, written
from microbench.errors import InputError
from microbench.issue.rates import V100


def estimate(
    shape: Annotated[str, typer.Option("--shape", help=SHAPE_HELP)] = "1,32,32,8192,8192,128",
    causal: Annotated[bool, typer.Option("--causal", help="Query i sees keys 0 to i (top-left).")] = False,
    gpu: Annotated[str, typer.Option("--gpu", help="A board of a V100, or a profile's name.")] = V100,
    variant: Annotated[str, typer.Option("--variant", help="The path of a kernel.")] = BLOCK_A_TILE[0],
    write: Annotated[bool, typer.Option("--write", help="Hold it against the H200's timings again.")] = False,
    json: Json = False,
) -> None:
    """Estimate every legal tile of a kernel from its machine code: speed, its interval, and what bounds it."""
    if variant not in BLOCK_A_TILE:
        raise InputError(f"The static estimate follows {' and '.join(BLOCK_A_TILE)}, not {variant!r}.")
    if write:
        rows = tuple(held.held(case) for case in held.cases())
        held.write(rows)
        say(f"Wrote data/{held.FILE}: {counted(len(rows), 'case')}.")
        return
    rates = rates_of(gpu)
    problem = AttentionProblem.parse_shape(shape, dtype="float16", device="cuda", causal=causal)
    found = estimate_all(by_path(variant), problem, rates)
    if json:
        console.emit([asdict(each) | {"interval": asdict(held.interval(each)), "bound": each.bound} for each in found])
        return
    where = f"{rates.gpu} of {rates.sm_count} SMs at {written(rates.clock_hz, 'Hz')}"
    headings = ("tile", "speed", "interval", "time", "blocks", "bound", "tensor cores")
    console.draw(console.table(f"{variant}, {problem}, {where}: estimated, not measured", headings, map(_row, found)))
    best, told = found[0], held.interval(found[0])
    shares = ", ".join(f"{term.name} {term.share:.0%}" for term in best.terms)
    console.draw(
        f"Shares of the best tile's {best.tile_cycles:.0f} cycles, beside one another: {shares}.",
        f"Rates {best.sources}. The interval is what {told.held} timings of an H200 missed their estimates by.",
        *best.cautions,
    )


def _row(each: Estimate) -> tuple[object, ...]:
    told = held.interval(each)
    low, high = (written(speed, "FLOP/s") for speed in (told.low_flops_per_s, told.high_flops_per_s))
    tensor = next(term.share for term in each.terms if term.name == "tensor cores")
    speed, seconds = written(each.flops_per_s, "FLOP/s"), written(each.seconds, "s")
    bound = f"{each.bound} {each.terms[0].share:.0%}"
    return str(each.config), speed, f"{low} to {high}", seconds, each.blocks, bound, f"{tensor:.0%}"
