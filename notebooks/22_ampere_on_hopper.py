# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Ampere's instructions on a Hopper GPU
#
# **The question.** An H100 still runs the code of the generation before it: `cp.async`, `ldmatrix` and `mma.sync`.
# FlashAttention-2 as torch ships it is written in them, and so is our kernel for Ampere and Ada. How much of the H100
# is within their reach, what stands in the way of the rest, and which ideas brought our kernel where it is?
#
# Every figure is drawn from `data/` and from SASS that NVRTC compiles here; nothing needs a GPU. Only the ledger at the
# end quotes experiments whose timings are not kept, and holds them against the ladder, whose timings are.

# %%
import math
from collections import defaultdict
from dataclasses import replace
from itertools import zip_longest

from IPython.display import Markdown

import microbench
from attention.compare.cells import Cell
from attention.compare.ladders import ampere, hopper
from attention.compare.results import mean
from attention.kernels.launch.loaded import cubin_of
from attention.timed import timings
from attention.variant import Config, by_path
from attention.verify.build_matrix import LONG, at
from microbench.machine import arch
from microbench.report import figures
from notebooks.ladders import figure_ampere
from notebooks.ladders.figure_ampere import BLUE, GREEN, GREY, OCHRE, PALE, RED, Bar, Level
from notebooks.ladders.schedule import schedule
from notebooks.ladders.table import table

figures.style()
GPU = "h100-sxm-80gb"
AMPERE, HOPPER, FLASH2 = ampere.VARIANT, hopper.VARIANT, "peer/torch_flash"
profile = microbench.Profile.load(GPU)
kernel = by_path(AMPERE)


# %% [markdown]
# ## The ceiling
#
# What the probes measured of both matrix instructions, with operands in registers for `mma.sync` and in shared memory
# for `wgmma`:

# %%
SUB_CORES = 4
MMA_FLOPS = 2 * 16 * 8 * 16  # m16n8k16
mma, wgmma = profile.value("mma_bf16_flops_per_clk_sm"), profile.value("wgmma_bf16_flops_per_clk_sm")
ceiling, wgmma_ceiling = (profile.value(f"{name}_bf16_burst_flops_per_s") / 1e12 for name in ("mma", "wgmma"))
zeros = {name: profile.value(f"{name}_bf16_zeros_burst_flops_per_s") / 1e12 for name in ("mma", "wgmma")}
interval = MMA_FLOPS * SUB_CORES / mma
latency = profile.value("mma_bf16_latency_cycles")


def clock(tflops: float, per_clk_sm: float) -> float:
    """MHz."""
    return tflops * 1e6 / per_clk_sm / profile.sm_count


table(
    "instruction | FLOP/clk/SM | TFLOPS on N(0, 1), at the clock it keeps | latency [cycles]",
    (
        (name, *(f"{value:.0f}" for value in values))
        for name, *values in (
            ("`mma.sync.m16n8k16`", mma, ceiling, latency),
            ("`wgmma.m64n256k16`", wgmma, wgmma_ceiling, profile.value("wgmma_bf16_latency_cycles")),
        )
    ),
)

# %%
Markdown(
    f"`mma.sync` reaches **{mma / wgmma:.3f}** of `wgmma` per clock, and {ceiling / wgmma_ceiling:.2f} of its TFLOPS, "
    f"for it keeps a clock of {clock(ceiling, mma):.0f} MHz where `wgmma` keeps {clock(wgmma_ceiling, wgmma):.0f}. "
    f"Multiplying zeros, which takes less power, they keep {clock(zeros['mma'], mma):.0f} and "
    f"{clock(zeros['wgmma'], wgmma):.0f}. A sub-core takes one `mma.m16n8k16` every {interval:.1f} "
    f"cycles and answers after {latency:.0f}: {latency / interval:.0f} independent products keep it busy. In attention "
    "these are not hard to find; the next slice of scores does not wait for the last outputs."
)

