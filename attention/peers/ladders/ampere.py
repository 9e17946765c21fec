"""The Ampere kernel's rungs, at the head dims of the grid: every value is said, so that no default moves one.

A rung that spills is not timed; which do was found with NVRTC 12.9 by compiling each for sm90a.
"""

from dataclasses import dataclass

from attention.peers.ladders import Ladder, Rung
from attention.peers.results import AMPERE
from attention.problem import AttentionProblem
from attention.variant import Config
from microbench.profile import Profile

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
# What the whole kernel has beyond the start, by head dim: the steps up to it, each with the values that are its idea.
STEPS: tuple[tuple[str, dict[int, Values]], ...] = (
    ("32 rows a warp", {64: {"warp_rows": 32}, 128: {"warp_rows": 32}}),
    ("eight warps in one block", {256: {"warps": 8, "blocks": 1}}),
    ("Q in registers", {64: {"q_in_registers": 1}, 256: {"q_in_registers": 1}}),
    ("slices of 32 keys", {64: {"slice_keys": 32}, 128: {"slice_keys": 32}}),
    ("one barrier for 128 keys", {64: {"tile_keys": 128}}),
    ("fetching three ahead", {64: {"ahead": 3}, 256: {"ahead": 3}}),
    ("fences", {64: {"fence": 1}, 128: {"fence": 2}, 256: {"fence": 1}}),
)
TOP = STEPS[-1][0]


@dataclass(frozen=True)
class Aside:
    """A rung that is no step: what it changes of the rung `beside`, by head dim, and the builds in which it spills."""

    name: str
    beside: str
    changes: dict[int, Values]
    spills: tuple[str, ...] = ()


# First what each idea is worth to the whole kernel, then what was rejected. Some take their room from another idea, and
# say so: slices of 64 keys from the tile's 128, three blocks, and more keys at head dim 256, from Q's registers.
ASIDES = (
    Aside("all but 32 rows", TOP, {64: {"warp_rows": 16}, 128: {"warp_rows": 16}}),
    Aside("all but eight warps", TOP, {256: {"warps": 4, "blocks": 2}}),
    Aside("all but Q in registers", TOP, {64: {"q_in_registers": 0}, 256: {"q_in_registers": 0}}),
    Aside("all but slices of 32 keys", TOP, {64: {"slice_keys": 16}, 128: {"slice_keys": 16}}),
    Aside("all but 128 keys a barrier", TOP, {64: {"tile_keys": 32}}),
    Aside("all but fetching ahead", TOP, {64: {"ahead": 1}, 256: {"ahead": 1}}, ("256 causal",)),
    Aside("16 rows, four blocks", "all but 128 keys a barrier", {64: {"warp_rows": 16, "blocks": 4}}),
    Aside("three blocks, Q from shared memory", "all but 128 keys a barrier", {64: {"blocks": 3, "q_in_registers": 0}}),
    Aside("eight warps in one block", TOP, {64: {"warps": 8, "blocks": 1}, 128: {"warps": 8, "blocks": 1}}),
    Aside("slices of 64 keys, one a barrier", "one barrier for 128 keys", {64: {"slice_keys": 64, "tile_keys": 64}}),
    Aside("slices of 48 keys, one a barrier", TOP, {128: {"slice_keys": 48, "tile_keys": 48}}),
    Aside("slices of 32 keys, Q from shared memory", "all but Q in registers", {256: {"slice_keys": 32}}),
    Aside("64 keys a barrier, Q from shared memory", "all but Q in registers", {256: {"tile_keys": 64}}),
    Aside("64 keys a barrier, no fence", "slices of 32 keys", {128: {"tile_keys": 64}}, ("128 causal",)),
    Aside(
        "64 keys a barrier",
        TOP,
        {128: {"tile_keys": 64}, 256: {"tile_keys": 64}},
        ("256 full", "256 causal"),
    ),
    Aside(
        "Q in registers, fetching three ahead",
        "all but slices of 32 keys",
        {128: {"q_in_registers": 1, "ahead": 3}},
        ("128 causal",),
    ),
    Aside("fetching three ahead", TOP, {128: {"ahead": 3}}),
    Aside("a fence at every second fragment too", TOP, {64: {"fence": 2}, 256: {"fence": 2}}),
    Aside("a fence between the products alone", TOP, {128: {"fence": 1}}),
)


def rungs(profile: Profile, problem: AttentionProblem) -> tuple[Rung, ...]:
    """Every rung of a problem, on any machine; none at a head dim that has no ladder."""
    dim = problem.head_dim
    steps = [(name, changes[dim]) for name, changes in STEPS if dim in changes]
    if not steps:
        return ()
    values, found = {FIRST: START}, [Rung(FIRST, "", _config(START))]
    for name, change in steps:
        values[name] = values[found[-1].name] | change
        found.append(Rung(name, found[-1].name, _config(values[name])))
    for aside in ASIDES:
        if dim in aside.changes:
            values[aside.name] = values[aside.beside] | aside.changes[dim]
            spills = f"{dim} {'causal' if problem.causal else 'full'}" in aside.spills
            lacks = "spills registers" if spills else ""
            found.append(Rung(aside.name, aside.beside, _config(values[aside.name]), aside=True, lacks=lacks))
    return tuple(found)


def _config(values: Values) -> Config:
    return Config(tuple(values.items()))


LADDER = Ladder(VARIANT, rungs)
