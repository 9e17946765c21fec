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
# # Four generations of the matrix instruction
#
# **The question.** Volta, Ampere, Hopper and Blackwell each multiply matrices by another instruction. Where do the
# elements lie, what does the compiler write round the instruction, how long does it take, and how much does it do?
# An attention kernel is built on the answers: the softmax needs whole rows, P must become an operand, and the tensor
# cores must never wait.
#
# Nothing here needs a GPU. Layouts are found by experiment in the emulator, SASS comes from NVRTC and nvdisasm, and
# measured numbers from `data/`.

# %%
from collections import Counter

import numpy as np
from IPython.display import Markdown

import microbench
from microbench import compile as build
from microbench import layouts
from microbench.layouts import draw
from microbench.machine import arch
from microbench.report import figures, figures_sass
from microbench.report.figures import Curve, pick
from microbench.report.figures_sass import Work
from microbench.sass.latency import static_latencies
from microbench.sass.listing import between
from microbench.verify.tables import LatencyRow, read
from notebooks.ladders.table import table

figures.style()
GPU = "h100-sxm-80gb"
profile = microbench.Profile.load(GPU)
runs = microbench.load_runs()

# %% [markdown]
# ## Layouts: which thread holds which element
#
# The pictures are not typed in. A kernel hands a tensor instruction its fragments and returns the accumulators, and
# three experiments tell the rest: one element of A set to 1 shows its row, one element of B its column, and numbers in
# B show which elements share a k. `microbench/layouts/derive.py` is the method; the kernel runs here on the CPU model
# of the wrappers, and compiles for the GPU as it is. (An experiment cannot tell how rows are numbered: they are
# numbered in the order of the registers and lanes of A.)
#
# ### Volta: four small products at once
#
# `mma.m8n8k4` is issued by a warp, but eight lanes make a product: a quad pair.

# %%
pairs = layouts.volta("row", "col")
figure = draw.quad_pairs(pairs, "m8n8k4: the lanes of a warp, by the product they work for")

# %% [markdown]
# Inside a quad pair, a lane brings a row of A and a column of B. What it gets back of D lies in two rows and in two
# places of each.

# %%
figure = draw.product(pairs[0], "Volta, mma.m8n8k4.row.col: product 0", mark=1)

# %% [markdown]
# Each operand may also come the other way round. Only its fragment changes, not D: Q, K, V and their transposes all
# go straight from memory to registers, and this is how Volta lives without a transposing load.

# %%
turned = layouts.volta("col", "row")[0]
figure = draw.side_by_side(
    [
        draw.Panel(pairs[0].a, "A, row-major", "m", "k"),
        draw.Panel(turned.a, "A, column-major", "m", "k"),
        draw.Panel(pairs[0].b, "B, column-major", "k", "n"),
        draw.Panel(turned.b, "B, row-major", "k", "n"),
    ],
    "Volta: the operands of product 0, in both orders",
    mark=1,
)

# %% [markdown]
# ### Ampere: one product a warp
#
# All lanes work on one product. Four neighbours share a row of D; a register of A or B holds two neighbours in k.

# %%
(ampere,) = layouts.ampere()
figure = draw.product(ampere, "Ampere, mma.m16n8k16", mark=5)

# %% [markdown]
# `ldmatrix` exists for these fragments. Lane *l* names the address of a row of 16 bytes; the row's elements go to four
# other lanes. Rows below carry the number of the lane that names their address, cells that of the lane that gets them.

# %%
memory = layouts.ldmatrix()
figure = draw.side_by_side(
    [
        draw.Panel(memory.rows(8 * i, 8 * i + 8), f"register {i}", "" if i else "lane", "", first_row=8 * i)
        for i in range(4)
    ],
    "ldmatrix.x4: who names the address of a row, and who receives its elements",
    mark=5,
)


# %%
def quarters(fragment: layouts.Fragment) -> np.ndarray:
    """The 8 x 8 quarters of A as a column-major pile, (32, 8) threads and registers."""
    cells = np.stack([fragment.thread, fragment.element], axis=-1)
    return np.concatenate([cells[m : m + 8, k : k + 8] for k in (0, 8) for m in (0, 8)])