# %% [markdown]
# ## What is reached
#
# One run, one process: calls in turns, captured in CUDA graphs, with a cold L2. FlashAttention-2 is the one that torch
# ships. Bars are speeds in the field's convention (half the FLOPs under causality); the dashes are the two ceilings.

# %%
rows = [row for row in timings.read(GPU)[0] if row.run]
last = [row for row in rows if row.run == max(row.run for row in rows)]
measured: dict[Cell, dict[str, float]] = defaultdict(dict)
for row in last:
    cell = Cell(row.problem, row.lengths, row.grid)
    best = measured[cell].get(row.variant, 0.0)
    measured[cell][row.variant] = max(best, cell.flops / row.seconds / 1e12)
NAMES = {FLASH2: "FlashAttention-2 (torch)", AMPERE: "ours, Ampere's instructions", HOPPER: "ours, Hopper's"}
COLOURS = {NAMES[FLASH2]: OCHRE, NAMES[AMPERE]: BLUE, NAMES[HOPPER]: PALE}
on_grid = {
    cell: {NAMES[v]: speed for v, speed in found.items() if v in NAMES} for cell, found in measured.items() if cell.grid
}
figure = figure_ampere.speeds(on_grid, (Level("wgmma", wgmma_ceiling), Level("mma.sync", ceiling)), COLOURS)


# %%
def off_grid(cell: Cell) -> str:
    """A cell off the grid in a few words."""
    problem = cell.problem
    said = [f"{problem.seq_q:,}", f"head dim {problem.head_dim}", "causal" if problem.causal else "full"]
    said += [f"window {problem.window[0]}"] if problem.window != (-1, -1) else []
    said += ["packed"] if cell.lengths else []
    said += [f"{problem.heads_q} heads on {problem.heads_kv}"] if problem.heads_q != problem.heads_kv else []
    said += [problem.dtype] if problem.dtype != "bfloat16" else []
    return ", ".join(said)


def ratio(found: dict[str, float], over: str) -> str:
    return f"{found[AMPERE] / found[over]:.2f}" if AMPERE in found and over in found else ""


def shown(found: dict[str, float], variant: str) -> str:
    return f"{found[variant]:.0f}" if variant in found else "not timed"


def line(cell: Cell, found: dict[str, float]) -> tuple[str, ...]:
    share = f"{found[AMPERE] / ceiling:.0%}" if AMPERE in found else ""
    speeds = (shown(found, variant) for variant in (FLASH2, AMPERE, HOPPER))
    return off_grid(cell), *speeds, ratio(found, FLASH2), share, ratio(found, HOPPER)


table(
    "cell | FlashAttention-2 | ours, Ampere's | ours, Hopper's | over FlashAttention-2 | of the ceiling | of Hopper's",
    (line(cell, found) for cell, found in measured.items()),
)

# %%
both = {cell: found for cell, found in measured.items() if {AMPERE, FLASH2, HOPPER} <= found.keys()}
gains = {cell: found[AMPERE] / found[FLASH2] for cell, found in both.items()}
grid = [cell for cell in both if cell.grid]
behind = [off_grid(cell) for cell, gain in gains.items() if gain < 1]
without = [gains[cell] for cell in grid if (cell.problem.head_dim, cell.problem.causal) != (256, True)]
by_dim = {
    dim: [both[c][AMPERE] / ceiling for c in grid if c.problem.head_dim == dim and not c.problem.causal]
    for dim in sorted({cell.problem.head_dim for cell in grid})
}
Markdown(
    f"Against FlashAttention-2, on the same instructions: **{mean(gains[cell] for cell in grid):.2f}** times as fast "
    f"over {len(grid)} cells of the grid (geometric mean; {mean(without):.2f} without head dim 256 causal, which "
    f"earlier versions did not serve), {mean(gains[c] for c in both if not c.grid):.2f} off it, "
    f"{min(gains.values()):.2f} to {max(gains.values()):.2f}; behind in {'; '.join(behind) or 'no cell'}. "
    f"Our Hopper kernel is {mean(both[cell][HOPPER] / both[cell][AMPERE] for cell in grid):.2f} times as fast as this "
    f"one on the grid, where the ceilings promise {wgmma_ceiling / ceiling:.2f}: the rest is what `wgmma` and TMA take "
    "off a warp's hands, as the next section counts. Of the ceiling of `mma.sync`, full attention reaches "
    + ", ".join(f"{min(found):.0%} to {max(found):.0%} at head dim {dim}" for dim, found in by_dim.items())
    + "."
)

