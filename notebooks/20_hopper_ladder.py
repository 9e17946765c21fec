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
# # The ladder to a Hopper attention forward
#
# **The question.** A first kernel that is right is a long way from a fast one. Which ideas lie between, what does each
# bring on an H100, and which of that could be known beforehand from what the probes measured of the machine?
#
# Every number below is computed from `data/`: timings from `data/attention/`, constants from `data/profiles/`. It
# executes on any CPU. What was measured but lies in no file is in the ledger at the end, and says so.

# %%
from collections import Counter

from IPython.display import Markdown

import microbench
from attention import timings
from attention.choose import choose
from attention.kernels.sm90a.forward.warp_specialised.launch import shape_of
from attention.model import predict
from attention.peers import figure as peers_figure
from attention.peers import figure_rungs, promise, results
from attention.peers.figure_rungs import Ceilings
from attention.peers.ladders import hopper
from attention.peers.loop import Loop, loop_of
from attention.peers.results import AMPERE, HOPPER, mean
from attention.variant import KERNELS, Config, by_path
from microbench import arch, plots, report
from microbench.plots import pick

plots.style()
GPU = "h100-sxm-80gb"
profile = microbench.Profile.load(GPU)
runs = microbench.load_runs()
variant = by_path(HOPPER)
beside = results.last_run(GPU)
grid = [each for each in beside if each.cell.grid]


def name_of(cell) -> str:
    """A cell in a few words."""
    return peers_figure.off_grid_label(cell).replace("\n", ", ")


def tile_of(row) -> Config:
    """The configuration of a timing."""
    return Config(tuple(row.config.items()))


def table(headings: tuple[str, ...], lines) -> Markdown:
    return Markdown(report.markdown(headings, tuple(tuple(line) for line in lines)))


def spread(values) -> str:
    found = [value for value in values if value is not None]
    if not found:
        return ""
    low, high = f"{min(found):.2f}", f"{max(found):.2f}"
    return low if low == high else f"{mean(found):.2f} ({low} to {high})"


# %% [markdown]
# ## Where it ends
#
# One run, one process, candidates in turns, the L2 flushed before each call. Every result was first held against a
# float64 oracle.

# %%
figure = peers_figure.beside_peers(beside, profile.name)

# %%
every_row = [row for each in beside for row in each.timings]
worst = max(row.error / row.allowed_error for row in every_row)
behind = [each for each in beside if (each.ratio(HOPPER) or 1) < 1]
Markdown(
    f"Ours on Hopper's instructions over the best peer of each cell, geometric mean: "
    f"{peers_figure.summary(beside, HOPPER)}. It is behind the best peer in {len(behind)} of {len(beside)} cells: "
    + ("; ".join(f"{name_of(each.cell)} ({each.ratio(HOPPER):.2f})" for each in behind) or "none")
    + f". Of the error that the rule allows, the worst result of all candidates used {worst:.0%}. "
    f"{sum(bool(row.captured) for row in every_row)} of {len(every_row)} timings are of a captured CUDA graph."
)

# %% [markdown]
# ## The kernel
#
# `attention/kernels/sm90a/forward/warp_specialised/`. A block stays on its SM and works through tiles of query rows.
# Its warpgroups have two trades.
#
# - **One thread of the producer warpgroup** does nothing but fetch: K and V tiles by TMA into two rings, newest keys
#   first, and Q for each consumer as soon as that one has done with the last. A TMA box is one instruction, so one
#   thread is enough, and the warpgroup hands its registers to the others (`setmaxnreg`).
# - **Two or three consumer warpgroups** own 64 query rows each. Scores, softmax and output stay in registers all the
#   way. S = Q K^T is `wgmma` with both operands in shared memory (SS); P never goes there: the accumulators of S
#   become the A operand of P V by a conversion in place (RS), as
#   [02_instructions](02_instructions.ipynb) shows of their layouts.
# - **mbarriers** join them: `full` is raised by the bytes that arrive, `empty` by the warps that have read. A ring's
#   position is one counter, whose bits are stage and parity.
#
# What each trade asks for, at the tiles that were picked:

