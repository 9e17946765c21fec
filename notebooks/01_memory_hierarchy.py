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
# # The memory hierarchy
#
# **The question.** How long does one load take, how many bytes does an SM get per clock, and where does each level of
# memory end? An attention kernel is a schedule of exactly these: tiles that fit shared memory, K and V that stay in the
# L2, and enough bytes in flight that DRAM never waits.
#
# Everything below is drawn from `data/`: it executes on any CPU. The numbers were measured by `make bench`.

# %%
from IPython.display import Markdown
from matplotlib.ticker import MultipleLocator

import microbench
from microbench import compile as build
from microbench import paths, probes, report
from microbench.machine import arch
from microbench.point import Point
from microbench.published import verdict
from microbench.report import figures
from microbench.report.figures import Curve, pick
from notebooks.ladders import gpu_benches
from notebooks.ladders.table import table

figures.style()
GPU = "h100-sxm-80gb"
HOST = "host-amd-epyc-f26m2-2c"
runs = microbench.load_runs()
profile = microbench.Profile.load(GPU)
host = microbench.Profile.load(HOST)
runs.groupby(["gpu", "method"]).agg(records=("value", "size"), probes=("probe", "nunique"))

# %% [markdown]
# ## The minimal kernel, and what the compiler made of it
#
# One thread follows a ring of raw addresses. The chain is the measurement, so the proof that nothing else is in it
# belongs to the result. The contract: *32 loads, each reading the result of the one before, and a loop counter*.

# %%
ladder = probes.named("memory_latency")
print((build.HEADERS / "chase.cuh").read_text())

# %%
(first,) = ladder.builds(Point((("footprint_bytes", 4096),)))
cubin = build.compile_probe(ladder, first, arch.by_name("sm90a"))
for instruction in [i for i in cubin.instructions() if i.head in ("CS2R", "LDG", "BRA")][:10]:
    control = instruction.control
    print(f"stall {control.stall:2}   waits for scoreboards {control.wait_mask:06b}   {instruction.text}")

# %% [markdown]
# Each `LDG.E.64` waits for the scoreboard that the one before it set, and nothing stands between.
#
# ## One chase, every level
#
# The footprint grows; every line is used once a lap, in random order. Where the curve is flat, a level of memory
# answers; where it rises, the level is full. The dashes are published values for boards of the same chip, turned into
# nanoseconds at the clock of their source.


# %%
def latency(gpu: str, probe: str, method: str):
    return pick(runs, probe, "latency_ns", gpu=gpu, method=method)


PUBLISHED = (
    ("L1: 32 cycles at 1755 MHz (HPMLL)", 32.0 / 1.755),
    ("L2: 265.5 cycles at 1755 MHz (RRZE)", 265.5 / 1.755),
    ("DRAM: 346 ns (RRZE, GH200)", 346.0),
)
figure = figures.ladder(
    [
        Curve(latency(GPU, "memory_latency", "nvrtc"), f"{profile.name}, every SM at once"),
        Curve(latency(GPU, "l2_visible_size", "nvrtc"), "the same, one SM alone"),
        Curve(latency(HOST, "host_memory_latency", "host"), host.name),
    ],
    PUBLISHED,
)
picture = paths.SHIPPED / "figures" / "memory_ladder.png"
picture.parent.mkdir(exist_ok=True)
figure.savefig(picture, dpi=110, metadata={"Software": None})

# %% [markdown]
# **Read it from the left.** Both L1s answer while their footprint fits. The H100's second step is its L2. With every SM
# chasing, the mean of near and far slices is seen; a single SM has the nearer half of the L2 for itself first (the
# step near 25 MB) and the rest of it at the price of crossing the chip. A CPU's caches and memory answer sooner; a GPU
# hides what it cannot shorten.
#
# ## The two methods
#
# The same kernels exist as Numba CUDA kernels, through another compiler, on the same raw addresses. No correction
# constant stands between the two columns.

# %%
first_method = {c.name: c.value for c in profile.constants}
twins = [(c.name.removesuffix("_numba"), c.value) for c in profile.constants if c.method == "numba"]
table(
    "quantity | CUDA C++ | Numba | deviation",
    (
        (name, f"{first_method[name]:.5g}", f"{value:.5g}", f"{value / first_method[name] - 1:+.2%}")
        for name, value in twins
    ),
)

# %% [markdown]
# ## How large is the L1, and what do small blocks cost?
#
# L1 and shared memory are one array of 256 KiB. The chase uses no shared memory, and yet its L1 ends at 216 KiB where
# its blocks have 32 threads: 1 KiB is reserved for each block that *could* be resident (32 of them), and the driver
# rounds up to the next carve-out. Blocks of 1024 threads (two to an SM) leave 240 KiB. Published sizes between 208 and
# 250 KiB may differ by this alone. The band of the large blocks is one campaign of six, in which some points still saw
# the carve-out of the launch before.

# %%
figure = figures.lines(
    [
        Curve(
            pick(runs, "l1_size", "latency_cycles", gpu=GPU, method="nvrtc", block_threads=threads),
            f"blocks of {threads} threads",
        )
        for threads in (1024, 32)
    ],
    x="footprint_bytes",
    xlabel="footprint",
    ylabel="latency [cycles]",
    title="The same L1, by block size",
    log2=False,
)
figure.axes[0].xaxis.set_major_locator(MultipleLocator(16 * 1024))
figure.axes[0].xaxis.set_major_formatter(figures.binary)
figure.axes[0].set_xlim(150 * 1024, 288 * 1024)

