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
from operator import methodcaller

from IPython.display import Markdown

import microbench
from attention.choose import learned
from attention.choose.choose import choose
from attention.choose.model import predict
from attention.compare import figure as peers_figure
from attention.compare import results
from attention.compare.ladders import hopper
from attention.compare.results import AMPERE, HOPPER, mean
from attention.kernels.sm90a.forward.warp_specialised.arguments import shape_of
from attention.variant import KERNELS, Config, by_path
from microbench.machine import arch
from microbench.report import figures
from microbench.report.figures import pick
from notebooks.ladders import figure_rungs, promise
from notebooks.ladders.figure_rungs import Ceilings
from notebooks.ladders.loop import Loop, loop_of
from notebooks.ladders.table import table

figures.style()
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


def spread(values) -> str:
    if not (found := [value for value in values if value is not None]):
        return ""
    low, high = f"{min(found):.2f}", f"{max(found):.2f}"
    return low if low == high else f"{mean(found):.2f} ({low} to {high})"


# %% [markdown]
# ## Where it ends
#
# One run, one process, candidates in turns, the L2 flushed before each call. Every result was first held against a
# float64 oracle. A gap is a peer that does not take the cell: torch passes neither packed sequences nor windows on to
# cuDNN, and packed sequences are not set up for FlexAttention here.

# %%
figure = peers_figure.beside_peers([each for each in beside if not each.cell.few], profile.name)

# %%
every_row = [row for each in beside for row in each.timings]
labels = {each.variant: each.label for each in peers_figure.candidates(beside)}
best = Counter(labels[each.best_peer.variant] for each in beside).most_common()
worst = max(row.error / row.allowed_error for row in every_row)
behind = [each for each in beside if each.ratio(HOPPER) < 1]
Markdown(
    f"Ours on Hopper's instructions over the best peer of each cell, geometric mean: "
    f"{peers_figure.summary(beside, HOPPER)}. It is behind the best peer in {len(behind)} of {len(beside)} cells: "
    f"{'; '.join(f'{name_of(each.cell)} ({each.ratio(HOPPER):.2f})' for each in behind) or 'none'}. The best peer is "
    f"{', '.join(f'{label} in {count}' for label, count in best)}. Of the error that the rule allows, the worst "
    f"result of all candidates used {worst:.0%}. {sum(bool(row.captured) for row in every_row)} of {len(every_row)} "
    "timings are of a captured CUDA graph."
)

# %% [markdown]
# ## The kernel
#
# `attention/kernels/sm90a/forward/warp_specialised/`, and what it has in common with the kernel that splits keys in
# `attention/kernels/sm90a/common/`. A block stays on its SM and works through tiles of query rows.
# Its warpgroups have two trades, and the producers' has a helper.
#
# - **One thread of the producer warpgroup** does nothing but fetch: K and V tiles by TMA into two rings, newest keys
#   first, and Q for each consumer as soon as that one has done with the last. A TMA box is one instruction, so one
#   thread is enough, and the warpgroup hands its registers to the others (`setmaxnreg`).
# - **One warp beside it**, where sequences are packed, clears what TMA brought of V from behind the end of one: these
#   rows are the next sequence's, or nobody's and may be NaN, and p = 0 does not help, for 0 * NaN is NaN. That tile
#   lands on a barrier of its own, and consumers hear of it when it is clean.
# - **Two or three consumer warpgroups** own 64 query rows each. Scores, softmax and output stay in registers all the
#   way. S = Q K^T is `wgmma` with both operands in shared memory (SS) or, where registers allow it and it was measured
#   to be faster, with Q in registers (RS). P never goes to shared memory: the accumulators of S become the A operand of
#   P V by a conversion in place (RS), as [02_instructions](02_instructions.ipynb) shows of their layouts.
# - **mbarriers** join them: `full` is raised by the bytes that arrive, `empty` by the warps that have read. A ring's
#   position is one counter, whose bits are stage and parity.
#
# What each trade asks for, at the tiles that were picked:

# %%
shapes = Counter(shape_of(each.cell.problem, tile_of(each.of(HOPPER))) for each in grid)
room = arch.by_name("sm90a").limits.smem_bytes_per_block


def shape_line(shape, cells: int) -> tuple[object, ...]:
    smem = f"{shape.smem_bytes / 1024:.0f} KiB ({shape.smem_bytes / room:.0%})"
    return shape.head_dim, f"{shape.warpgroups} x 64", shape.tile_keys, shape.threads, smem, cells


table(
    "head dim | rows of Q | keys of a tile | threads | shared memory (of the block's most) | cells",
    (shape_line(shape, cells) for shape, cells in shapes.items()),
)