# %% [markdown]
# ## Where the time goes
#
# An operand of `mma.sync` is in registers. So every warp fetches all of K and V from shared memory for itself, for the
# query rows that it holds: with R rows a warp, a key of K and V (4 D bytes) serves R rows, and a row of Q that does not
# stay in registers (2 D bytes) serves one slice of keys. `wgmma` reads a tile once for 64 rows. Everything below is
# cycles of an SM, by the measured rates; products are the 1 that the others have to stay below.

# %%
rate = profile.value


def asked(dim: int, config: Config) -> dict[str, float]:
    """What a warp's rows by a slice of keys ask of each unit, over the cycles of their products."""
    rows, keys = config["warp_rows"], config["slice_keys"]
    block_rows = rows * config["warps"]
    from_smem = 4 * keys * dim + (0 if config["q_in_registers"] else 2 * rows * dim)
    cycles = {
        "shared memory": from_smem / rate("smem_bandwidth_bytes_per_clk_sm"),
        "exponentials": rows * keys / rate("mufu_ex2_per_clk_sm"),
        # Blocks of one head run side by side and ask for the same tiles.
        "L2": 4 * keys * dim * rows / block_rows / rate("l2_coalesced_bandwidth_bytes_per_clk_sm"),
    }
    return {unit: found * mma / (4 * rows * keys * dim) for unit, found in cycles.items()}


def problem_of(dim: int, causal: bool = False):
    return replace(at(LONG, dim), causal=causal)


def compiled(dim: int, config: Config, causal: bool = False):
    """The main loop's schedule, None where it is not flat."""
    (step,) = kernel.steps(problem_of(dim, causal), config)
    return schedule(cubin_of(kernel.folder, step, arch.by_name("sm90a")).instructions())


def issued(dim: int, config: Config) -> dict[str, float]:
    """Instructions of a round over the cycles of its products: a sub-core issues one a cycle."""
    planned = compiled(dim, config)
    return {} if planned is None else {"issue slots": planned.count() / (interval * planned.count("scores", "values"))}


DIMS = (64, 128, 256)
rungs = {dim: ampere.rungs(profile, problem_of(dim)) for dim in DIMS}
steps = {dim: {rung.name: rung.config for rung in rungs[dim] if not rung.aside} for dim in DIMS}
top = {dim: list(found.values())[-1] for dim, found in steps.items()}
for config in (top[128], steps[128]["slices of 32 keys"]):  # the variant's own formula, where a slice is a tile
    amounts = {demand.term: demand.amount for demand in kernel.tile(problem_of(128), config).demands}
    found = amounts["K and V to registers"] / rate("smem_bandwidth_bytes_per_clk_sm") * mma
    assert math.isclose(found / amounts["products on mma.sync"], asked(128, config)["shared memory"])
figure = figure_ampere.units(
    {dim: {name: asked(dim, c) | issued(dim, c) for name, c in found.items()} for dim, found in steps.items()},
    {"shared memory": RED, "L2": OCHRE, "exponentials": GREEN, "issue slots": GREY},
)

# %%


def but(config: Config, **values: int) -> Config:
    """The configuration with other values."""
    return Config(tuple((dict(config.values) | values).items()))