# %%
shapes = {}
for each in grid:
    row = each.of(HOPPER)
    if row is not None:
        shapes.setdefault(shape_of(each.cell.problem, tile_of(row)), []).append(each.cell)
smem = arch.by_name("sm90a").limits.smem_bytes_per_block
table(
    ("head dim", "rows of Q", "keys of a tile", "threads", "shared memory [KiB]", "of the block's most", "cells"),
    (
        (
            str(shape.head_dim),
            f"{shape.warpgroups} x 64",
            str(shape.tile_keys),
            str(shape.threads),
            f"{shape.smem_bytes / 1024:.0f}",
            f"{shape.smem_bytes / smem:.0%}",
            str(len(cells)),
        )
        for shape, cells in shapes.items()
    ),
)

# %% [markdown]
# The step that everything else serves, once for each tile of keys:


# %%
def function(file: str, name: str) -> str:
    """One member function of the kernel's sources, with the comment above it; the whole file where it has none."""
    lines = (KERNELS / HOPPER / file).read_text().split("\n")
    at = next((i for i, line in enumerate(lines) if f" {name}(" in line and line.endswith("{")), None)
    if at is None:
        return "\n".join(lines)
    indent = lines[at][: len(lines[at]) - len(lines[at].lstrip())]
    end = lines.index(indent + "}", at)
    while at and lines[at - 1].strip().startswith(("//", "template")):
        at -= 1
    return "\n".join(lines[at : end + 1])


print(function("consume.cuh", "step"))

# %% [markdown]
# What the compiler made of it, for the longest full cell of each head dim. Tiles with a mask have a loop of their own,
# so that this one compares no column; the softmax scale and the maximum enter in one FFMA in front of each exponential.
# First what a thread runs for every tile of keys, then, after the plus, what it runs where a maximum has grown.


# %%
full = [each for each in grid if not each.cell.problem.causal and each.of(HOPPER) is not None]
by_length = sorted(full, key=lambda each: each.cell.problem.seq_kv)
loops = {each.cell.problem.head_dim: each for each in by_length}  # the longest of each
loops = {dim: loop_of(each.cell.problem, tile_of(each.of(HOPPER))) for dim, each in sorted(loops.items())}


def counted(always: int, seldom: int) -> str:
    return f"{always or ''}{f' + {seldom}' if seldom else ''}".strip()


totals = sum((loop.always + loop.seldom for loop in loops.values()), Counter())
table(
    ("opcode", *(f"head dim {dim}, {loop.tile['tile_keys']} keys" for dim, loop in loops.items())),
    (
        (opcode, *(counted(loop.always[opcode], loop.seldom[opcode]) for loop in loops.values()))
        for opcode, _ in totals.most_common(12)
    ),
)

# %%
dim, loop = max(loops.items(), key=lambda pair: pair[1].tile["tile_keys"])
Markdown(
    f"At head dim {dim} a thread holds {loop.tile['tile_keys'] // 2} scores of a tile and {dim // 2} outputs. It takes "
    f"{loop.always['MUFU']} exponentials behind {loop.always['FFMA']} FFMA, looks for a larger score with "
    f"{loop.always['VIMNMX3']} integer maxima of three, and issues {loop.always['HGMMA']} products: "
    f"{dim // 16} for the "
    f"scores and {loop.tile['tile_keys'] // 16} for the output. The {loop.seldom['FMNMX']} maxima and "
    f"{loop.seldom['FMUL']} multiplications of a plain online softmax stand behind a branch."
)

# %% [markdown]
# How that fills an SM, in clocks for one tile of all warpgroups. An instruction of a warp is 32 results of the FP32
# lanes' rate, so that rate over 32 is how many instructions an SM was seen to issue in a clock.


# %%
def filled(loop: Loop) -> tuple[str, ...]:
    shape = shape_of(loop.problem, loop.tile)
    products, exponentials = promise.cycles(profile, loop.problem, loop.tile)
    issued = loop.always.total() * 4 * shape.warpgroups / (profile.value(promise.MULTIPLIES) / 32)
    longest = max(products, exponentials)
    parts = (products, exponentials, issued)
    return (
        str(shape.head_dim),
        *(f"{part:.0f} ({part / longest:.0%})" for part in parts),
        f"{sum(parts) / longest:.2f}",
    )