# %% [markdown]
# The step that everything else serves, once for each tile of keys:


# %%
def function(file: str, name: str) -> str:
    """One member function of the headers of Hopper's kernels, with the comment above it."""
    lines = (KERNELS / "sm90a" / "common" / file).read_text().split("\n")
    at = next(i for i, line in enumerate(lines) if f" {name}(" in line and line.endswith("{"))
    end = lines.index(lines[at][: len(lines[at]) - len(lines[at].lstrip())] + "}", at)
    while lines[at - 1].strip().startswith(("//", "template")):
        at -= 1
    return "\n".join(lines[at : end + 1])


print(function("consume.cuh", "step"))

# %% [markdown]
# What the compiler made of it, for the longest full cell of each head dim. Tiles with a mask have a loop of their own,
# so that this one compares no column; the softmax scale and the maximum enter in one FFMA in front of each exponential.
# First what a thread runs for every tile of keys, then, after the plus, what it runs where a maximum has grown.


# %%
full = [each for each in grid if not each.cell.problem.causal]
longest_of = {each.cell.problem.head_dim: each for each in sorted(full, key=lambda each: each.cell.problem.seq_kv)}
loops = {dim: loop_of(each.cell.problem, tile_of(each.of(HOPPER))) for dim, each in sorted(longest_of.items())}


def counted(always: int, seldom: int) -> str:
    return f"{always or ''}{f' + {seldom}' if seldom else ''}".strip()


totals = sum((loop.always + loop.seldom for loop in loops.values()), Counter())
table(
    " | ".join(("opcode", *(f"head dim {dim}, {loop.tile['tile_keys']} keys" for dim, loop in loops.items()))),
    (
        (opcode, *(counted(loop.always[opcode], loop.seldom[opcode]) for loop in loops.values()))
        for opcode, _ in totals.most_common(12)
    ),
)

# %%
dim, loop = max(loops.items(), key=lambda pair: pair[1].tile["tile_keys"])
keys, always, seldom = loop.tile["tile_keys"], loop.always, loop.seldom
Markdown(
    f"At head dim {dim} a thread holds {keys // 2} scores of a tile and {dim // 2} outputs. It takes {always['MUFU']} "
    f"exponentials behind {always['FFMA']} FFMA, looks for a larger score with {always['VIMNMX3']} integer maxima of "
    f"three, and issues {always['HGMMA']} products: {dim // 16} for the scores and {keys // 16} for the output. The "
    f"{seldom['FMNMX']} maxima and {seldom['FMUL']} multiplications of a plain online softmax stand behind a branch."
)

# %% [markdown]
# How that fills an SM, in clocks for one tile of all warpgroups. An instruction of a warp is 32 results of the FP32
# lanes' rate, so that rate over 32 is how many instructions an SM was seen to issue in a clock.


# %%
def filled(loop: Loop) -> tuple[str, ...]:
    shape = shape_of(loop.problem, loop.tile)
    issued = loop.always.total() * 4 * shape.warpgroups / (profile.value(promise.MULTIPLIES) / 32)
    parts = (*promise.cycles(profile, loop.problem, loop.tile), issued)
    longest = max(parts[:2])
    return *(f"{part:.0f} ({part / longest:.0%})" for part in parts), f"{sum(parts) / longest:.2f}"


table(
    "head dim | products | exponentials | issue of every instruction | one after another, over the longest",
    ((dim, *filled(loop)) for dim, loop in loops.items()),
)

# %% [markdown]
# ## What the probes promise
#
# Three constants of the profile tell most of the story before there is a kernel. Per SM and clock, the tensor cores do
# so many FLOP, the exponential units so many exponentials, and the FP32 lanes so many multiplications. A tile of scores
# asks for the first two in a proportion that the head dim alone decides; the third is what rescaling outputs costs.
# Where products and exponentials run side by side, the longer counts.

# %%
climbs = results.ladder(GPU)


def constant(name: str) -> str:
    return f"`{name}` = {profile.value(name):.4g}"


def bound_line(problem, tile) -> tuple[object, ...]:
    products, exponentials = promise.cycles(profile, problem, tile)
    gains = (f"{idea(profile, problem, tile).gain:.2f} x" for idea in (promise.overlap, promise.lazy))
    rows = shape_of(problem, tile).tile_rows
    return problem.head_dim, f"{rows} x {tile['tile_keys']}", f"{products:.0f}", f"{exponentials:.0f}", *gains


table(
    "head dim | tile | products [clk] | exponentials [clk] | overlap brings at most | lazy rescaling at most",
    dict.fromkeys(bound_line(each.cell.problem, each.tile) for each in climbs),
)