start, wide = (asked(128, steps[128][name])["shared memory"] for name in (ampere.FIRST, "32 rows a warp"))
kept = asked(128, but(top[128], q_in_registers=1))["shared memory"]
whole = {dim: asked(dim, config) for dim, config in top.items()}
limit = ceiling / max(1, whole[256]["shared memory"])
Markdown(
    f"**Why 32 rows a warp.** At head dim 128 the first rung asks shared memory for {start:.2f} times the cycles of "
    f"its products, and twice the rows for {wide:.2f}: K and V cross half as often. Longer slices fetch Q less often, "
    f"down to {whole[128]['shared memory']:.2f}. Q in registers would leave {kept:.2f}, but beside 32 rows of outputs "
    "there is no room for it; at head dim 64 there is. At head dim 256 outputs of 32 rows would fill all registers, so "
    f"16 have to do, and shared memory is asked for {whole[256]['shared memory']:.2f}: {limit:.0f} TFLOPS is the most "
    "that this layout allows. Exponentials stay below the products "
    f"({whole[64]['exponentials']:.2f} at head dim 64, {whole[128]['exponentials']:.2f} at 128), as long as they run "
    "beside them and not after them. What `cp.async` writes into shared memory is not counted; if it takes turns with "
    f"the reads, eight warps that share a tile read {8 / 9:.0%} of what passes, and {limit * 8 / 9:.0f} TFLOPS are "
    "left at head dim 256. Issue slots are counted in SASS, and missing where ptxas left a loop inside the main loop."
)

# %% [markdown]
# ## The pipeline of a warp
#
# A warp has one instruction stream, and its products are synchronous: what runs beside them has to be issued between
# them. So a step takes the scores of one slice of keys and p V of the slice before it, and spreads the exponentials of
# the first between the products of the second. K and V of the next tile are on their way by `cp.async` meanwhile.
#
# The pictures are not drawn by hand. Each mark is an instruction of the main loop, as NVRTC compiles it here, at the
# cycle that the stall counts in SASS give it, as long as it keeps its unit busy.

# %%
BUSY = {
    "scores": interval,
    "values": interval,
    "exponentials": 32 * SUB_CORES / rate("mufu_ex2_per_clk_sm"),
    "K and Q": 512 / rate("smem_bandwidth_bytes_per_clk_sm"),
    "V": 512 / rate("smem_bandwidth_bytes_per_clk_sm"),
}
bare = steps[128]["slices of 32 keys"]
figure = figure_ampere.timeline(
    {f"head dim 128, one tile of {top[128]['tile_keys']} keys: the whole kernel": compiled(128, top[128])}, BUSY
)

# %%
planned = {dim: compiled(dim, config) for dim, config in top.items()}


def busy(found) -> float:
    """Cycles of a sub-core's tensor core that one warp's round asks for."""
    return interval * found.count("scores", "values")


table(
    "head dim | keys a round | instructions | products | exponentials | ldmatrix | cycles by stall counts | "
    "of them products | issue slots of two warps",
    (
        (
            *(dim, top[dim]["tile_keys"], found.count(), found.count("scores", "values"), found.count("exponentials")),
            *(found.count("K and Q", "V"), found.cycles, f"{busy(found) / found.cycles:.0%}"),
            f"{found.count() / busy(found):.0%}",
        )
        for dim, found in planned.items()
    ),
)

# %%
alone = {dim: busy(found) / found.cycles for dim, found in planned.items()}
Markdown(
    "A warp that never waited would keep its tensor core busy for "
    + ", ".join(f"{share:.0%} of the time at head dim {dim}" for dim, share in alone.items())
    + ": the end of a tile (vote, sums, p to 16 bits, barrier, addresses) has nothing to run beside it. Registers "
    "leave room for two warps a sub-core, and the other warp fills these gaps where it is not in its own."
)

# %% [markdown]
# The order is ptxas's to choose: both products of a step are independent, and so is what it puts between them. A
# `__syncwarp` between the two, all but free in itself, moves that choice.

# %%
unfenced = compiled(64, but(top[64], fence=0))
figure = figure_ampere.timeline(
    {
        f"head dim 64, without a fence: {unfenced.cycles} cycles": unfenced,
        f"head dim 64, with a fence between the products of a step: {planned[64].cycles} cycles": planned[64],
    },
    BUSY,
)