table(
    ("head dim", "products", "exponentials", "issue of every instruction", "one after another, over the longest"),
    (filled(loop) for loop in loops.values()),
)

# %% [markdown]
# ## What the probes promise
#
# Three constants of the profile tell most of the story before there is a kernel. Per SM and clock, the tensor cores do
# so many FLOP, the exponential units so many exponentials, and the FP32 lanes so many multiplications. A tile of scores
# asks for the first two in a proportion that the head dim alone decides; the third is what rescaling outputs costs.

# %%
climbs = results.ladder(GPU)


def constant(name: str) -> str:
    return f"`{name}` = {profile.value(name):.4g}"


def bound_line(problem, tile) -> tuple[str, ...]:
    products, exponentials = promise.cycles(profile, problem, tile)
    return (
        str(problem.head_dim),
        "causal" if problem.causal else "full",
        f"{shape_of(problem, tile).tile_rows} x {tile['tile_keys']}",
        f"{products:.0f}",
        f"{exponentials:.0f}",
        "" if not products else f"{promise.overlap(profile, problem, tile).gain:.2f} x",
        f"{promise.lazy(profile, problem, tile).gain:.2f} x",
    )


lines = dict.fromkeys(bound_line(each.cell.problem, each.tile) for each in climbs)
table(
    (
        "head dim",
        "mask",
        "tile",
        "products [clk]",
        "exponentials [clk]",
        "most that overlap can bring",
        "most that lazy rescaling can bring",
    ),
    lines,
)

# %%
ratio = profile.value(promise.PRODUCTS) / profile.value("mma_bf16_flops_per_clk_sm")
slower = {
    each.cell: row.seconds / ours.seconds
    for each in grid
    if (row := each.of(AMPERE)) is not None and (ours := each.of(HOPPER)) is not None
}
serial: dict[int, list[float]] = {}
for each in climbs:
    gain = promise.overlap(profile, each.cell.problem, each.tile).gain
    serial.setdefault(each.cell.problem.head_dim, []).append(gain)
slower_by_dim: dict[int, list[float]] = {}
for cell, found in slower.items():
    slower_by_dim.setdefault(cell.problem.head_dim, []).append(found)
Markdown(
    f"Constants: {', '.join(map(constant, (promise.PRODUCTS, promise.EXPONENTIALS, promise.MULTIPLIES)))}.\n\n"
    "Where products and exponentials run side by side the longer counts; "
    + "; ".join(
        f"at head dim {dim} one after the other takes {spread(found)} times as long" for dim, found in serial.items()
    )
    + ". The wider the head, the more the products dominate, and the more outputs there are to rescale for "
    "each score.\n\n"
    f"And one step below the ladder: Ampere's `mma.sync` does {constant('mma_bf16_flops_per_clk_sm')} on this GPU, so "
    f"that leaving it for `wgmma` can bring {ratio:.2f} x where products are the limit. Our own tuned Ampere kernel "
    + (
        f"takes {spread(slower.values())} times as long as the Hopper kernel in the same run: "
        + "; ".join(f"{spread(found)} at head dim {dim}" for dim, found in slower_by_dim.items())
        + "."
        if slower
        else "was not timed in this run."
    )
)

# %% [markdown]
# ## Up the ladder
#
# Each rung is the committed kernel with ideas left out by its defines; the tile is the one that was picked for the
# whole kernel. All rungs of a cell alternate in one process, and each was held against the oracle first.
#
# **The bottom** is the simplest that is right: TMA, mbarriers and `wgmma` are there, and every consumer issues its
# products, waits for them, does its softmax, rescales its outputs and goes on; block b has its fixed share of tiles.

# %%
order = list(dict.fromkeys(step.ideas for each in climbs for step in each.rungs))
NAMES = {"": hopper.FIRST} | {idea: name for name, idea in hopper.STEPS}


def title(ideas: tuple[str, ...]) -> str:
    return " and ".join(NAMES.get(idea, idea.replace("_", " ")) for idea in ideas or ("",))