# %%
slower = {dim: [] for dim in loops}
for each in grid:
    slower[each.cell.problem.head_dim].append(each.of(AMPERE).seconds / each.of(HOPPER).seconds)
fewer = profile.value(promise.PRODUCTS) / profile.value("mma_bf16_flops_per_clk_sm")
Markdown(
    f"Constants: {', '.join(map(constant, (promise.PRODUCTS, promise.EXPONENTIALS, promise.MULTIPLIES)))}. The wider "
    "the head, the more the products dominate, and the more outputs there are to rescale for each score.\n\n"
    f"And one step below the ladder: Ampere's `mma.sync` does {constant('mma_bf16_flops_per_clk_sm')} on this GPU, so "
    f"that leaving it for `wgmma` can bring {fewer:.2f} x where products are the limit. Our own tuned Ampere kernel "
    f"takes {spread(gain for found in slower.values() for gain in found)} times as long as the Hopper kernel in the "
    f"same run: {'; '.join(f'{spread(found)} at head dim {dim}' for dim, found in slower.items())}. Why it differs "
    "from the ratio of the rates is the subject of [22_ampere_on_hopper](22_ampere_on_hopper.ipynb)."
)

# %% [markdown]
# ## Up the ladder
#
# Each rung is the kernel that was committed then, with ideas left out by its defines and turns left in: as it shipped,
# full attention at head dims 64 and 128 took none. The tile is the one that was picked for the whole kernel. All rungs
# of a cell alternate in one process, and each was held against the oracle first.
#
# **The bottom** is the simplest that is right: TMA, mbarriers and `wgmma` are there, and every consumer issues its
# products, waits for them, does its softmax, rescales its outputs and goes on; block b has its fixed share of tiles. In
# causal cells of two warpgroups, this rung and the next spill two registers.

# %%
letters = {step.ideas: str(i) for i, step in enumerate(max(climbs, key=lambda each: len(each.rungs)).rungs)}
figure = figure_rungs.rungs(climbs, letters)

# %%
last = {each.cell: each for each in beside}
again = [last[each.cell].of(HOPPER).seconds / each.rungs[-1].timing.seconds for each in climbs]
checked = max(step.timing.error / step.timing.allowed_error for each in climbs for step in each.rungs)
Markdown(
    "\n".join(f"- **{i}** {name}" for i, name in enumerate((hopper.FIRST, *(name for name, _ in hopper.STEPS))))
    + f"\n\nOf the allowed error, the worst rung used {checked:.0%}. The whole kernel runs at {spread(again)} of its "
    "speed beside the peers: the clock differs between processes, and some full cells shipped without turns, so that "
    "only ratios within one ladder count. What each rung brings over the one below, and after the stroke what was "
    "promised at most:"
)


# %%
DIMS = (64, 128, 256)


def promised(idea: str, climb) -> float:
    return promise.PROMISES[idea](profile, climb.cell.problem, climb.tile).gain


def together(climb) -> float:
    return climb.gain("pingpong") * climb.gain("overlap")


def rung_line(name: str, idea: str, gain) -> tuple[str, ...]:
    found = [[each for each in climbs if each.cell.problem.head_dim == dim] for dim in DIMS]
    by_dim = (f"{spread(map(gain, some))} / {spread(promised(idea, each) for each in some)}" for some in found)
    return name, spread(map(gain, climbs)), *by_dim


BY_DIM = " | ".join(f"head dim {dim}" for dim in DIMS)
lines = [rung_line(name, idea, methodcaller("gain", idea)) for name, idea in hopper.STEPS]
lines.insert(2, rung_line("the two together", "overlap", together))
table(f"rung | gain | {BY_DIM}", lines)

# %% [markdown]
# **Taking turns** (`pingpong`). Consumers issue their products in turn, by a named barrier between neighbours, so that
# the softmax of one runs while the tensor cores work for another.
#
# **Softmax beside the other product** (`overlap`). Within one warpgroup: the scores of the next tile are issued first,
# then P V of the tile before, and the softmax of the scores runs while that second product is under way. Both ideas
# hide the same exponentials, so that the promise holds for the two together. Why does so little of it arrive? The
# promise supposes a bottom rung that does one thing after another, and it does not: nothing keeps its warpgroups in
# step, and what one computes may already run under another's products, by chance instead of by turns. Nor does the top
# rung hide everything: at head dim 64 products, exponentials and issue slots are all wanted at once (the table of the
# loops), and a warpgroup that waits for one of them leaves the others idle.
#
# The order of a ladder decides what each rung gets credit for. So here is the other way down: the whole kernel without
# turns, in seconds over those of the whole. Below 1.00 the kernel would be faster without them; so turns were
# taken everywhere but in full attention at head dims 64 and 128, until somebody looked at calls of one wave: without
# turns warpgroups may fall into step there and stay so, up to 20 % slower, and the best tile of a large call loses
# nothing by turns (H200). Since then every call takes them.
#
# Overlap pays most on top of the rungs above it: the second table is the whole kernel without overlap.


