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
# # Blackwell, dissected
#
# **The questions** are those of every generation: how far is memory, what does an instruction cost, what feeds the
# tensor core, and what follows for attention? The notebooks [10_volta](10_volta.ipynb), [11_ampere](11_ampere.ipynb),
# [12_hopper](12_hopper.ipynb) and [13_blackwell](13_blackwell.ipynb) answer in the same order, with the same tables
# and on the same axes, to be read side by side.
#
# We measured no B200. Latencies, bandwidths and rates are what others published or NVIDIA documents, by the id that
# [data/published](../data/published/README.md) gives each source; ours are the stall counts that ptxas writes, which
# cost no GPU to read, and the arithmetic on top. What no source gives is called absent. **No figure here was measured
# by us**, and our own kernel for `sm100a` ran on the emulator alone.

# %%
from microbench.report import figures
from notebooks.ladders import dissection, dissection_peers, dissection_tables, figure_dissection

figures.style()
gpu = dissection.of("b200")
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
# B200N locked the SMs near 1590 MHz, where the data sheet boosts to 1965: its ns are long for that reason too, and say
# little against the others'. In cycles, which depend less on it within the SM, shared memory and L1 are further than
# on Hopper. The chip is two dies: B200N's chase over 64 MiB takes longer than over 8, and SA26's article is quoted
# with hundreds of cycles across. The far half of the L2 by itself is absent.
#
# One figure is at odds with the table: CCB200, as quoted in B200N, has the L2 at fewer ns than B200N's cycles at its
# clock.

# %%
dissection_tables.further(
    gpu,
    "latency_l2_hit_ns",
    "latency_l2_hit_median_cycles",
    "latency_l2_64mib_cycles",
    "latency_dram_tlb_miss_cycles",
    "latency_die_to_die_cycles",
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
# Little was published of plain instructions. B200N's FFMA holds a part of its loop: ptxas counts four. HFMA2 now waits
# as long as FFMA, and `mma.m16n8k16` is shorter than on Hopper, while `tcgen05.mma` takes the work. SA26's latency is
# from issue to the wait on an mbarrier; a stream of them flows at the interval.

# %%
dissection_tables.further(
    gpu,
    "tcgen05_mma_initiation_interval_m128n128k16_bf16_ss_1sm_cycles",
    "tcgen05_mma_initiation_interval_m128n256k16_bf16_ss_1sm_cycles",
    "tcgen05_mma_latency_m128n256k16_bf16_ts_1sm_cycles",
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
# The rate doubled again and shared memory stayed at 128 bytes a clock: a byte must serve twice as many rows as on
# Hopper, and the instruction does, with 128. What is new is tensor memory: accumulators leave the registers, and P can
# be an operand from there. Two SMs can share one product, each holding half of B, which halves what each must read
# again.
#
# The L2's share is at the boost clock. B200N read at a lower one, at which it is a quarter more of a clock, and read
# less from smaller footprints; CCB200 quotes nearly the same rate within one partition, and less across. Compare the
# L2's line with Hopper's in that light.

# %%
dissection_tables.further(
    gpu, "bandwidth_l2_gbs", "bandwidth_l2_tbs", "bandwidth_l2_far_tbs", "bandwidth_dsm_bytes_per_clk_sm"
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
# The exponentials are the limit now: as long as the products at head dim 128, and twice as long at 64. So FA4 computes
# some of them by a polynomial on the FP32 lanes, and our kernel `sm100a/forward/tensor_memory` can. B300 doubles the
# exponential units instead. What follows is predicted from the published constants alone.

# %%
dissection_tables.kernel(gpu)

# %% [markdown]
# What others published, of the figures that say head dim and mask, and the board. FA4's own headline says none of
# them.

# %%
dissection_tables.reached(gpu)

# %% [markdown]
# ### Predicted at 16k beside FlashAttention-4 and cuDNN
#
# The highest is every term behind the longest at the boost clock. The lowest is the least share of its own highest that
# any published forward of such a head dim and mask reaches within an octave. Where a figure is slower than our highest
# at its own shape, two numbers would each explain all of it: a lower clock, or cycles of 128 rows by 128 keys that
# stand open beside the bound. Of the clock one source tells; how much stands open, none.

# %%
dissection_peers.beside()

# %% [markdown]
# ## Side by side
#
# The same answers of all four generations; each column's sources stand in its own notebook.

# %%
dissection_tables.side_by_side(gpu)