letters = {ideas: str(i) for i, ideas in enumerate(order)}
figure = figure_rungs.rungs(climbs, letters)

# %%
checked = max((step.timing.error / step.timing.allowed_error for each in climbs for step in each.rungs), default=0.0)
Markdown(
    "\n".join(f"- **{letter}** {title(ideas)}" for ideas, letter in letters.items())
    + f"\n\nOf the allowed error, the worst rung used {checked:.0%}."
)


# %%
def promised(idea: str, climb) -> float | None:
    return promise.PROMISES[idea](profile, climb.cell.problem, climb.tile).gain if idea in promise.PROMISES else None


def constants(idea: str) -> str:
    if idea not in promise.PROMISES or not climbs:
        return "no probe"
    decided = promise.PROMISES[idea](profile, climbs[0].cell.problem, climbs[0].tile).constants
    return ", ".join(f"`{name}`" for name in decided) or f"{profile.sm_count} SMs"


ideas = [idea for step in order for idea in step]
table(
    ("rung", "gain over the one below", "head dim 64", "128", "256", "promised at most", "by"),
    (
        (
            title((idea,)),
            spread(each.gain(idea) for each in climbs),
            *(
                spread(each.gain(idea) for each in climbs if each.cell.problem.head_dim == dim)
                for dim in (64, 128, 256)
            ),
            spread(promised(idea, each) for each in climbs),
            constants(idea),
        )
        for idea in ideas
    ),
)

# %% [markdown]
# The order of a ladder decides what each rung gets credit for. So here is the other way down: the whole kernel with one
# idea left out, in seconds over those of the whole. Below 1.00 the kernel would be faster without it.

# %%
table(
    ("left out", "time over that of the whole kernel", "full", "causal", "cells that are faster without"),
    (
        (
            title((idea,)),
            spread(each.lost_without(idea) for each in climbs),
            *(
                spread(each.lost_without(idea) for each in climbs if each.cell.problem.causal is c)
                for c in (False, True)
            ),
            f"{sum(value < 1 for value in lost)} of {len(lost)}",
        )
        for idea in ideas
        if (lost := [value for each in climbs if (value := each.lost_without(idea)) is not None])
    ),
)

# %% [markdown]
# ### Rung by rung
#
# **Taking turns** (`pingpong`). Consumers issue their products in turn, by a named barrier between neighbours, so that
# the softmax of one runs while the tensor cores work for another.
#
# **Softmax beside the other product** (`overlap`). Within one warpgroup: the scores of the next tile are issued first,
# then P V of the tile before, and the softmax of the scores runs while that second product is under way. Both ideas
# hide the same exponentials, so that the promise holds for the two together, not for each:


# %%
def together(climb) -> float | None:
    gains = [gain for idea in ("pingpong", "overlap") if (gain := climb.gain(idea)) is not None]
    return gains[0] * gains[1] if len(gains) == 2 else None


def by_dim(value, fallback: str = "") -> list[str]:
    return [
        spread(value(each) for each in climbs if each.cell.problem.head_dim == dim) or fallback
        for dim in (64, 128, 256)
    ]


table(
    ("both together", "head dim 64", "128", "256"),
    (("measured", *by_dim(together)), ("promised at most", *by_dim(lambda each: promised("overlap", each)))),
)

# %% [markdown]
# The promise supposes a bottom rung that does one thing after another. It does not: nothing keeps its warpgroups in
# step, and what one computes may already run under another's products, by chance instead of by turns. Nor does the top
# rung hide everything: at head dim 64 products, exponentials and issue slots are all wanted at once (the table of the
# loops), and a warpgroup that waits for one of them leaves the others idle.
#
# **Rescaling lazily** (`lazy`). An online softmax multiplies its outputs whenever a row's maximum has grown. It need
# not: with the old maximum p stays below 2^8 as long as no score exceeds it by more than 8 (in powers of two), and the
# last division takes the factor out again. The rare path stands behind a branch of the whole warp, and the common one
# only asks *whether* a score is larger: integer maxima of three in one instruction, since positive floats are ordered
# like integers. FlashAttention-4 rescales by the same rule. Which part of the promise arrives:

# %%
table(
    ("lazy rescaling", "head dim 64", "128", "256"),
    (
        ("measured", *by_dim(lambda each: each.gain("lazy"))),
        ("promised at most, the multiplications alone", *by_dim(lambda each: promised("lazy", each))),
    ),
)

# %% [markdown]
# Where more arrives than was promised, the maxima may be the rest: the promise counts only multiplications, since no
# probe has timed maxima.
#
# **Taking tiles from a counter** (`dynamic`). Without it, block b works on tiles b, b + SMs, and so on. Causal tiles
# differ in length, longest first, so that with a fixed share one block gets the longest of each round. The producer
# takes the next number from global memory while the last loads are under way, and hands row, head and batch to the
# consumers. The promise is arithmetic on the order of tiles and the number of SMs, and no rate at all:

# %%
table(
    ("head dim", "mask", "sequence", "measured", "promised"),
    (
        (
            str(each.cell.problem.head_dim),
            "causal" if each.cell.problem.causal else "full",
            str(each.cell.problem.seq_q),
            f"{gain:.2f}",
            f"{promised('dynamic', each):.2f}",
        )
        for each in climbs
        if (gain := each.gain("dynamic")) is not None
    ),
)

# %%
gains = [(each.gain("dynamic"), promised("dynamic", each)) for each in climbs if each.gain("dynamic") is not None]
off = [measured / told for measured, told in gains]
Markdown(
    f"Measured over promised: {spread(off)}. It counts tiles of keys alone: not a tile's first scores and its "
    "stores, and not whether blocks that keep together meet in the L2."
    if gains
    else "Tiles from a counter were not timed."
)

# %% [markdown]
# ## What stands between the kernel and the machine
#
# The model of the chooser divides what a tile asks for by the rates of the profile: the units of an SM work side by
# side, so that the longest counts, and what nothing overlaps (turns at the tensor cores, Q and the output) follows.
# **Constants alone** is that sum. **Corrected** is what the chooser said before this run, after earlier timings of the
# same kernel.


# %%
def by_constants(each):
    """The model's prediction, uncorrected."""
    return predict(profile, each.cell.problem, variant, tile_of(each.of(HOPPER)))


def limits_of(each) -> dict[str, float]:
    """TFLOPS that each unit alone would allow."""
    return {term.term: each.cell.flops / term.seconds / 1e12 for term in by_constants(each).terms}


def prediction_line(each) -> tuple[str, ...]:
    row = each.of(HOPPER)
    alone = by_constants(each)
    said = row.predicted_seconds
    return (
        name_of(each.cell) + (f", up to {each.cell.problem.seq_q}" if each.cell.lengths else ""),
        f"{row.config['warpgroups']} x 64 x {row.config['tile_keys']}",
        alone.bound_by,
        f"{alone.seconds * 1e6:.0f}",
        f"{said * 1e6:.0f}" if said else "",
        f"{row.seconds * 1e6:.0f}",
        f"{alone.seconds / row.seconds:.0%}",
        f"{row.seconds / said:.2f}" if said else "",
    )


mine = [each for each in beside if each.of(HOPPER) is not None]
table(
    (
        "cell",
        "tile",
        "bound by",
        "constants alone [µs]",
        "corrected [µs]",
        "measured [µs]",
        "alone / measured",
        "measured / corrected",
    ),
    (prediction_line(each) for each in mine),
)

# %%
errors = [
    abs(row.seconds / row.predicted_seconds - 1)
    for each in mine
    if not each.cell.lengths and (row := each.of(HOPPER)).predicted_seconds
]
alone = {each.cell: by_constants(each).seconds / each.of(HOPPER).seconds for each in mine if not each.cell.lengths}
above = [cell for cell, share in alone.items() if share > 1]
packed = [each for each in mine if each.cell.lengths]
said = [f"Constants alone come to {spread(alone.values())} of what was measured."]
if above:
    dims = sorted({cell.problem.head_dim for cell in above})
    said.append(
        f"More than 1 ({len(above)} cells, of head dim {', '.join(map(str, dims))}) means that the kernel is "
        f"faster than "
        "the model without corrections thinks possible: it hides a part of the turns, or of a rate that was "
        "measured at "
        "another clock."
    )