# %% [markdown]
# ## The ladder
#
# From the simplest right configuration to the whole kernel, one idea a step; beside it the whole kernel without one
# idea, and what was rejected. All rungs of a cell alternate in one process (`python -m attention.compare.ladder`).
# Behind each speed stands its ratio to that of the rung beside; the red mark is what the ceiling and the busiest unit
# leave.

# %%
climbs: dict[tuple[int, bool, int], dict[str, float]] = {}
ladder_rows = [row for row in timings.read(f"{GPU}-ladder")[0] if row.variant == AMPERE]
for row in sorted(ladder_rows, key=lambda row: row.run or ""):  # a later run replaces an earlier one
    problem = row.problem
    for rung in ampere.rungs(profile, problem):
        if dict(rung.config.values) == row.config:
            key = problem.head_dim, problem.causal, problem.seq_q
            climbs.setdefault(key, {})[rung.name] = problem.flops / row.seconds / 1e12


def bars(dim: int, causal: bool, length: int) -> list[Bar]:
    """A cell's rungs with their speeds."""
    speeds = climbs[dim, causal, length]
    found = []
    for rung in ampere.rungs(profile, problem_of(dim, causal)):
        speed, beside = speeds.get(rung.name), speeds.get(rung.beside)
        gain = speed / beside if speed and beside else None
        leaves = ceiling / max(1, *asked(dim, rung.config).values())
        found.append(Bar(rung.name, not rung.aside, speed, gain, leaves, rung.lacks or "not measured"))
    return found


LONGEST = 16384
panels = {
    f"head dim {dim}, {'causal' if causal else 'full'}, {length:,}": bars(dim, causal, length)
    for dim, causal, length in climbs
    if length == LONGEST and not causal
}
figure = figure_ampere.ladder(panels)


# %%
def spread(found: list[float]) -> str:
    """Mean, and range where there is one."""
    if not found:
        return ""
    return f"{mean(found):.3f} ({min(found):.2f} to {max(found):.2f})" if len(found) > 1 else f"{found[0]:.3f}"


gained: dict[tuple[int, str, str, bool], dict[bool, list[float]]] = defaultdict(lambda: defaultdict(list))
spilling: dict[tuple[int, str, str, bool], set[bool]] = defaultdict(set)
for dim, causal, length in climbs:
    speeds = climbs[dim, causal, length]
    for rung in ampere.rungs(profile, problem_of(dim, causal)):
        key = dim, rung.name, rung.beside, rung.aside
        if rung.name in speeds and rung.beside in speeds:
            gained[key][causal].append(speeds[rung.name] / speeds[rung.beside])
        elif rung.lacks:
            gained[key][causal].clear()
            spilling[key].add(causal)
table(
    "head dim | rung | beside | its speed over the other's, full | causal",
    (
        (
            *(dim, name if aside else f"**{name}**", beside),
            *("spills" if causal in spilling[key] else spread(found[causal]) for causal in (False, True)),
        )
        for key, found in gained.items()
        for dim, name, beside, aside in (key,)
    ),
)


# %%
def faster(dim: int, causal: bool) -> str:
    """The rungs that beat the whole kernel by more than 1 % at every length, the fastest first."""
    lengths = [speeds for (d, c, _), speeds in climbs.items() if (d, c) == (dim, causal)]
    over = {name: [speeds[name] / speeds[ampere.TOP] for speeds in lengths] for name in lengths[0]}
    better = {name: mean(found) for name, found in over.items() if min(found) > 1.01}
    said = [f"{name} ({better[name]:.3f})" for name in sorted(better, key=better.get, reverse=True)]
    return "; ".join(said) or "none"


table(
    "head dim | mask | rungs faster than the whole kernel at every length",
    ((dim, "causal" if causal else "full", faster(dim, causal)) for dim in DIMS for causal in (False, True)),
)

