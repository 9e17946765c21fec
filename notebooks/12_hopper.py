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
# # Hopper, dissected
#
# **The questions** are those of every generation: how far is memory, what does an instruction cost, what feeds the
# tensor core, and what follows for attention? The notebooks [10_volta](10_volta.ipynb), [11_ampere](11_ampere.ipynb),
# [12_hopper](12_hopper.ipynb) and [13_blackwell](13_blackwell.ipynb) answer in the same order, with the same tables
# and on the same axes, to be read side by side.
#
# This one was measured: probes on three H200, their constants in `data/profiles/h200-sxm-141gb.json`, and experiments
# for what a number means in [data/experiments](../data/experiments/README.md). Rates that we did not measure are
# NVIDIA's, by the id that [data/published](../data/published/README.md) gives the document. What we did not measure
# and nobody documents is absent.

# %%
from microbench.report import figures
from notebooks.ladders import dissection, dissection_tables, figure_dissection

figures.style()
gpu = dissection.of("h200-sxm-141gb")
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
# Shared memory and L1 are as many cycles away as on Ampere, the L2 and DRAM more; in ns nothing is further than there,
# for the clock rose as much. What grew is bandwidth, so that an SM must keep nearly twice Ampere's bytes under way.
# One thread that issues TMA boxes does that without a register.
#
# **L1 has 240 KiB, if the data begin where they should.** A ring that begins at a multiple of 64 KiB hits up to 240
# KiB, others less: cycles a load, by where the ring begins and its size.

# %%
print(dissection_tables.experiment("l1_placement", lines=9))

# %% [markdown]
# ## What does an instruction cost
#
# A bar ends where ptxas lets the result be read. Where it only counts on and a scoreboard says the rest, the bar is
# grey and shows the least. The mark is what was measured.

# %%
figure = figure_dissection.instructions(gpu)

# %%
dissection_tables.instructions(gpu)

# %% [markdown]
# **FFMA and the register banks.** There are 128 lanes, and yet one, two and three chains a warp that read three
# registers end well below 128 results a clock, however many warps there are: three registers, two of one bank, take
# two clocks unless the reuse cache holds one, and another warp's instruction empties it. With an immediate instead of
# one register, one chain is enough.

# %%
print(dissection_tables.experiment("register_banks", "x = x * a + b", "x = x * 1.0"))

# %% [markdown]
# ## What feeds the tensor core
#
# A key of D elements costs 4 D FLOP for each row of Q, and its K and V are 4 D bytes of half precision. Read once for
# R rows, **a byte serves R FLOP**: the ratio that decides is a number of rows. Where a path's line meets the tensor
# core's, it feeds it; to the left of that the path is the limit. The triangle is the M of the instruction: so many
# rows share what it reads of K or V. An SM's share of the L2 and of DRAM is the chip's rate by its SMs, at the highest
# clock.

# %%
figure = figure_dissection.feeding(gpu)

# %%
dissection_tables.feeding(gpu)

# %% [markdown]
# The `wgmma` reads B from shared memory for 64 rows at once, twice what the path asks: what is over pays for A, where
# it comes from shared memory too, for TMA's writes and for outputs. This is the instruction's gain, more than its
# rate.
#
# **The older `mma.sync` cannot get there.** It holds its tensor core for 6 cycles, of which the products take 4; the
# other two are its own, and stay with 16-bit sums, with B in A's registers, with s8 and tf32.

# %%
print(dissection_tables.experiment("mma_sync_cycles", "bf16 k16", "f16 k16, f16 sums", "s8", "tf32"))

# %% [markdown]
# **The L2 merges reads.** Where both blocks of an SM read the same lines at once, far more arrives than the slices
# give: their rate is the limit, not the port of an SM, and the line drawn is that of reads that nobody shares. Blocks
# that work through the same head side by side find some of this. **DRAM writes** are faster in the order of the grid,
# a block to a chunk, than by blocks that stay.

# %%
print(dissection_tables.experiment("l2_coalescing", "8 MiB  128 KiB"))
print(dissection_tables.experiment("dram_writes", lines=7))

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
# At head dim 64 an exponential costs as much as the products of its score. A kernel that does one after the other has
# half of the tensor core, and the ideas of the ladder, turns and overlap, are there to hide one under the other:
# [20_hopper_ladder](20_hopper_ladder.ipynb) climbs it. The share below is of the rate at the highest clock, which the
# H200 does not keep under products: power brings it down.

# %%
dissection_tables.kernel(gpu)

# %% [markdown]
# The best peer of the same run, by cell.

# %%
dissection_tables.reached(gpu)

# %% [markdown]
# ## Side by side
#
# The same answers of all four generations; each column's sources stand in its own notebook.

# %%
dissection_tables.side_by_side(gpu)
