"""What each idea of our kernels brings on this GPU: every rung of a ladder on every cell of the grid.

    python -m attention.compare.ladder [variant]

All rungs of a cell alternate in one process. Rungs are laid out in attention/compare/ladders.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence

from attention.choose.machine import machine_profile
from attention.compare import cells, run
from attention.compare.cells import Cell
from attention.compare.ladders import Ladder, Rung, ampere, hopper
from attention.problem import AttentionProblem
from attention.timed import timings
from attention.variant import Config, Variant, by_path
from microbench.machine.arch import by_name
from microbench.results.profile import Profile

LADDERS = (hopper.LADDER, ampere.LADDER)


def climb(tell: Callable[[run.Outcome], None], which: Sequence[Ladder] = LADDERS) -> None:
    """Time every rung on the current GPU, and append what was timed to data/attention/<gpu>-ladder.jsonl."""
    device = run.opened()
    for variant, cell, rungs in _climbs(machine_profile("cuda").profile, which):
        entries = [run.entry_of(variant, rung.config) for rung in rungs if not rung.lacks]
        for outcome in run.time_entries(device, cell, entries):
            if outcome.timing is not None:
                timings.write(outcome.timing, "ladder")
            tell(outcome)


def builds(profile: Profile, which: Sequence[Ladder] = LADDERS) -> Iterator[tuple[Variant, AttentionProblem, Config]]:
    """What `climb` asks of NVRTC on the machine of a profile: where the cubin cache has these, it needs no compiler."""
    for variant, cell, rungs in _climbs(profile, which):
        for rung in rungs:
            if not rung.lacks:
                yield variant, cell.problem, rung.config


def _climbs(profile: Profile, which: Sequence[Ladder]) -> Iterator[tuple[Variant, Cell, tuple[Rung, ...]]]:
    for ladder in which:
        variant = by_path(ladder.variant)
        if profile.arch not in variant.archs:
            continue
        for cell in cells.grid():
            if not variant.refusal(cell.problem, by_name(profile.arch)):
                yield variant, cell, ladder.rungs(profile, cell.problem)


def _tell(outcome: run.Outcome) -> None:
    speed = f"{outcome.tflops:7.1f} TFLOPS" if outcome.tflops else outcome.reason
    print(f"{outcome.cell!s:<70.70} {outcome.name:<160.160} {speed}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("variant", nargs="?", choices=[ladder.variant for ladder in LADDERS], help="all by default")
    asked = parser.parse_args().variant
    climb(_tell, [ladder for ladder in LADDERS if asked in (None, ladder.variant)])