if errors:
    said.append(
        f"The corrected prediction was off by {sorted(errors)[len(errors) // 2]:.1%} in the middle cell, "
        f"{max(errors):.0%} "
        "at most."
    )
if packed:
    said.append(
        "Packed cells are left out of both: the problem that the model sees knows their mean length, not each "
        "length, and "
        "a sum of squares is more than the square of a mean."
    )
Markdown(" ".join(said))

# %% [markdown]
# The same as a picture of the grid: bars are measured, marks are what each unit alone would allow. Marks beyond
# the plot are left out.

# %%
figure = figure_rungs.ceilings(
    [
        Ceilings(name_of(each.cell), each.of(HOPPER).tflops, limits_of(each))
        for each in grid
        if each.of(HOPPER) is not None
    ],
    f"{profile.name}: the grid under its ceilings",
    2000.0,
)


# %%
def nearest(each) -> list[str]:
    """Units by what they alone would allow, the tightest first."""
    limits = limits_of(each)
    return sorted(limits, key=limits.get)[:2]


found = {}
for each in grid:
    if each.of(HOPPER) is not None:
        order_of = ", then ".join(nearest(each))
        found.setdefault(each.cell.problem.head_dim, Counter())[order_of] += 1
Markdown(
    "A mark right of a bar is a unit with time to spare. The two nearest: "
    + "; ".join(
        f"head dim {dim}: {' or '.join(f'{name} ({count})' for name, count in each.most_common())}"
        for dim, each in found.items()
    )
    + ". In short and in causal cells the bars stay further below every mark: tiles that the diagonal cuts are "
    "computed in full, and each tile of rows pays for its first scores and its stores with fewer keys in between."
)

# %% [markdown]
# ### The clock
#
# The ceilings of products are measured rates, and those were measured under the power limit:

# %%
rates = pick(runs, "wgmma_throughput", "flops_per_s", gpu=GPU, operands="ss").query("`point.n` == 128")
clocks = {inputs: rows["clock_mhz"].median() for inputs, rows in rates.groupby("point.inputs")}
speeds = {inputs: rows["value"].median() / 1e12 for inputs, rows in rates.groupby("point.inputs")}
PEAK = profile.value(promise.PRODUCTS) * profile.sm_count  # FLOP a clock, the whole GPU


def least_clock(each) -> float:
    """GHz below which the tensor cores could not have done a cell's FLOPs in its time."""
    return each.cell.flops / each.of(HOPPER).seconds / PEAK / 1e9


longest = max(each.cell.problem.seq_q for each in grid)
long = {name_of(each.cell): least_clock(each) for each in grid if each.cell.problem.seq_q == longest}
table(
    ("`wgmma`, N = 128, nothing else", "SM clock [MHz]", "TFLOPS"),
    ((inputs, f"{clocks[inputs]:.0f}", f"{speeds[inputs]:.0f}") for inputs in clocks),
)

# %%
flags = profile["wgmma_bf16_flops_per_s"].flags
top = max(long, key=long.get)
Markdown(
    f"The same instructions on operands that are all zero run at a higher clock than on normal ones, and the profile's "
    f"constant carries the flag {', '.join(flags) or 'of nothing'}. Multiplying costs energy, and the board "
    f"has a limit. "
    f"An attention kernel that keeps the tensor cores busy *and* computes exponentials has less of it left for "
    f"each.\n\n"
    f"The comparison does not record the clock. What its times do tell is the least clock at which the tensor "
    f"cores could "
    f"have done the work, being busy all the time: at {longest} tokens "
    + ", ".join(f"{value:.2f} GHz ({name})" for name, value in long.items())
    + f". At the {profile.clock_hz / 1e9:.2f} GHz that the GPU can clock, even the highest of them, {top}, "
    f"would have kept them "
    f"busy for {long[top] * 1e9 / profile.clock_hz:.0%} of the time. The ledger has what was noted of the clock itself."
)

