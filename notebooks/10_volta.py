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
# # Volta, dissected
#
# **The questions** are those of every generation: how far is memory, what does an instruction cost, what feeds the
# tensor core, and what follows for attention? The notebooks [10_volta](10_volta.ipynb), [11_ampere](11_ampere.ipynb),
# [12_hopper](12_hopper.ipynb) and [13_blackwell](13_blackwell.ipynb) answer in the same order, with the same tables
# and on the same axes, to be read side by side.
#
# We measured no V100. Latencies, bandwidths and rates are what others published or NVIDIA documents, by the id that
# [data/published](../data/published/README.md) gives each source; ours are the stall counts that ptxas writes, which
# cost no GPU to read, and the arithmetic on top. What no source gives is called absent.

# %%
from attention.estimate import held
from attention.estimate.predicted import Estimate, estimate_all, rates_of
from attention.problem import AttentionProblem
from attention.variant import by_path
from microbench.issue.rates import V100
from microbench.report import figures
from notebooks.ladders import dissection, dissection_tables, figure_dissection
from notebooks.ladders.table import table

figures.style()
gpu = dissection.of("v100")
dissection_tables.board(gpu)

# %% [markdown]
# ## How far is memory
#
# Cycles are what a chase of pointers counts. In ns they are divided by the clock that they were counted at: the one
# that the source names, else the boost clock of its board. The other generations are drawn pale.

# %%
figure = figure_dissection.ladder(gpu)

# %%
dissection_tables.memory(gpu)

# %%
dissection_tables.under_way(gpu)

# %% [markdown]
# Volta is near in both units: no later generation has its DRAM in fewer cycles, and few KiB under way fill its
# bandwidth. A miss of the TLB on top costs more than DRAM itself. J18 prints ns for DRAM too, which are a tenth of its
# own cycles at its own clock: the cycles are kept. Bank conflicts cost two cycles a way, as they still do on Hopper.

# %%
dissection_tables.further(
    gpu, "latency_l2_miss_tlb_hit_cycles", "latency_l2_tlb_miss_cycles", "latency_smem_bank_conflict_cycles"
)

# %% [markdown]
# ## What does an instruction cost
#
# A bar ends where ptxas lets the result be read. Where it only counts on and a scoreboard says the rest, the bar is
# grey and shows the least. The mark is what was published; the hollow one is no latency to a first result, but what
# each further instruction of a chain takes.

# %%
figure = figure_dissection.instructions(gpu)

# %%
dissection_tables.instructions(gpu)

# %% [markdown]
# **Two readings differ.** J18, in 2018, gives FMNMX and IMAD a cycle more than today's NVRTC leaves between two of a
# kind. No source says which of the two a V100 needs. A shuffle takes 22 cycles
# (`Z20`, of a shuffle among the threads of a tile, quoted by a third party).
#
# Of `mma.m8n8k4` ptxas counts the first steps and raises a scoreboard for the last.
#
# Four sub-cores have 16 FP32 lanes each, so that an FFMA of a warp holds its lanes for two clocks: one warp can issue
# every clock, and the second slot is free for loads, integers or the tensor core. One `mma.m8n8k4` is four `HMMA.884`;
# 1CAT's figure is the hollow mark: the cost of an instruction in a chain of them.

# %%
dissection_tables.further(gpu, "mma_latency_m8n8k4_f32_f16_cycles", "mma_issue_m8n8k4_f32_f16_cycles", "reg_banks")

# %% [markdown]
# ## What feeds the tensor core
#
# A key of D elements costs 4 D FLOP for each row of Q, and its K and V are 4 D bytes of half precision. Read once for
# R rows, **a byte serves R FLOP**: the ratio that decides is a number of rows. Where a path's line meets the tensor
# core's, it feeds it; to the left of that the path is the limit. The triangle is the M of the instruction: so many
# rows share what it reads of K or V. An SM's share of the L2 and of DRAM is the chip's rate by its SMs, at the boost
# clock.

# %%
figure = figure_dissection.feeding(gpu)