# %%
def without(idea: str) -> Markdown:
    """Seconds of the whole kernel without an idea, over those with it."""

    def line(causal: bool) -> tuple[str, ...]:
        here = [each for each in climbs if each.cell.problem.causal is causal]
        by_dim = (spread(e.lost_without(idea) for e in here if e.cell.problem.head_dim == dim) for dim in DIMS)
        return "causal" if causal else "full", *by_dim

    return table(f"without {idea} | {BY_DIM}", map(line, (False, True)))


without("pingpong")

# %%
without("overlap")

# %% [markdown]
# **Rescaling lazily** (`lazy`). An online softmax multiplies its outputs whenever a row's maximum has grown. It need
# not: with the old maximum p stays below 2^8 as long as no score exceeds it by more than 8 (in powers of two), and the
# last division takes the factor out again. The rare path stands behind a branch of the whole warp, and the common one
# only asks *whether* a score is larger: integer maxima of three in one instruction, since positive floats are ordered
# like integers. FlashAttention-4 rescales by the same rule. Where more arrives than was promised, the maxima may be the
# rest: the promise counts only multiplications, since no probe has timed maxima.
#
# **Taking tiles from a counter** (`dynamic`). Without it, block b works on tiles b, b + SMs, and so on. Causal tiles
# differ in length, longest first, so that with a fixed share one block gets the longest of each round. The producer
# takes the next number from global memory while the last loads are under way, and hands row, head and batch to the
# consumers. The promise is arithmetic on the order of tiles and the number of SMs, and no rate at all:

# %%
counter = {each.cell.problem: (each.gain("dynamic"), promised("dynamic", each)) for each in climbs}
lengths = sorted({of.seq_q for of in counter})
dealt = {(of.head_dim, of.seq_q): f"{gain:.2f} / {told:.2f}" for of, (gain, told) in counter.items() if of.causal}
table(
    f"causal, measured / promised | {' | '.join(map(str, lengths))}",
    ((f"head dim {dim}", *(dealt[dim, length] for length in lengths)) for dim in DIMS),
)

# %%
evenly, uneven = ([gain for of, (gain, _) in counter.items() if of.causal is causal] for causal in (False, True))
Markdown(
    f"Full cells were promised nothing and got {spread(evenly)}. Over all, measured over promised is "
    f"{spread(gain / told for gain, told in counter.values())}: the promise counts tiles of keys alone, not a tile's "
    "first scores and its stores, and not whether blocks that keep together meet in the L2."
)

# %% [markdown]
# **Q in registers** (`q_in_registers`). A product may take its first operand from registers. Then Q leaves shared
# memory once for each tile of rows and not once for each tile of keys, and its room is free for the next tile's at
# once. The probes promise nothing: shared memory has time to spare beside products and exponentials. But a long kernel
# runs into the power limit, where every byte that does not move counts, and a short one waits for its first Q. It is an
# axis of the configuration space, and the chooser takes it where timings say so; head dims 192 and 256, and three
# warpgroups at 96 and 128, have no registers for it. First the ladder, whose rungs take turns; then the run of every
# configuration, as the kernel ships: the same tile with and without.


# %%
def by_length(heading: str, found) -> Markdown:
    """A line for each head dim and mask, from texts by head dim, mask and length."""
    lines = (
        (f"head dim {dim}, {'causal' if causal else 'full'}", *(found.get((dim, causal, each), "") for each in lengths))
        for dim, causal in sorted({(dim, causal) for dim, causal, _ in found})
    )
    return table(f"{heading} | {' | '.join(map(str, lengths))}", lines)


def place_of(each) -> tuple[int, bool, int]:
    return each.cell.problem.head_dim, each.cell.problem.causal, each.cell.problem.seq_q


gains = {place_of(each): each.gain(hopper.Q_IN_REGISTERS) for each in climbs}
by_length("with Q in registers, over without", {place: f"{gain:.2f}" for place, gain in gains.items() if gain})