loads_a = np.array_equal(quarters(ampere.a), np.stack([memory.thread, memory.element], axis=-1))
reuses_d = np.array_equal(np.hstack([ampere.d.thread, ampere.d.thread]), ampere.a.thread)
assert loads_a and reuses_d

# %% [markdown]
# Two facts that the last cell asserts, and that an attention kernel is built on. Four quarters of a row-major tile,
# loaded by one `ldmatrix.x4`, are A. And two accumulator tiles side by side lie in the same lanes as one A: S becomes P
# in registers, by a conversion and no exchange.
#
# ### Hopper: four warps, B in shared memory
#
# `wgmma` takes a warpgroup. Each warp owns sixteen rows; the frames are one thread's elements.

# %%
COLUMNS = 32
hopper = layouts.hopper(COLUMNS)
figure = draw.warpgroup(hopper.d, f"Hopper, wgmma.m64n{COLUMNS}k16: D by warp; framed: thread 37", mark=37)

# %%
for warp in range(4):
    rows = hopper.d.thread[16 * warp : 16 * warp + 16]
    for j in range(0, COLUMNS, 8):
        assert np.array_equal(rows[:, j : j + 8] - 32 * warp, ampere.d.thread)
    assert np.array_equal(hopper.a.thread[16 * warp : 16 * warp + 16] - 32 * warp, ampere.a.thread)
    assert np.array_equal(hopper.a.element[16 * warp : 16 * warp + 16], ampere.a.element)

# %% [markdown]
# Each block of 16 x 8 is Ampere's D, and A in registers is Ampere's A: the softmax written for Ampere is right for
# Hopper. What is new is B. It stays in shared memory, where the instruction expects it swizzled: the experiment sets
# one 16-bit cell after another and sees which (n, k) it was.

# %%
cells = layouts.swizzle()
figure = draw.swizzled_tile(cells, "The 128-byte swizzle: which 16-byte chunk of k lies where; framed: chunk 0")

# %%
banks = cells * 2 % layouts.ROW_BYTES // 4  # of element (n, k)
assert all(len(set(banks[:, k])) == len(cells) for k in range(cells.shape[1]))

# %% [markdown]
# The same k of all eight rows lies in eight different groups of banks, as the cell asserts: 16 bytes of each row are
# read without a conflict. A slice is still addressed as if nothing was swizzled, by its first byte.
#
# ### Blackwell: D in a memory of its own
#
# `tcgen05.mma` is issued by one thread; A and B lie in shared memory and D in tensor memory, 128 lanes by 512 columns.
# The experiments are the same, with D brought to registers by `tcgen05.ld.32x32b`; one more lets each of eight warps
# read each quarter of the lanes, and notes where it is stopped. No Blackwell GPU was at hand: this picture is the
# emulator's reading of the PTX ISA.

# %%
blackwell = layouts.blackwell(COLUMNS)
figure = draw.tensor_memory(
    blackwell.d,
    layouts.tensor_memory_reach(),
    512,
    f"Blackwell, m128n{COLUMNS}k16: tensor memory, by the warps that reach it",
    mark=37,
)

# %% [markdown]
# ### What the softmax pays
#
# A row's maximum costs one shuffle for each doubling of the lanes that share the row.

# %%
SHOWN = (
    ("Volta", "m8n8k4", pairs[0].d),
    ("Ampere", "m16n8k16", ampere.d),
    ("Hopper", f"wgmma.m64n{COLUMNS}k16", hopper.d),
    ("Blackwell", f"tcgen05.mma.m128n{COLUMNS}k16", blackwell.d),
)


def sharing(d: layouts.Fragment) -> tuple[int, int]:
    """(rows of D in a thread, threads that share a row)."""
    (row_count,) = {len(np.unique(np.argwhere(d.thread == thread)[:, 0])) for thread in np.unique(d.thread)}
    (thread_count,) = {len(np.unique(row)) for row in d.thread}
    return row_count, thread_count


table(
    "generation | instruction | rows in a thread | threads on a row | shuffles for a row",
    (
        (name, f"`{instruction}`", mine, threads, int(np.log2(threads)))
        for name, instruction, (mine, threads) in ((n, i, sharing(d)) for n, i, d in SHOWN)
    ),
)