# %%
best = {key: max(speeds, key=speeds.get) for key, speeds in climbs.items()}
ahead = [key for key, speeds in climbs.items() if speeds[best[key]] < 1.005 * speeds[ampere.TOP]]
left = {dim: mean(max(v.values()) / v[ampere.TOP] for k, v in climbs.items() if k[0] == dim) for dim in DIMS}
fence = mean(gained[64, ampere.TOP, "fetching three ahead", False][False])
early = mean(gained[64, "Q in registers", "32 rows a warp", False][False])
late = mean(gained[64, "all but Q in registers", ampere.TOP, True][False])
Markdown(
    f"**The whole kernel is not the top of its ladder everywhere.** It is the fastest rung, within 0.5 %, in "
    f"{len(ahead)} of {len(climbs)} cells; the fastest rung of each cell would bring "
    + ", ".join(f"{gain - 1:.1%} at head dim {dim}" for dim, gain in left.items())
    + ". What the picture of stall counts promised of the fence at head dim 64 "
    f"({unfenced.cycles / planned[64].cycles - 1:.1%}) came to {fence - 1:+.1%} in full cells; the sub-core's second "
    "warp may have filled those cycles before. And no step stands alone: Q in registers, which at head dim 64 is taken "
    f"up on slices of 16 keys, brings {early - 1:+.1%} there in full cells, and the whole kernel loses {1 - late:.1%} "
    "without it."
)

# %% [markdown]
# ## What did not work
#
# The ledger of the kernel's development on an H100 SXM: bf16, 16 Ki tokens, hidden size 2048, 16,384 keys unless said,
# captured in CUDA graphs, cold L2, in turns. "x" is the speed over FlashAttention-2 in the same run, which machines and
# runs move less than TFLOPS. These are versions before the committed one (the first reached 1.16 x over the grid, the
# second 1.20 x), some of them with spills, and their timings are not kept. Where the ladder above has the same idea,
# the last column says what became of it: the ladder's ratio to the rung beside, the ratio of then, and whether both lie
# on one side of 1, where 0.5 % is no side. S is the keys of a slice, N those of a tile.


# %%
def side(ratio: float) -> int:
    return (ratio > 1.005) - (ratio < 0.995)


def now(name: str, dim: int, then: float, causal: bool = False, length: int = LONGEST) -> str:
    """What the ladder says of an idea that once brought `then`."""
    rung = next(each for each in ampere.rungs(profile, problem_of(dim, causal)) if each.name == name)
    where = f"head dim {dim}{' causal' if causal else ''}{f', {length:,}' if length != LONGEST else ''}"
    if rung.lacks:
        return f"{where}: {rung.lacks}"
    speeds = climbs[dim, causal, length]
    ratio = speeds[name] / speeds[rung.beside]
    neither = "neither gain nor loss " + ("then" if side(ratio) else "now")
    verdict = "confirmed" if side(ratio) == side(then) else "**contradicted**" if side(ratio) * side(then) else neither
    return f"{where}: {ratio:.3f}, then {then:.3f}, {verdict}"


