"""The Ampere kernel's rungs, at the head dims of the grid: every value is said, so that no default moves one.

A rung that spills is not timed; which do was found with NVRTC 12.9 by compiling each for sm90a.
"""

from dataclasses import dataclass

from attention.compare.ladders import Ladder, Rung
from attention.compare.results import AMPERE
from attention.problem import AttentionProblem
from attention.variant import Config
from microbench.results.profile import Profile

VARIANT = AMPERE
Values = dict[str, int]

FIRST = "16 rows a warp, Q from shared memory"
START: Values = {
    "warps": 4,
    "tile_keys": 32,
    "warp_rows": 16,
    "slice_keys": 16,
    "blocks": 2,
    "q_in_registers": 0,
    "ahead": 1,
    "fence": 0,
}


@dataclass(frozen=True)
class Step:
    """What a rung changes of the one before it, by head dim, and the builds in which it spills."""

    name: str
    changes: dict[int, Values]
    spills: tuple[str, ...] = ()

    def lacks(self, problem: AttentionProblem) -> str:
        """Why it is not timed; nothing where it is."""
        build = f"{problem.head_dim} {'causal' if problem.causal else 'full'}"
        return "spills registers" if build in self.spills else ""


@dataclass(frozen=True)
class Aside(Step):
    """A rung that is no step: it changes the rung `beside`."""

    beside: str = ""


# What the whole kernel has beyond the start, by head dim: the steps up to it, each with the values that are its idea.
STEPS = (
    Step("32 rows a warp", {64: {"warp_rows": 32}, 128: {"warp_rows": 32}}),
    Step("eight warps in one block", {256: {"warps": 8, "blocks": 1}}),
    Step("Q in registers", {64: {"q_in_registers": 1}, 256: {"q_in_registers": 1}}, ("256 full",)),
    Step("slices of 32 keys", {64: {"slice_keys": 32}, 128: {"slice_keys": 32}}),
    Step("one barrier for 128 keys", {64: {"tile_keys": 128}}),
    Step("fetching three ahead", {64: {"ahead": 3}, 256: {"ahead": 3}}),
    Step("fences", {64: {"fence": 1}, 128: {"fence": 2}, 256: {"fence": 1}}),
)
TOP = STEPS[-1].name


# First what each idea is worth to the whole kernel, then what was rejected. Some take their room from another idea, and
# say so: slices of 64 keys from the tile's 128, three blocks, and more keys at head dim 256, from Q's registers.
ASIDES = (
    Aside("all but 32 rows", {64: {"warp_rows": 16}, 128: {"warp_rows": 16}}, beside=TOP),
    Aside("all but eight warps", {256: {"warps": 4, "blocks": 2}}, beside=TOP),
    Aside("all but Q in registers", {64: {"q_in_registers": 0}, 256: {"q_in_registers": 0}}, beside=TOP),
    Aside("all but slices of 32 keys", {64: {"slice_keys": 16}, 128: {"slice_keys": 16}}, beside=TOP),
    Aside("all but 128 keys a barrier", {64: {"tile_keys": 32}}, beside=TOP),
    Aside("all but fetching ahead", {64: {"ahead": 1}, 256: {"ahead": 1}}, ("256 full",), beside=TOP),
    Aside("16 rows, four blocks", {64: {"warp_rows": 16, "blocks": 4}}, beside="all but 128 keys a barrier"),
    Aside(
        "three blocks, Q from shared memory",
        {64: {"blocks": 3, "q_in_registers": 0}},
        beside="all but 128 keys a barrier",
    ),
    Aside("eight warps in one block", {64: {"warps": 8, "blocks": 1}, 128: {"warps": 8, "blocks": 1}}, beside=TOP),
    Aside(
        "slices of 64 keys, one a barrier", {64: {"slice_keys": 64, "tile_keys": 64}}, beside="one barrier for 128 keys"
    ),
    Aside("slices of 48 keys, one a barrier", {128: {"slice_keys": 48, "tile_keys": 48}}, beside=TOP),
    Aside("slices of 32 keys, Q from shared memory", {256: {"slice_keys": 32}}, beside="all but Q in registers"),
    Aside("64 keys a barrier, Q from shared memory", {256: {"tile_keys": 64}}, beside="all but Q in registers"),
    Aside("64 keys a barrier, no fence", {128: {"tile_keys": 64}}, ("128 causal",), beside="slices of 32 keys"),
    Aside(
        "64 keys a barrier", {128: {"tile_keys": 64}, 256: {"tile_keys": 64}}, ("256 full", "256 causal"), beside=TOP
    ),
    Aside(
        "Q in registers, fetching three ahead",
        {128: {"q_in_registers": 1, "ahead": 3}},
        ("128 causal",),
        beside="all but slices of 32 keys",
    ),
    Aside("fetching three ahead", {128: {"ahead": 3}}, beside=TOP),
    Aside("a fence at every second fragment too", {64: {"fence": 2}, 256: {"fence": 2}}, beside=TOP),
    Aside("a fence between the products alone", {128: {"fence": 1}}, beside=TOP),
)


def rungs(profile: Profile, problem: AttentionProblem) -> tuple[Rung, ...]:
    """Every rung of a problem, on any machine; none at a head dim that has no ladder."""
    dim = problem.head_dim
    steps = [step for step in STEPS if dim in step.changes]
    if not steps:
        return ()
    values, found = {FIRST: START}, [Rung(FIRST, "", _config(START))]
    for step in steps:
        values[step.name] = values[found[-1].name] | step.changes[dim]
        timed = [rung.name for rung in found if not rung.lacks][-1]
        found.append(Rung(step.name, timed, _config(values[step.name]), lacks=step.lacks(problem)))
    for aside in ASIDES:
        if dim in aside.changes:
            values[aside.name] = values[aside.beside] | aside.changes[dim]
            made = _config(values[aside.name])
            found.append(Rung(aside.name, aside.beside, made, aside=True, lacks=aside.lacks(problem)))
    return tuple(found)


def _config(values: Values) -> Config:
    return Config(tuple(values.items()))


LADDER = Ladder(VARIANT, rungs)