# %% [markdown]
# On Volta the columns of a row continue in the other quad pairs of the tile; on Blackwell there is nothing to exchange.
#
# ## SASS: what stands round the instruction
#
# The smallest kernel of each generation multiplies twice into the same accumulators. The listing shows the bits by
# which ptxas schedules: the **stall**, cycles before the next instruction of this warp may issue; **yield**, leave to
# another warp; six **scoreboards**, raised by instructions whose latency nobody knows and waited for by their readers;
# and operands kept in the **reuse** cache, by slot.


# %%
def minimal(name: str) -> build.Cubin:
    source = layouts.HERE / "minimal" / f"{name}.cu"
    return build.compile_source(source.read_text(), source.name, name, kernel="minimal")


def show(name: str) -> None:
    print((layouts.HERE / "minimal" / f"{name}.cu").read_text())


# %% [markdown]
# ### Volta

# %%
show("sm70")

# %%
volta_region = between(minimal("sm70").instructions(), "LDG", "STG")
figure = figures_sass.listing(volta_region, ("HMMA",), "sm70: mma.m8n8k4, twice")

# %%
steps = Counter(i.opcode.rpartition(".")[2] for i in volta_region if i.head == "HMMA")
Markdown(
    f"One `mma.m8n8k4` is {len(steps)} `HMMA.884`, one for each pair of accumulators, and A and B stay in the reuse "
    "cache between them. The second product reads by count what the first steps of the first one wrote. A scoreboard "
    "is raised for the last step, and for every result that leaves the tensor cores: the store waits for it."
)

# %% [markdown]
# ### Ampere

# %%
show("sm80")

# %%
ampere_region = between(minimal("sm80").instructions(), "LDSM", "STG")
figure = figures_sass.listing(ampere_region, ("HMMA",), "sm80: mma.m16n8k16, twice")

# %%
first, second = (at for at, instruction in enumerate(ampere_region) if instruction.head == "HMMA")
(waited,) = static_latencies(ampere_region[first : second + 1])
Markdown(
    f"No scoreboard lies between the two `HMMA`, only {waited.cycles} cycles of stall. One instruction can carry at "
    "most fifteen, so a `NOP` carries the rest. A warp with independent products would issue them there instead."
)

# %% [markdown]
# ### Hopper

# %%
show("sm90a")

# %%
hopper_region = between(minimal("sm90a").instructions(), "WARPGROUP", "STG")
figure = figures_sass.listing(hopper_region, ("HGMMA", "WARPGROUP"), "sm90a: wgmma.m64n8k16, twice")

# %%
products = [instruction.control for instruction in hopper_region if instruction.head == "HGMMA"]
assert not any(control.sets for control in products)
Markdown(
    f"An `HGMMA` stalls its warp for {max(control.stall for control in products)} cycle at most and sets none of the "
    "six scoreboards: it is asynchronous. The second one adds to the accumulators of the first and does not wait for "
    "it. The last one of the group carries `gsb0`, and `WARPGROUP.DEPBAR` waits for that. Operands are descriptors in "
    "uniform registers, and most of the listing is ptxas making them."
)

# %% [markdown]
# ### Blackwell

# %%
show("sm100a")

# %%
blackwell_region = between(minimal("sm100a").instructions(), "UTCHMMA", "STG", lead=5)
figure = figures_sass.listing(blackwell_region, ("UTCHMMA", "UTCBAR", "LDTM"), "sm100a: tcgen05.mma.m128n16k16, twice")

# %% [markdown]
# No operand of a `UTCHMMA` is a vector register: descriptors and the address in tensor memory come from uniform ones,
# and the scoreboard only says when *those* have been read. Completion arrives in an mbarrier in shared memory
# (`UTCBAR`, then `SYNCS.PHASECHK`). `LDTM` brings accumulators to registers as a load does: the store waits for its
# scoreboard, and of `tcgen05.wait::ld` a `NOP` remains.
#
# ## Latency
#
# What ptxas believes is in its stall counts. It costs no GPU to read, and one column was measured.