EIGHT, NO_FENCE = "eight warps in one block", "64 keys a barrier, no fence"
FOUR, THREE = "16 rows, four blocks", "three blocks, Q from shared memory"
longest_full = climbs[128, False, LONGEST]
without_second = longest_full["a fence between the products alone"] / longest_full[ampere.TOP]
LEDGER = """
Q in registers, S 16 (head dim 128) | 1.1: less from shared memory | 1.047 x against 1.126 x. Leaner code and three
fragments ahead: 1.168 x against 1.135 x, but it spilled

S 48 or 64 | 1.03: fewer votes and tails | head dim 64, full: 1.293 x against 1.334 x; causal: 1.21 x against 1.35 x.
Head dim 128: 1.136 x against 1.135 x. Registers are the limit, and exponentials come in one lump

eight warps in one block (head dims 64, 128) | 1.0: half the L2 traffic, which is no limit (3.1 of 8.1 TB/s) | 1.045 x
to 1.073 x against 1.135 x to 1.195 x at head dim 128: one barrier holds all warps up. 1.254 x against 1.257 x at 64

three blocks an SM (head dim 64, 168 registers) | 1.05: hidden latency | 1.245 x with Q in shared memory, 1.204 x with
S 16, against 1.334 x. At 1,024 keys 355 against 358 TFLOPS

16 rows a warp, four blocks (head dim 64) | 0.9 to 1: shared memory is less of a limit there | 1.144 x against 1.274 x.
Causal at 1,024 keys it wins: 273 against 258 TFLOPS

N 64 (head dim 128) | 1.03: a barrier costs about 100 of 1,536 cycles, and the other block hides it | full 1.195 x
against 1.135 x; causal 1.215 x against 1.275 x, with 124 bytes spilled

three fragments ahead (head dim 128) | 1.0: `ldmatrix` takes 33 cycles, four products of a fragment 24 | 1.183 x against
1.195 x. It pays where a fragment feeds two products, or registers are free

a fence at every second fragment | more even exponentials | 0.905 x against 1.047 x at head dim 128: it spilled

a slice whose p grew too large multiplies its scores again | none: the rare path | its products doubled the loop's code.
Dividing by a power of two instead: 1.274 x to 1.334 x at head dim 64, 1.126 x to 1.135 x at 128

masked slices in an unrolled loop | none | 2,750 instructions, 1,670 when rolled, and fewer spills

two warps share 32 rows and exchange p through shared memory (head dim 256) | 1.1 to 1.2: shared memory 3,687 instead of
4,608 cycles | not tried

no maximum in the main loop: p against the first keys' maximum, a vote on its sums | 1.05 to 1.1: 32 to 64 of 350
instructions a step | in every version; never measured without
"""
NOW = (  # by the ledger's lines
    (now("Q in registers, fetching three ahead", 128, 1.168 / 1.135),),
    (
        now("slices of 64 keys, one a barrier", 64, 1.293 / 1.334),
        now("slices of 64 keys, one a barrier", 64, 1.21 / 1.35, causal=True),
        now("slices of 48 keys, one a barrier", 128, 1.136 / 1.135),
    ),
    (now(EIGHT, 128, 1.073 / 1.135), now(EIGHT, 64, 1.254 / 1.257)),
    (now(THREE, 64, 1.245 / 1.334), now(THREE, 64, 355 / 358, length=1024)),
    (now(FOUR, 64, 1.144 / 1.274), now(FOUR, 64, 273 / 258, causal=True, length=1024)),
    (now(NO_FENCE, 128, 1.195 / 1.135), now(NO_FENCE, 128, 1.215 / 1.275, causal=True)),
    (now("fetching three ahead", 128, 1.183 / 1.195),),
    (f"in the whole kernel at head dim 128, where nothing spills now: {without_second:.3f} x without it",),
)
rows = [" ".join(each.split()).split(" | ") for each in LEDGER.strip().split("\n\n")]
table(
    "idea | expected, and why | found then | the ladder now",
    ((*row, "; ".join(said) or "not in it") for row, said in zip_longest(rows, NOW, fillvalue=())),
)

# %% [markdown]
# ## What it means
#
# - **Count what a warp reads for itself.** With `mma.sync` shared memory, not the tensor core, is the first limit, and
#   rows a warp is the number that decides. `wgmma` takes this limit away: it reads a tile once for 64 rows.
# - **Registers are the currency.** 32 rows, Q, longer slices, fragments ahead and more blocks all want the same 255,
#   and which of them is worth it changes with the head dim. One kernel with these as numbers has three answers.
# - **What is issued in order must be laid out in order.** The overlap that warpgroups and asynchronous products give
#   Hopper's kernel is here written into one instruction stream, whose order is the compiler's in the end.

# %%
widest = [cell for cell in grid if cell.problem.head_dim == max(by_dim)]
over = {cell: both[cell][HOPPER] / both[cell][AMPERE] for cell in grid}
Markdown(
    f"- **A generation of instructions is worth more than tuning within one.** On Ampere's, tuning brought "
    f"{mean(gains[cell] for cell in grid):.2f} times FlashAttention-2's speed over the grid; Hopper's bring another "
    f"{mean(over.values()):.2f}, and {mean(over[cell] for cell in widest):.2f} at head dim {max(by_dim)}."
)
