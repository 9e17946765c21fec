"""The Hopper kernel's rungs: ideas that its defines leave out, with the tile that the chooser picks."""

from attention.choose import learned
from attention.choose.choose import choose
from attention.compare.ladders import Ladder, Rung
from attention.compare.results import HOPPER, Q_IN_REGISTERS
from attention.problem import AttentionProblem
from attention.variant import Config, by_path
from microbench.results.profile import Profile

VARIANT = HOPPER
IDEAS = ("overlap", "pingpong", "lazy", "dynamic")

# Each step adds one idea to the one before.
FIRST = "producer and consumer warpgroups"
STEPS = (
    ("taking turns", "pingpong"),
    ("softmax beside the other product", "overlap"),
    ("rescaling lazily", "lazy"),
    ("taking tiles from a counter", "dynamic"),
    ("Q in registers", Q_IN_REGISTERS),
)
WITHOUT = (("all but turns", "pingpong"), ("all but overlap", "overlap"))


def rungs(profile: Profile, problem: AttentionProblem) -> tuple[Rung, ...]:
    """Every rung of a problem."""
    variant = by_path(VARIANT)
    tile = choose(profile, problem, variants=(variant,), efficiencies=learned.of_machine(profile)).pick.config

    def built(ideas: set[str]) -> Config:
        axes = ((axis, value) for axis, value in tile.values if axis != Q_IN_REGISTERS)
        return Config((*axes, *((idea, int(idea in ideas)) for idea in (*IDEAS, Q_IN_REGISTERS))))

    found, ideas = [Rung(FIRST, "", built(set()))], set[str]()
    for name, idea in STEPS:
        if idea == Q_IN_REGISTERS and not tile[idea]:
            continue
        ideas.add(idea)
        found.append(Rung(name, found[-1].name, built(ideas)))
    top = found[-1].name
    return (*found, *(Rung(name, top, built(ideas - {idea}), aside=True) for name, idea in WITHOUT))


LADDER = Ladder(VARIANT, rungs)