# %%
rows = read(LatencyRow)
MEASURED = {
    "FFMA": "ffma_latency_cycles",
    "MUFU.EX2": "mufu_ex2_latency_cycles",
    "m16n8k16 f16": "mma_f16_latency_cycles",
    "m16n8k16 bf16": "mma_bf16_latency_cycles",
}
measured = {instruction: profile.value(constant) for instruction, constant in MEASURED.items()}
figure = figures_sass.latency_table(rows, arch.CUDA, measured, "H100")


# %%
def static(instruction: str, name: str) -> int:
    """Cycles of the table: the longest, where pipes alternate."""
    (row,) = [row for row in rows if (row.instruction, row.arch) == (instruction, name)]
    return max(map(int, row.cycles.split()))


known = {name: row for row in rows if row.arch == profile.arch and (name := row.instruction) in measured}
fixed = [name for name, row in known.items() if row.scoreboard == "no"]
assert fixed and all(round(measured[name]) == static(name, profile.arch) for name in fixed)
ex2 = known["MUFU.EX2"]
Markdown(
    f"\\* the first of its steps by count, the last by scoreboard too.\n\n"
    f"**Where ptxas counts, the {profile.name} agrees to the cycle**: "
    + ", ".join(f"{name} {measured[name]:.1f} ({static(name, profile.arch)})" for name in fixed)
    + f". Where it raises a scoreboard the table has only the least: MUFU.EX2 takes {measured['MUFU.EX2']:.0f} cycles, "
    f"not {ex2.cycles}.\n\n"
    f"An m16n8k16 takes {static('m16n8k16 f16', 'sm80')} cycles on Ampere, "
    f"{static('m16n8k16 f16', 'sm90a')} on Hopper, {static('m16n8k16 f16', 'sm100a')} on `sm100a` and "
    f"{static('m16n8k16 f16', 'sm120a')} on `sm120a`. "
    f"Half the depth, m16n8k8, takes {static('m16n8k8 f16', 'sm80')} on Ampere, not half of it: there is a pipeline to "
    f"fill, and the deeper instruction fills it once. On `sm100a` both take {static('m16n8k8 f16', 'sm100a')}."
)

# %% [markdown]
# `wgmma` has no row: no stall count waits for it. So it was measured: from issue to completion where every one is
# waited for, and the interval at which a chain through the same accumulators flows.


# %%
def wgmma(metric: str, operands: str):
    return pick(runs, "wgmma_latency", metric, gpu=GPU, operands=operands)


figure = figures.lines(
    [
        Curve(wgmma("latency_cycles", "ss"), "latency, A in shared memory"),
        Curve(wgmma("latency_cycles", "rs"), "latency, A in registers"),
        Curve(wgmma("interval_cycles", "ss"), "interval, A in shared memory"),
        Curve(wgmma("interval_cycles", "rs"), "interval, A in registers"),
    ],
    x="n",
    xlabel="N of wgmma.m64nNk16",
    ylabel="cycles",
    title=f"wgmma on {profile.name}",
    log2=False,
)
_ = figure.axes[0].set_xticks(sorted(wgmma("latency_cycles", "rs")["point.n"].astype(int).unique())[1:])

# %%
medians = {
    key: wgmma(f"{key[0]}_cycles", key[1]).groupby("point.n")["value"].median()
    for key in (("latency", "ss"), ("latency", "rs"), ("interval", "ss"), ("interval", "rs"))
}
over = medians["latency", "rs"] - medians["interval", "rs"]
saved = medians["latency", "ss"] - medians["latency", "rs"]
small, large = int(over.index.min()), int(over.index.max())
narrow = min(int(n) for n in over.index if medians["interval", "ss"][n] < 1.02 * medians["interval", "rs"][n])
Markdown(
    f"At N = {large} one `wgmma` takes {medians['latency', 'rs'][large]:.0f} cycles alone and "
    f"{medians['interval', 'rs'][large]:.0f} in a chain: whoever waits for each pays {over[large]:.0f} cycles a time, "
    f"and at N = {small} still {over[small]:.0f}. A in registers answers up to {saved.max():.0f} cycles sooner. The "
    f"interval is the same for both from N = {narrow} on; below, reading A from shared memory is what limits it."
)

# %% [markdown]
# ## Work: what one instruction does


# %%
def rate(name: str) -> int:
    """FLOP of an SM and clock, f16 with f32 accumulators."""
    return arch.by_name(name).limits.tensor_f16_flops_per_clk