# %% [markdown]
# ## The pick against the best
#
# One run timed every legal configuration of the kernel. What does the chooser leave on the table? Three choosers, each
# judged by that run's timings of what it picks over the fastest configuration: the model with nothing but the profile's
# constants; the model corrected by timings of all *other* cells of that run, which is what a new problem gets; and the
# configuration that the last run picked, after all timings before it. (A correction is a median over the cells of a
# head dim, so that having seen a cell does not mean to pick its fastest.)

# %%
every = [each for each in results.every_configuration(GPU) if sum(row.variant == HOPPER for row in each.timings) > 1]


def picked(problem, efficiencies) -> Config:
    return choose(profile, problem, variants=(variant,), efficiencies=efficiencies).pick.config


def from_others(each) -> Config:
    rows = tuple(row for other in every if other is not each for row in other.timings)
    return picked(each.cell.problem, timings.efficiencies(profile, rows, (variant,)))


def from_last_run(each) -> Config | None:
    found = next((row for one in beside if one.cell == each.cell and (row := one.of(HOPPER))), None)
    return tile_of(found) if found else None


CHOOSERS = {
    "constants alone": lambda each: picked(each.cell.problem, {}),
    "and timings of other cells": from_others,
    "and of this one": from_last_run,
}
left = {
    name: {
        each.cell: row.seconds / each.fastest(HOPPER).seconds
        for each in every
        if (tile := chooser(each)) is not None and (row := each.configured(HOPPER, tile)) is not None
    }
    for name, chooser in CHOOSERS.items()
}


def written(row) -> str:
    return f"{row.config['warpgroups']} x 64 x {row.config['tile_keys']}"


table(
    ("cell", "configurations", "slowest / fastest", "fastest", *CHOOSERS),
    (
        (
            name_of(each.cell),
            str(len(rows)),
            f"{max(row.seconds for row in rows) / each.fastest(HOPPER).seconds:.2f}",
            written(each.fastest(HOPPER)),
            *(f"{left[name][each.cell]:.3f}" if each.cell in left[name] else "" for name in CHOOSERS),
        )
        for each in every
        if (rows := [row for row in each.timings if row.variant == HOPPER])
    ),
)

# %%
Markdown(
    "\n".join(
        f"- **{name}**: {mean(found.values()):.3f} of the fastest's time in the mean, "
        f"{max(found.values()):.3f} at worst "
        f"({name_of(max(found, key=found.get))}); the fastest itself in "
        f"{sum(value == 1 for value in found.values())} of {len(found)} cells."
        for name, found in left.items()
        if found
    )
    or "No run on file timed every configuration."
)

# %% [markdown]
# And what each axis of the space is worth, as the fastest with one value over the fastest of all: warpgroups, and keys
# of a tile. More keys mean fewer steps and fewer rescalings; a third warpgroup hides more, and leaves each thread fewer
# registers.


# %%
def worth(axis: str, value: int, dim: int) -> str:
    found = []
    for each in every:
        rows = [row for row in each.timings if row.variant == HOPPER and row.config.get(axis) == value]
        if each.cell.problem.head_dim == dim and rows:
            found.append(min(row.seconds for row in rows) / each.fastest(HOPPER).seconds)
    return spread(found)


dims = sorted({each.cell.problem.head_dim for each in every})
values = {
    axis: sorted({row.config[axis] for each in every for row in each.timings if row.variant == HOPPER})
    for axis in ("warpgroups", "tile_keys")
}
table(
    ("", *(f"head dim {dim}" for dim in dims)),
    (
        (
            f"{value} {axis.replace('_', ' of ').replace('tile of keys', 'keys')}",
            *(worth(axis, value, dim) for dim in dims),
        )
        for axis, found in values.items()
        for value in found
    ),
)

# %% [markdown]
# ## Ledger: what was tried and left out
#
# Measured by us on an H100 while the kernel was written. **These figures are in no file of `data/`**: they are notes,
# and the committed kernel cannot reproduce them.

