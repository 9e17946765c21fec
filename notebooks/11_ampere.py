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
# # Ampere, dissected
#
# **The questions** are those of every generation: how far is memory, what does an instruction cost, what feeds the
# tensor core, and what follows for attention? The notebooks [10_volta](10_volta.ipynb), [11_ampere](11_ampere.ipynb),
# [12_hopper](12_hopper.ipynb) and [13_blackwell](13_blackwell.ipynb) answer in the same order, with the same tables
# and on the same axes, to be read side by side.
#
# We measured no A100. Latencies, bandwidths and rates are what others published or NVIDIA documents, by the id that
# [data/published](../data/published/README.md) gives each source; ours are the stall counts that ptxas writes, which
# cost no GPU to read, and the arithmetic on top. What no source gives is called absent.

# %%
from microbench.report import figures
from notebooks.ladders import dissection, dissection_tables, figure_dissection

figures.style()
gpu = dissection.of("a100")
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
# The L2 has two halves, and what lies in the far one is as far in ns as Volta's DRAM. NOC24 saw the bandwidth fall
# with the distance too. DRAM moved away in cycles and in ns, and bandwidth doubled: an SM needs twice the bytes under
# way, which is what `cp.async` is for, since it holds no register while it waits.

# %%
dissection_tables.further(
    gpu,
    "latency_l2_far_cycles",
    "bandwidth_l2_slice_from_sm_gbs",
    "bandwidth_l2_slice_from_sm_far_gbs",
    "size_l2_segment_bytes",
)

# %% [markdown]
# ## What does an instruction cost
#
# A bar ends where ptxas lets the result be read. Where it only counts on and a scoreboard says the rest, the bar is
# grey and shows the least. The mark is what was published.

# %%
figure = figure_dissection.instructions(gpu)

# %%
dissection_tables.instructions(gpu)

# %% [markdown]
# STRZ lowered the stall until results went wrong: four cycles are what the hardware needs, and what ptxas leaves. FP32
# has 16 lanes a sub-core as on Volta, half of what Hopper has. HFMA2 alternates between two pipes; the longer wait is
# drawn. The latency of an exponential, of an FFMA by itself and of most of the rest is absent from the sources.
#
# `ldmatrix` brings four 8 x 8 tiles in little more time than one. Sources were read second-hand here: SUN23 as quoted
# in ETN.

# %%
dissection_tables.further(
    gpu,
    "latency_ldmatrix_x1_cycles",
    "latency_ldmatrix_x2_cycles",
    "latency_ldmatrix_x4_cycles",
    "rf_read_conflict_bubble_cycles",
)

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
# The instruction doubled and shared memory did not: it must now serve 16 rows with each byte, and an `mma.m16n8k16`
# serves exactly 16. A warp that reads all of K and V for its 16 rows keeps shared memory as busy as the tensor core; a
# warp with two tiles of rows needs half. That is the whole choice between more warps and wider ones.
#
# **Two readings of the L2 differ by a factor of two.** GPUB's (drawn) is of reads over all slices of an SXM board;
# L24's and MT4G's, of PCIe boards, are half of it. The sustained rate of the products needs eight warps: with four,
# SUN23 saw a tenth less.

# %%
dissection_tables.further(
    gpu,
    "bandwidth_l2_gbs",
    "bandwidth_l2_bytes_per_clk",
    "bandwidth_l2_read_gibs",
    "mma_throughput_m16n8k16_f32_f16_fma_per_clk_sm",
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
# At head dim 64 the exponentials take half as long as the products: what was free on Volta must now run beside them,
# from another warp or another tile. Our kernel `sm80/forward/software_pipelined` fetches by `cp.async` in stages, so
# that the next tile of K and V arrives during the work on this one. On an A100 it is predicted, not timed; on Hopper
# it was, in [22_ampere_on_hopper](22_ampere_on_hopper.ipynb).

# %%
dissection_tables.kernel(gpu)

# %% [markdown]
# What FlashAttention-2 reached, as SAGE timed it, leaves a third of the rate unused.

# %%
dissection_tables.reached(gpu)

# %% [markdown]
# ## Side by side
#
# The same answers of all four generations; each column's sources stand in its own notebook.

# %%
dissection_tables.side_by_side(gpu)