# %%
def same_tiles(each) -> str:
    """Seconds of every tile with Q in shared memory over those of the same tile with Q in registers."""
    found = [tile_of(row) for row in each.timings if row.variant == HOPPER and row.config[hopper.Q_IN_REGISTERS]]
    pairs = ((each.configured(HOPPER, tile), tile) for tile in found)
    others = ((row, Config((*tile.values[:-1], (hopper.Q_IN_REGISTERS, 0)))) for row, tile in pairs)
    return spread(each.configured(HOPPER, other).seconds / row.seconds for row, other in others)


shipped = [each for each in results.every_configuration(GPU) if each.cell.grid and each.cell.problem.head_dim < 256]
by_length("all tiles, as shipped", {place_of(each): same_tiles(each) for each in shipped})

# %% [markdown]
# ## What stands between the kernel and the machine
#
# The model of the chooser takes the warpgroups of an SM as they go: their products interleave, so that all begin their
# softmax together, and run p V of the tile before beside it. A step is Q K^T, the longer of softmax and p V, and waits;
# around the steps of a tile of rows lie its first softmax, its masks and its stores. **Constants alone** is that sum,
# without any timing of this kernel. **Corrected** is what the chooser said before this run, after earlier timings.


# %%
def by_constants(each):
    """The model's prediction, uncorrected."""
    return predict(profile, each.cell.problem, variant, tile_of(each.of(HOPPER)))


UNITS = {
    "products on wgmma": ("Q K^T on wgmma", "P V on wgmma"),
    "softmax": ("exponentials",),
    "rows by the L2": ("rows by the L2",),
    "all from DRAM": ("Q, K, V and out from DRAM",),
}


def limits_of(each) -> dict[str, float]:
    """TFLOPS that each unit alone would allow."""
    terms = by_constants(each).terms
    took = {unit: sum(term.seconds for term in terms if term.term in names) for unit, names in UNITS.items()}
    return {unit: each.cell.flops / seconds / 1e12 for unit, seconds in took.items()}


def written(row) -> str:
    return f"{row.config['warpgroups']} x 64 x {row.config['tile_keys']}"


def prediction_line(each) -> tuple[str, ...]:
    row, alone = each.of(HOPPER), by_constants(each)
    return (
        name_of(each.cell) + (f", up to {each.cell.problem.seq_q}" if each.cell.lengths else ""),
        written(row),
        alone.bound_by,
        *(f"{seconds * 1e6:.0f}" for seconds in (alone.seconds, row.predicted_seconds, row.seconds)),
        f"{alone.seconds / row.seconds:.0%}",
        f"{row.seconds / row.predicted_seconds:.2f}",
    )


table(
    "cell | tile | bound by | constants alone [µs] | corrected [µs] | measured [µs] | alone / measured | "
    "measured / corrected",
    map(prediction_line, beside),
)

# %%
even = [each for each in beside if not each.cell.lengths]
errors = sorted(abs(each.of(HOPPER).seconds / each.of(HOPPER).predicted_seconds - 1) for each in even)
alone = [by_constants(each).seconds / each.of(HOPPER).seconds for each in even]
Markdown(
    f"Constants alone come to {spread(alone)} of what was measured. In {sum(x > 1 for x in alone)} cells that is more "
    "than 1: the kernel hides a part of what the model lets it wait for, or ran at a higher clock. The corrected "
    f"prediction was off by {errors[len(errors) // 2]:.1%} in the middle cell, {errors[-1]:.0%} at most. Packed cells "
    "are left out of both: a call knows the longest sequence and the sum of all, not each length."
)

# %% [markdown]
# The same as a picture of the grid: bars are measured, marks within the plot are what each unit alone would allow.

# %%
figure = figure_rungs.ceilings(
    [Ceilings(name_of(each.cell), each.of(HOPPER).tflops, limits_of(each)) for each in grid],
    f"{profile.name}: the grid under its ceilings",
    2000.0,
)

# %%
found: dict[int, Counter[str]] = {}
for each in grid:
    limits = limits_of(each)
    found.setdefault(each.cell.problem.head_dim, Counter())[", then ".join(sorted(limits, key=limits.get)[:2])] += 1
nearest = {dim: " or ".join(f"{name} ({count})" for name, count in each.most_common()) for dim, each in found.items()}
Markdown(
    "A mark right of a bar is a unit with time to spare. The two nearest: "
    f"{'; '.join(f'head dim {dim}: {each}' for dim, each in nearest.items())}. In short and in causal cells the bars "
    "stay further below every mark: tiles that the diagonal cuts are computed in full, and each tile of rows pays for "
    "its first scores and its stores with fewer keys in between."
)

# %% [markdown]
# ### The clock
#
# The ceilings of products are measured rates, and those were measured under the power limit: multiplying costs energy.
# The comparison does not record the clock. What its times do tell is the least clock at which the tensor cores could
# have done the work, being busy all the time, and for how much of it they would have been at the most that the GPU can
# clock:

# %%
PEAK = profile.value(promise.PRODUCTS) * profile.sm_count  # FLOP a clock, the whole GPU
NOTED = 1.45  # GHz, the most that a note of ours has
longest = max(each.cell.problem.seq_q for each in grid)
at_length = [each for each in grid if each.cell.problem.seq_q == longest]
long = {name_of(each.cell): each.cell.flops / each.of(HOPPER).seconds / PEAK / 1e9 for each in at_length}
table(
    f"{longest} tokens | least clock [GHz] | busy at {profile.clock_hz / 1e9:.2f} GHz",
    ((name, f"{value:.2f}", f"{value * 1e9 / profile.clock_hz:.0%}") for name, value in long.items()),
)

# %%
rates = pick(runs, "wgmma_throughput", "flops_per_s", gpu=GPU, operands="ss").query("`point.n` == 128")
alone = {inputs: f"{rows['clock_mhz'].median():.0f} MHz" for inputs, rows in rates.groupby("point.inputs")}
Markdown(
    f"`wgmma` alone, with N = 128, runs at {alone['normal']} on normal operands and at {alone['zeros']} on zeros, and "
    f"the profile's constant carries the flag {', '.join(profile['wgmma_bf16_burst_flops_per_s'].flags) or 'none'}. An "
    "attention kernel that keeps the tensor cores busy *and* computes exponentials has less energy for each. A note "
    f"from while the kernel was written has 1.35 to {NOTED} GHz under the board's power limit for the longest cells, "
    "and tensor cores busy for 87 to 99 % of the time. In the committed run, where each call stands behind a flush of "
    f"the L2, the clock was higher in {'; '.join(name for name, value in long.items() if value > NOTED) or 'no cell'}. "
    "A comparison that records the clock will settle it."
)

# %% [markdown]
# ## The pick against the best
#
# The kernel has changed since the H100 timed it, and a timing of another kernel corrects nothing. So this part is about
# the H200, where one run timed every legal configuration of the kernel as it is. What does the chooser leave on the
# table? Each choice is judged by that run's timings, of what is picked over the fastest configuration: the model with
# nothing but the profile's constants; corrected by timings of all *other* cells of that run, which is what a new
# problem gets; corrected by all timings on file, which is what a call gets today; and what the last run picked, after
# all timings before it. (A correction weighs timings under the same kind of mask by how far their lengths are, beside
# the model's own word; predictions within 2 % count as equal, so that having seen a cell does not mean to pick its
# fastest.)

# %%
CHOSEN_ON = "h200-sxm-141gb"
here = microbench.Profile.load(CHOSEN_ON)
every = results.every_configuration(CHOSEN_ON)
latest = {each.cell: each for each in results.last_run(CHOSEN_ON)}


def picked(each, efficiencies) -> Config:
    return choose(here, each.cell.problem, variants=(variant,), efficiencies=efficiencies).pick.config


def from_others(each) -> Config:
    rows = tuple(row for other in every if other is not each for row in other.timings)
    return picked(each, learned.efficiencies(here, rows, (variant,)))


CONSTANTS, OTHERS, ALL, LAST = "constants alone", "and timings of other cells", "all on file", "the last run's pick"
on_file = learned.of_machine(here)
CHOOSERS = {
    CONSTANTS: lambda each: picked(each, {}),
    OTHERS: from_others,
    ALL: lambda each: picked(each, on_file),
    LAST: lambda each: tile_of(latest[each.cell].of(HOPPER)),
}


def left_by(chooser) -> dict:
    """Of each cell, the seconds of what is chosen over those of the fastest; none where that run did not time it."""
    chosen = ((each, each.configured(HOPPER, chooser(each))) for each in every)
    return {each.cell: timing.seconds / each.fastest(HOPPER).seconds for each, timing in chosen if timing}


left = {name: left_by(chooser) for name, chooser in CHOOSERS.items()}


def choice_line(each) -> tuple[str, ...]:
    rows, best = [row for row in each.timings if row.variant == HOPPER], each.fastest(HOPPER)
    slowest = max(row.seconds for row in rows) / best.seconds
    lost = (f"{left[name][each.cell]:.3f}" if each.cell in left[name] else "not timed" for name in CHOOSERS)
    return name_of(each.cell), str(len(rows)), f"{slowest:.2f}", written(best), *lost


table(f"cell | configurations | slowest / fastest | fastest | {' | '.join(CHOOSERS)}", map(choice_line, every))