# %%
table(
    ("idea", "what it brought", "why"),
    (
        (
            "waiting for P V only when half of the exponentials are under way, by a store that never runs in "
            "front of the "
            "wait, since ptxas moves it up",
            "+0 to +1 %",
            "nothing to gain",
        ),
        (
            "issuing the next tile's first scores before the stores of the last",
            "half the speed",
            "ptxas serialises `wgmma` (note C7518) or puts a wait in front of it (C7517); our builds fail on "
            "either note",
        ),
        ("passing over warpgroups whose rows lie beyond the end", "spills", "a consumer has no register left"),
    ),
)

# %% [markdown]
# What the ladder itself rejects is data: causal tiles dealt out in a fixed order are the rung below the counter.
#
# **The clock.** Of the longest cells the note says: tensor cores busy for 87 to 99 % of the time, at 1.35 to 1.45 GHz
# under the board's power limit. The share of time that the tensor cores would have been busy in the committed run, at
# either clock:

# %%
NOTED = (1.35, 1.45)  # GHz, from the note
table(
    (f"{longest} tokens", *(f"at {clock} GHz" for clock in NOTED)),
    ((name, *(f"{value / clock:.0%}" for clock in NOTED)) for name, value in long.items()),
)

# %%
beyond = [name for name, value in long.items() if value > max(NOTED)]
under = [name for name, value in long.items() if value / min(NOTED) < 0.87]
said = []
if beyond:
    said.append(
        f"More than all the time is impossible: in the committed run {'; '.join(beyond)} ran at a higher clock "
        f"than the "
        "note's. There, each call stands behind a flush of the L2."
    )
if under:
    said.append(f"Less than the note's share: {'; '.join(under)}, or their clock was lower than the note's.")
Markdown(" ".join([*said, "A comparison that records the clock will settle it."]))

# %% [markdown]
# ## What to take from it


# %%
def gain_of(idea: str, causal: bool | None = None) -> str:
    return spread(each.gain(idea) for each in climbs if causal is None or each.cell.problem.causal is causal)


takes = []
if climbs:
    rise = [each.rungs[-1].timing for each in climbs]
    total = [each.rungs[0].timing.seconds / top.seconds for each, top in zip(climbs, rise, strict=True)]
    takes.append(
        f"**The first Hopper kernel is not far off.** TMA, `wgmma` and two trades of warpgroups are the bottom "
        f"rung; all "
        f"ideas above it bring {spread(total)} together."
    )
if gain_of("lazy"):
    takes.append(
        f"**Instructions that do not run are the cheapest.** Rescaling lazily brings {gain_of('lazy')}, and "
        f"the FP32 rate "
        f"had promised {spread(promised('lazy', each) for each in climbs)}."
    )
if gain_of("dynamic"):
    takes.append(
        f"**Causal is a question of dealing out.** Tiles from a counter bring {gain_of('dynamic', True)} on "
        f"causal cells, "
        f"and {gain_of('dynamic', False)} on full ones. The order of tiles and the number of SMs told so beforehand."
    )
if gain_of("pingpong"):
    lost = [value for each in climbs if (value := each.lost_without("pingpong")) is not None]
    takes.append(
        f"**Hiding the softmax is worth less than its promise**: {spread(map(together, climbs))} for turns and overlap "
        f"together. Turns alone, taken out of the whole kernel, cost more than 1 % in "
        f"{sum(value > 1.01 for value in lost)} of {len(lost)} cells, and leaving them out gains more than 1 % in "
        f"{sum(value < 0.99 for value in lost)}."
    )
if left["and of this one"]:
    takes.append(
        f"**A model with a few timings is enough to choose.** Constants alone leave "
        f"{mean(left['constants alone'].values()) - 1:.1%} on the table, with the timings of other cells "
        f"{mean(left['and timings of other cells'].values()) - 1:.1%}, with all "
        f"{mean(left['and of this one'].values()) - 1:.1%}."
    )
takes.append(
    "**The next lever is energy.** Products alone already run into the board's power limit. Where a kernel "
    "does too, hiding "
    "latency better buys nothing; fewer bytes through shared memory and fewer instructions do."
)
Markdown("\n".join(f"- {take}" for take in takes))