# %%
dissection_tables.feeding(gpu)

# %% [markdown]
# One `mma.m8n8k4` multiplies four pairs of 8 x 4 and 4 x 8. Eight rows a read are less than shared memory asks,
# before any K and V are written there, and before Q or P. So a kernel must share more: two quad pairs can take the
# same K, which serves 16 rows with one read, and a warp that keeps a second tile of Q in registers serves 32. There is
# no `ldmatrix` and no `cp.async`: a tile passes through registers on its way into shared memory, and those registers
# hold no output.
#
# 1CAT's rate is a derived one, of one sub-core times four. A loop of WMMA on a cloud V100 (GV100P) gave a fifth less
# than it makes with all SMs at the boost clock.

# %%
dissection_tables.further(
    gpu, "mma_throughput_m8n8k4_f32_f16_flop_per_clk_sm", "mma_throughput_wmma_m16n16k16_f32_f16_tflops"
)

# %% [markdown]
# ## What follows for attention
#
# A score costs one exponential and 4 D FLOP of products, so that the head dim alone decides which of the two units
# works longer. Both can work at once, if the kernel lets them.

# %%
figure = figure_dissection.softmax(gpu)

# %%
dissection_tables.softmax(gpu)

# %% [markdown]
# A prompt shares each read of K and V among the rows of its tile. A decoding step has one row a query head, and no
# tile that helps: with a cache beyond the L2 its speed is DRAM's, on every generation.

# %%
dissection_tables.sharing(gpu)

# %% [markdown]
# On Volta softmax is cheap: the exponentials fit into a small part of the products, and hiding them is no question.
# Feeding is. Our kernel `sm70/forward/quad_pair` lets each warp keep 16 or 32 rows for that reason. No V100 has run it
# yet: what follows is predicted from the published constants, with no timing to correct it, and counts as the most to
# expect.

# %%
dissection_tables.kernel(gpu)

# %% [markdown]
# Those are the terms of a model that knows no instruction between them. Read from the machine code instead, cycle by
# cycle, the same kernel comes to less. Both are of the SXM2 board at 1530 MHz. A PCIe board has 1380 MHz: its estimates
# stand beside, and of what the two boards differ by, 11 % is the clock. The interval is what timings of the Ampere
# kernel on an H200 missed their estimates by. No estimate knows what a loop costs that is longer than the instruction
# cache.


# %%
def estimated(head_dim: int, board: str = "v100-sxm2") -> Estimate:
    """The fastest tile of the Volta kernel on a board, by its machine code."""
    problem = AttentionProblem(4, 32, 32, 4096, 4096, head_dim, dtype="float16").on("cuda")
    return estimate_all(by_path("sm70/forward/quad_pair"), problem, rates_of(board))[0]


def line(head_dim: int) -> tuple[object, ...]:
    found = estimated(head_dim)
    told = held.interval(found)
    interval = f"{told.low_flops_per_s / 1e12:.0f} to {told.high_flops_per_s / 1e12:.0f}"
    taken = ", ".join(f"{term.name} {term.share:.0%}" for term in found.terms[:4])
    pcie = estimated(head_dim, V100).flops_per_s
    return head_dim, f"`{found.config}`", f"{found.flops_per_s / 1e12:.0f}", interval, f"{pcie / 1e12:.0f}", taken


table(
    "head dim | tile | TFLOPS, estimated | interval | TFLOPS of a PCIe board | taken, of a tile's cycles",
    map(line, dissection_tables.HEAD_DIMS),
)

# %% [markdown]
# So feeding it is: at head dim 256 the port to shared memory is taken longest, at 128 nearly as long as the tensor
# cores. What others reached with a kernel for Volta, of the figures that say head dim and mask, is lower still: 1CAT
# saw the tensor pipe busy for less than half of the time.

# %%
dissection_tables.reached(gpu)

# %% [markdown]
# ## Side by side
#
# The same answers of all four generations; each column's sources stand in its own notebook.

# %%
dissection_tables.side_by_side(gpu)