# %%
lost = left[LAST]
costly = [f"{name_of(cell)} ({value:.3f})" for cell, value in lost.items() if value > 1.01]
on_grid = [latest[each.cell] for each in every if each.cell.grid and each.cell in lost]
are = [each.ratio(HOPPER) for each in on_grid]
could = [each.ratio(HOPPER) * lost[each.cell] for each in on_grid]
said = [
    f"- **{name}**: {mean(found.values()):.3f} of the fastest's time in the mean, {max(found.values()):.3f} at worst "
    f"({name_of(max(found, key=found.get))}); the fastest itself in {sum(value == 1 for value in found.values())} of "
    f"{len(found)} cells."
    for name, found in left.items()
]
Markdown(
    "\n".join(said) + f"\n\nThe last run's pick leaves more than 1 % in {'; '.join(costly) or 'no cell'}. If the "
    "fastest had been picked in each, and gained there what it does in the run of all configurations, the grid's mean "
    f"beside the best peer would be {mean(could):.3f} instead of {mean(are):.3f}, and its worst cell {min(could):.3f} "
    f"instead of {min(are):.3f}."
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


configs = [row.config for each in every for row in each.timings if row.variant == HOPPER]
axes = [(axis, value) for axis in ("warpgroups", "tile_keys") for value in sorted({each[axis] for each in configs})]
table(
    f" | {BY_DIM}",
    ((f"{value} {axis.replace('tile_', '')}", *(worth(axis, value, dim) for dim in DIMS)) for axis, value in axes),
)

# %% [markdown]
# ## Ledger: what was tried and left out
#
# Measured by us on an H100 SXM while the kernel was written, versions alternating in one process. **These figures are
# in no file of `data/`**: they are notes, and the committed kernel cannot reproduce them.
#
# - **Where descriptors live.** Predicted: nothing, it was found in SASS. A product takes its operands' addresses from
#   uniform registers. ptxas kept the rings' counters there only where it could tell that a warp stays together; behind
#   the loops that pass over hidden tiles it could not, nor where a warpgroup's number came from `threadIdx`. Every
#   product then stood behind a chain of adds and R2UR, up to 64 instructions in a step. Now one lane hands out the
#   number, and an `.aligned` instruction (`wgmma.fence`, no cost by itself) stands behind such loops. The same tiles
#   before and after, Q in shared memory, mean over tiles and lengths: head dim 64 +2.5 % (-3 to +8), 96 +8 % (+2 to
#   +15), 128 +6 % (-4 to +22), 192 +2 % (0 to +4), 256 +2 % (0 to +6).
# - **A counter for each ring**, where one serves both: with Q in registers -7 to 0 % in causal cells, -3 to +8 % in
#   full ones; the same where Q stays in shared memory.
# - **Two rooms in shared memory for Q**, so that the next tile's Q comes in early. Predicted: +2 to +4 % at 1,024
#   tokens. Measured, before descriptors were looked at: -2 to -5 % in 11 of 12 cells of head dim 64 and 128 (ratios
#   0.954 to 0.998). The room is no constant of the compiler's any more. Q in registers brings the same without it.
# - **A part of Q in registers** at head dim 256, 4 of 16 slices: predicted +1 %, measured 0 to +1 %. Not worth an axis.
# - **Half a tile where the diagonal hides the other half**, for a warpgroup's first scores: predicted +3 % at 1,024
#   tokens. Never measured: ptxas serialises `wgmma` in every form that was tried (notes C7511, C7515, C7518).
# - **Sections of the causal schedule** by heads instead of bytes: 16 or 32 heads instead of what fits 16 or 64 MB, over
#   4 to 256 heads and 512 to 16,384 keys. Head dim 128 at 4,096 keys +3 %, 256 at 1,024 and 16,384 +1.4 to +2 %.
# - **Releasing Q behind the last scores** instead of behind the last products: full cells -0.4 to +0.8 %, causal ones
#   -1.2 to -5.8 %. It is one more compare and a branch in every step.
# - **Waiting late for P V**, when half of the exponentials are under way, by a store that never runs in front of the
#   wait, since ptxas moves that up. Without it head dim 64 causal is 1 to 2 % faster, and all else the same within
#   0.5 %: it left the kernel.
# - **The next tile's first scores before the stores of the last**: half the speed. ptxas serialises `wgmma` (note
#   C7518) or puts a wait in front of it (C7517); our builds fail on either note.
# - **Passing over warpgroups whose rows lie beyond the end**: spills. A consumer has no register left.
# - **Tiles dealt out in a fixed order**, on causal cells: that is data, the rung below the counter.
# - **One warpgroup a block, two blocks an SM**, so that one begins and ends its rows under the other's products.
#   Predicted: up to half of the time of small problems, whose tiles of rows cost some 3,000 cycles beside their keys.
#   Measured, the best tile of each: 4,096 queries of eight heads at head dim 64 +5 %, twelve other problems -13 to
#   +2 %. Two blocks read K and V twice, and that is not hidden. It is no axis.
# - **Reading a mask.** 2 x 16 heads of 4,096 at head dim 128, full, 378 us without one. A byte at a time behind a
#   branch of its own: 1,740. By twos, 16 registers of them on their way: 689, and 705 with floats of 16 bits
#   (predicted: 472, 0.8 of the unmasked speed). Eight keys a lane, traded in the quad, since eight rows are eight lines
#   of L1 however few keys a lane reads: 665, but 848 with floats. The same on its way before the products: 564, and
#   678. That one spilled from 48 keys on at head dim 256, and was left for what needs no registers: a mask's tile in
#   shared memory.
# - **A mask's tile in shared memory**, a tile of keys ahead: each warp brings its own 16 rows by `cp.async` once it has
#   read the last ones, and no register holds them (predicted: 430 to 480 us). On another H100: 466. At 4 x 16 heads, in
#   the set of floors, the best tile with bools reaches 0.78 of the unmasked speed at head dim 128 and 0.69 at 64, with
#   bfloat16 0.71 and 0.57, with float32 0.58 and 0.49 (0.8 was asked); torch's best of masks is 1.2 to 1.7 times
#   slower than our pick. Head dim 256, timed apart: 0.81 and 0.79. What is left is the instructions of masking, which
#   at head dim 64 no product hides.
# - **Rescaling lazily beside a mask**: 564 became 596.
#
# What was tried since has its times in `data/experiments` (an H200, whole problems and one block alone on an SM):
#
# - **Turns at the exponentials**, in place of turns at products. Predicted: a quarter of a step at head dim 64. Three
#   warpgroups lost 2 to 9 %: a warp's exponentials take 850 cycles beside products, whoever else has the MUFU.
# - **p guessed before the tile's maximum is known.** Predicted: 5 % at head dim 64. Measured: 8 %, and 2 to 4 % at the
#   others. It is in the kernel that the first page shows, and not in the H100's rungs above.
#
# **What being right cost.** The warp that clears V has no cost that we could measure in the packed cells, but
# producers are short of registers, and what lives in both trades is spilled in both where theirs do not hold it. Three
# causes were found: `gridDim`, which ptxas keeps in a register where a loop reads it (the number of blocks is an
# argument now); a signed division by the keys of a tile (unsigned now); and three panels a row (head dims 96 and 192),
# where producers get more registers and consumers fewer.
#
# ## What to take from it

# %%
total = [each.rungs[0].timing.seconds / each.rungs[-1].timing.seconds for each in climbs]
turns = [each.lost_without("pingpong") for each in climbs]
freed = [each.cell.problem.causal for each, value in zip(climbs, turns, strict=True) if value < 0.99]
short_of = {name: mean(found.values()) - 1 for name, found in left.items()}
takes = (
    "**The first Hopper kernel is not far off.** TMA, `wgmma` and two trades of warpgroups are the bottom rung; all "
    f"ideas above it bring {spread(total)} together.",
    "**Instructions that do not run are the cheapest.** Rescaling lazily brings "
    f"{spread(each.gain('lazy') for each in climbs)}; the FP32 rate had promised "
    f"{spread(promised('lazy', each) for each in climbs)}. The ledger has the other side: a compare and a branch in "
    "every step, or descriptors in the wrong registers, cost more than the latency that they hide.",
    f"**Causal is a question of dealing out.** Tiles from a counter bring {spread(uneven)} on causal cells, "
    f"and {spread(evenly)} on full ones. The order of tiles and the number of SMs told so beforehand.",
    f"**Hiding the softmax is worth less than its promise**: {spread(map(together, climbs))} for turns and overlap "
    f"together. Without turns the whole kernel is more than 1 % slower in {sum(value > 1.01 for value in turns)} of "
    f"{len(turns)} cells, and more than 1 % faster in {len(freed)}, of which {freed.count(False)} are full.",
    f"**A model with a few timings chooses well, not perfectly.** Constants alone leave {short_of[CONSTANTS]:.1%} on "
    f"the table, with the timings of other cells {short_of[OTHERS]:.1%}, with all on file "
    f"{short_of[ALL]:.1%}: one length or mask wants another tile than the next.",
    "**The next lever is energy.** Products alone already run into the board's power limit. Where a kernel does too, "
    "hiding latency better buys nothing; fewer bytes through shared memory and fewer instructions do.",
)
Markdown("\n".join(f"- {take}" for take in takes))