# %% [markdown]
# ## Bytes in flight
#
# Little's law: bandwidth is bytes in flight over latency. Below about 32 KiB an SM waits; above, the level itself is
# the limit. The dashes are physical bounds: bus width times data rate for DRAM, 64 bytes a clock and SM for the L2.

# %%
dram = figures.against_bytes_in_flight(
    [
        Curve(pick(runs, "dram_bandwidth", "bandwidth_bytes_per_s", gpu=GPU, method="nvrtc", mode=mode), mode)
        for mode in ("read", "write", "copy")
    ],
    bound=profile["dram_bandwidth_bytes_per_s"].bound_upper,
    unit="B/s",
    title=f"DRAM of {profile.name}",
)

# %% [markdown]
# ### The L2 serves shared lines twice as fast
#
# `scattered`: SMs that run together read different chunks. `shared`: each reads what its neighbours have just asked
# for. The L2's slices are the same; requests for one line are merged on the way. Published L2 bandwidths differ by
# the footprint and by how much their blocks happen to share, and this is the size of both effects.

# %%
MIB = 1 << 20
l2_rows = pick(runs, "l2_bandwidth", "bandwidth_bytes_per_clk_sm", gpu=GPU, method="nvrtc")
l2 = figures.against_bytes_in_flight(
    [
        Curve(rows, f"{order}, {int(size) // MIB} MiB")
        for (order, size), rows in l2_rows.groupby(["point.order", "point.footprint_bytes"])
        if size in (4 * MIB, 8 * MIB, 16 * MIB)
    ],
    bound=128.0,
    unit="B/clk/SM",
    title="L2 read bandwidth of one SM, all SMs reading",
)

# %% [markdown]
# ## Bank conflicts
#
# Each extra lane in a bank costs one clock of the pipe, and two clocks of latency.

# %%
conflicts = figures.lines(
    [
        Curve(pick(runs, "smem_bank_conflicts", metric, gpu=GPU, method="nvrtc", width_bytes=4), label)
        for metric, label in (
            ("latency_cycles", "latency of a dependent load"),
            ("interval_cycles", "interval between independent loads"),
        )
    ],
    x="ways",
    xlabel="lanes in the same bank",
    ylabel="cycles",
    title="n-way bank conflicts, 4-byte loads",
)

# %% [markdown]
# ## Inside the bands, and what moves the rest inside
#
# The bands are the literature's (`data/published/acceptance.csv`).

# %%
Markdown(report.acceptance(profile))

# %%
outside = [found for found in verdict.accept(profile) if found.verdict == "outside"]
[(found.constant, f"{found.value:.4g} {found.unit}", found.low, found.high) for found in outside]

# %% [markdown]
# **`l2_bandwidth_bytes_per_clk_sm`** lies at the lower edge of its band, in some runs just below. The headline is the
# hardest case: 8 MiB, nothing shared. The band is the range of published kernels at 4 to 16 MiB. The experiment: at
# 4 MiB, and with any sharing at all, the same kernel lies well inside. The first table is `scattered`, by footprint
# (rows, bytes) and bytes in flight (columns).
#
# **`mma_bf16_burst_flops_per_s`.** `mma.sync` reaches two thirds of the `wgmma` peak per clock where four independent
# accumulators a warp hide the latency: each product holds its tensor core for 6 cycles, 4 of them for the product
# (`data/experiments`, `mma_sync_cycles`). The band is that of loops with one accumulator chain a warp. The experiment:
# the same kernel with one chain (`ilp` 1) lies inside, at 62 to 66 % of the rated 989.5 TFLOP/s.

# %%
scattered = l2_rows[(l2_rows["point.order"] == "scattered") & (l2_rows["point.footprint_bytes"] >= 4 * MIB)]
scattered.pivot_table(
    index="point.footprint_bytes", columns="point.bytes_in_flight", values="value", aggfunc="median"
).round(1)

# %%
mma = pick(runs, "mma_sync_throughput", "flops_per_s", gpu=GPU, inputs="normal")
mma = mma[mma["point.warps"] >= 16].assign(
    share_of_rated=lambda rows: rows["value"] / 989.5e12,
    share_at_its_clock=lambda rows: rows["value"] / (4096 * profile.sm_count * 1e6 * rows["clock_mhz"]),
)
shares = ["share_of_rated", "share_at_its_clock", "clock_mhz"]
mma.groupby(["point.ilp", "point.warps"])[shares].median().round(3)

# %% [markdown]
# ## Beside somebody else's instrument
#
# RRZE's gpu-benches (commit 1038c5d) ran on the same H200 as three of our full runs, minutes after them; ours is the
# median of the three. Where both differ by more than 3 %, an experiment decided, and the last column says what.

# %%
table(
    "quantity | gpu-benches | ours | unit | ours over theirs | by | what decided",
    (each.cells for each in gpu_benches.rows()),
)

# %% [markdown]
# ## What it means for attention
#
# - **Tiles live in shared memory at 128 bytes a clock.** A 64 x N x 16 `wgmma` with both operands there reads
#   (64 + N) x 32 bytes in N / 2 clocks: at N = 64 that is the whole pipe, at N = 256 five eighths of it. Keep P in
#   registers.
# - **K and V of one head fit the L2, and blocks of the same head share them.** Schedule those blocks together: the L2
#   then serves up to twice the bytes.
# - **32 KiB in flight an SM feed DRAM.** One stage of a K tile (128 x 128 bf16) is exactly that; two leave slack.
# - **A bank conflict costs its width.** Swizzle or pad: an 8-way conflict on a row read takes eight times as long.
# - **Blocks cost L1 even when they use no shared memory.** Few, large blocks keep it.