def shape(m: int, n: int, k: int = 16) -> int:
    return 2 * m * n * k


assert hopper.flops == shape(64, COLUMNS) and blackwell.flops == shape(128, COLUMNS)
FLOPS = {
    "sm70": sum(pair.flops for pair in pairs),
    "sm80": ampere.flops,
    "sm90a": shape(64, 256),
    "sm100a": shape(128, 256),
}
sync = profile["mma_bf16_flops_per_clk_sm"].value
figure = figures_sass.work(
    [
        Work("Volta, m8n8k4", FLOPS["sm70"], rate("sm70")),
        Work("Ampere, m16n8k16", FLOPS["sm80"], rate("sm80")),
        Work("Hopper, m64n256k16", FLOPS["sm90a"], rate("sm90a")),
        Work("Blackwell, m128n256k16", FLOPS["sm100a"], rate("sm100a")),
        Work("H100, mma.sync m16n8k16", ampere.flops, sync, measured=True),
        Work("H100, m64n64k16", shape(64, 64), profile["wgmma_n64_bf16_flops_per_clk_sm"].value, measured=True),
    ],
    "The rate of an SM, and what one instruction keeps it busy for",
)

# %%
LATENCY = {
    "sm70": (static("m8n8k4 f16", "sm70"), "ptxas, at least"),
    "sm80": (static("m16n8k16 f16", "sm80"), "ptxas"),
    "sm90a": (profile.value("wgmma_bf16_rs_latency_cycles"), "measured"),
}
ISSUED = {"sm70": "a warp", "sm80": "a warp", "sm90a": "four warps", "sm100a": "one thread"}


def line(name: str) -> tuple[str, ...]:
    busy = FLOPS[name] / rate(name)
    latency, source = LATENCY.get(name, (None, "no such GPU was at hand"))
    return (
        arch.by_name(name).generation,
        ISSUED[name],
        f"{FLOPS[name]:,}".replace(",", " "),
        f"{rate(name)}",
        f"{busy:.0f}",
        f"{latency:.0f} ({source})" if latency else f"unknown ({source})",
        f"{latency / busy:.1f}" if latency else "",
    )


table(
    "generation | issued by | FLOP | FLOP/clk/SM, rated | keeps an SM busy, cycles | latency, cycles | "
    "in flight to fill an SM",
    map(line, FLOPS),
)

# %%
busy = {name: flops / rate(name) for name, flops in FLOPS.items()}
flight = {name: LATENCY[name][0] / busy[name] for name in LATENCY}
reached = sync / rate("sm90a")
first, *_, last = FLOPS
Markdown(
    f"""## What to take from it

- **The instruction grew faster than the machine.** From Volta to Blackwell an SM does {rate(last) / rate(first):.0f}
  times the FLOP a clock, one instruction {FLOPS[last] / FLOPS[first]:.0f} times: it occupies the SM for
  {busy[last]:.0f} cycles instead of {busy[first]:.0f}. Issue slots are no longer scarce, and what remains to
  schedule is waiting.
- **How to hide the latency changes with it.** Ampere needs {flight["sm80"]:.0f} independent products in flight on an
  SM, {flight["sm80"] / 4:.0f} for each of its four schedulers: unroll within the warp. Hopper needs
  {np.ceil(flight["sm90a"]):.0f}: issue the next `wgmma` before waiting for this one, or let two warpgroups take turns.
- **`mma.sync` no longer reaches the machine.** On the {profile.name} it does {sync:.0f} of {rate("sm90a")} FLOP a clock
  and SM, {reached:.0%}. A Hopper kernel that keeps Ampere's instruction gives away the rest, however well it is
  scheduled.
- **The softmax moves, not changes.** Ampere's code serves Hopper, because their accumulators lie alike; on Blackwell a
  thread owns {sharing(blackwell.d)[0]} row and needs no shuffle, but the row must come through `tcgen05.ld` first.
- **Who waits for what moves into memory.** Stall counts and scoreboards on Volta and Ampere, one group counter on
  Hopper, an mbarrier on Blackwell: fewer of the waits are ptxas' to place, and more are the kernel's to get right."""
)
