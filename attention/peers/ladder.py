"""The rungs of the Hopper kernel: what each idea brings on this GPU, from the simplest pipeline to the pick.

    python -m attention.peers.ladder

Every rung is the committed kernel with ideas left out by its defines. All rungs of a cell alternate in one process.
"""

from collections.abc import Callable
from dataclasses import dataclass

from attention import timings
from attention.choose import choose
from attention.machine import machine_profile
from attention.peers import cells, run
from attention.variant import Config, by_path

VARIANT = "sm90a/forward/warp_specialised"
RUNGS = ("overlap", "pingpong", "lazy", "late_wait", "dynamic")


@dataclass(frozen=True)
class Rung:
    """One step: its name, and the ideas that are in."""

    name: str
    ideas: frozenset[str]


LADDER = (
    Rung("producer and consumer warpgroups", frozenset()),
    Rung("taking turns", frozenset({"pingpong"})),
    Rung("softmax beside the other product", frozenset({"pingpong", "overlap"})),
    Rung("waiting late", frozenset({"pingpong", "overlap", "late_wait"})),
    Rung("rescaling lazily", frozenset({"pingpong", "overlap", "late_wait", "lazy"})),
    Rung("taking tiles from a counter", frozenset(RUNGS)),
    Rung("all but turns", frozenset(RUNGS) - {"pingpong"}),
    Rung("all but the late wait", frozenset(RUNGS) - {"late_wait"}),
)


def config_of(rung: Rung, tile: Config) -> Config:
    """The configuration of one rung with the tile of `tile`."""
    return Config((*tile.values, *((idea, int(idea in rung.ideas)) for idea in RUNGS)))


def climb(tell: Callable[[run.Outcome], None]) -> None:
    """Time every rung on the grid's cells, with the tile that the chooser picks, into <gpu>-ladder.jsonl."""
    variant = by_path(VARIANT)
    profile = machine_profile("cuda").profile
    for cell in cells.grid():
        pick = choose(profile, cell.problem, variants=(variant,), efficiencies=timings.of_machine(profile)).pick
        entries = [run.entry_of(variant, config_of(rung, pick.config)) for rung in LADDER]
        for outcome in run.time_entries(cell, entries):
            if outcome.timing is not None:
                timings.write(outcome.timing, "ladder")
            tell(outcome)


def _tell(outcome: run.Outcome) -> None:
    speed = f"{outcome.cell.flops / outcome.timing.seconds / 1e12:7.1f} TFLOPS" if outcome.timing else outcome.reason
    print(f"{outcome.cell!s:<70.70} {outcome.name:<120.120} {speed}", flush=True)


if __name__ == "__main__":
    climb(_tell)
