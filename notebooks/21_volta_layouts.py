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
# # Volta: from one product into the next
#
# **The question.** Attention multiplies twice: scores are Q Kᵀ, and p V takes their softmax as its operand. On Ampere
# and Hopper the accumulators of the first product lie as the operand of the second does. On Volta they do not. What
# has to move, by which routes can it, and what does each cost?
#
# **Nothing here was measured on a Volta.** Layouts and routes are found by executing the kernel's own code on the
# emulator, instructions are counted in the machine code that NVRTC compiles here, and cycles are estimated from rates
# that others published. It executes on any CPU.

# %%
from collections import Counter
from statistics import geometric_mean

import numpy as np
from IPython.display import Markdown

from attention.estimate import held
from attention.estimate.phases import phases_of
from attention.estimate.predicted import estimate
from attention.problem import AttentionProblem
from attention.variant import by_path
from microbench import layouts, published
from microbench.issue.rates import V100
from microbench.layouts import draw
from microbench.machine.arch import by_name
from microbench.report import figures
from notebooks.ladders import chained, figure_volta, routes
from notebooks.ladders.exchange import VOLTA, exchange
from notebooks.ladders.table import table

figures.style()
HEAD_DIMS = (64, 128, 256)


def full(head_dim: int) -> AttentionProblem:
    """32 heads of 8192 queries and keys, without a mask."""
    return AttentionProblem.parse_shape(f"1,32,32,8192,8192,{head_dim}", dtype="float16", device="cuda", causal=False)


# %% [markdown]
# ## One instruction, four products
#
# `mma.m8n8k4` makes four products of 8 x 8 x 4 at once. Each belongs to a quad pair: four neighbouring lanes and the
# four that lie 16 further. `microbench.layouts` finds which, by giving the instruction one element at a time.

# %%
pairs_of_lanes = layouts.volta("row", "col")
figure = draw.quad_pairs(pairs_of_lanes, "Which product each of the 32 lanes works for")

# %% [markdown]
# One product. Q is a row-major A and K a column-major B, as both lie in memory: a lane has four neighbouring numbers
# of one row. Its eight accumulators lie otherwise: two rows, and half of their keys.

# %%
figure = draw.product(pairs_of_lanes[0], "mma.m8n8k4.row.col: product 0", mark=0)

# %% [markdown]
# ## What has to move, whatever one does
#
# As an operand of p V, the 8 x 8 scores are two steps of four keys. The order of the keys is free, for the rows of V
# can be taken in the same order. So here are all 8! orders, with p as a row-major and as a column-major A:

# %%
by_order = {order: chained.moves(order) for order in ("row", "col")}
table(
    "p is an A that is | of 64 halves, change their lane by the best order | by the worst",
    ((f"{order}-major", moves.least, moves.most) for order, moves in by_order.items()),
)

# %%
BY_LANE, IN_TURN, SPLIT = (0, 1, 4, 5, 2, 3, 6, 7), tuple(range(8)), (0, 2, 1, 3, 4, 6, 5, 7)
table(
    "keys of the two steps | shuffles | who has made row 0, key by key",
    (
        (
            " and ".join("{" + ", ".join(map(str, step)) + "}" for step in (keys[:4], keys[4:])),
            chained.shuffles(keys),
            ", ".join(f"lane {lane}" for lane in chained.sources(keys)[0]),
        )
        for keys in (BY_LANE, IN_TURN, SPLIT)
    ),
)

# %%
Markdown(
    f"No order does without a transfer, and none with fewer than {min(each.least for each in by_order.values())} of "
    "64 halves: two lanes share a row, and one of them wants all of it. Packed two to a register, these are "
    f"**{chained.shuffles(BY_LANE)} shuffles** for the eight accumulators of a lane. In the order {{0, 1, 4, 5}}, "
    "{2, 3, 6, 7} each step of keys was made by one lane of the two. In the order 0 to 7 each step has a register "
    f"of either, which are as many shuffles ({chained.shuffles(IN_TURN)}). What must not be torn is a pair of "
    f"neighbours: an order that does so takes {chained.shuffles(SPLIT)}."
)

# %% [markdown]
# ## Four products as one tile
#
# The kernel (`attention/kernels/sm70/forward/quad_pair`) lays its four products two by two: 16 rows of Q by 16 keys.
# Its header chooses which rows and keys a product's eight are, so that a lane's accumulators have rows 8 apart, as
# those of `mma.sync` on Ampere, and so that masks and softmax are the same code for both. Left, the lanes that hold a
# row of Q or p as operand; right, the lanes that hold a score.

# %%
KEYS = 32
in_registers, through_memory = exchange(True, KEYS), exchange(False, KEYS)
quad_pair = np.empty(32, np.int64)
for number, product in enumerate(pairs_of_lanes):
    quad_pair[np.unique(product.d.thread)] = number
figure = figure_volta.tile(in_registers, quad_pair, mark=0)

# %%
lanes_of_a_row = {int(count) for count in np.bincount(in_registers.row_of)}
makers = {len(np.unique(row)) for row in in_registers.lane}
words, received = in_registers.words, in_registers.words_received
Markdown(
    f"Two by two has a price. A row of p is wanted by {' or '.join(map(str, lanes_of_a_row))} lanes, one in each "
    f"column of products, and was made by {' or '.join(map(str, makers))}. Of {words} registers that a lane needs of "
    f"p for {KEYS} keys it has made {words - received} itself, and **{received} must come from elsewhere**: three of "
    "four, where a product by itself lacks two of four. No instruction brings a lane more than one register of "
    "another lane, so no exchange in registers has fewer shuffles than that."
)

# %% [markdown]
# ## Both routes
#
# A tile of p, element by element, through the kernel's own `pack()` and `fetch_p()`, with each score replaced by its
# number; the emulator watches for races. Shown are the first eight keys of the rows that lane 0 shares.

# %%
figure = figure_volta.ways(in_registers, through_memory)

# %%
turned = np.flatnonzero((in_registers.key != through_memory.key).any(axis=(1, 2, 3)))
Markdown(
    f"Either way each lane ends with all {KEYS} keys of its row, each once, or `exchange` had raised. In registers, a "
    "lane first trades one of its two rows with the lane that differs in bit 1, then has the other four keys handed "
    "on by the lane that differs in bit 2. So the lanes of the right-hand products meet the keys in another order, "
    f"the four that were made there first: {len(turned)} of 32 lanes. They read the rows of V in that order too, "
    "which costs nothing. Through shared memory every lane stores its words where their row is put together, the "
    "warp waits for itself (`__syncwarp`), and every lane loads 16 bytes of its own row."
)

# %% [markdown]
# ## Counted
#
# Tiles that are legal by both routes, compiled twice. Counted is the usual path of a warp through one tile of keys,
# from the cubin. `LDS` and `STS` serve K and V too; left of a stroke is the route through shared memory.

# %%
both = [pair for dim in HEAD_DIMS for pair in routes.pairs(full(dim))]
figure = figure_volta.price(both, ("SHFL", "SEL", "STS", "LDS"))


# %%
def beside(left: object, right: object) -> str:
    return f"{left} / {right}"


HEADS = ("HMMA", "SHFL", "SEL", "STS", "LDS")
table(
    " | ".join(("tile", *HEADS, "all", "stall counts [cycles]", "registers", "shared memory [bytes]")),
    (
        (
            pair.label,
            *(beside(*(each.counts[head] for each in pair.routes)) for head in HEADS),
            beside(*(each.counts.total() for each in pair.routes)),
            beside(*(each.stalls for each in pair.routes)),
            beside(*(each.registers for each in pair.routes)),
            beside(*(each.smem_bytes for each in pair.routes)),
        )
        for pair in both
    ),
)


# %%
def more(pair, head: str) -> int:
    return pair.registers.counts[head] - pair.shared.counts[head]


chosen = next(pair for pair in both if pair.problem.head_dim == 128)
keys = chosen.shared.config["tile_keys"]
lacking = exchange(True, keys).words_received
stores, loads = -more(chosen, "STS"), -more(chosen, "LDS")
Markdown(
    f"At {chosen.label}, registers take {more(chosen, 'SHFL')} shuffles more, which is the {lacking} registers that a "
    f"lane lacks and not one besides, and {more(chosen, 'SEL')} selections, for which of its two rows a lane keeps "
    f"depends on the lane. Shared memory takes {stores} stores of 4 bytes and {loads} loads of 16 bytes a lane. Of "
    "the port to shared memory a shuffle or a store takes one wavefront of 128 bytes and such a load four: "
    f"{more(chosen, 'SHFL')} against {stores + 4 * loads}. So the port gains from registers too, though shuffles go "
    f"through it: {chosen.shared.port_cycles:.0f} and {chosen.registers.port_cycles:.0f} cycles of a warp's tile, K "
    "and V included."
)

# %% [markdown]
# Instructions hardly differ, and stall counts do. Why? A warp that exchanges by shared memory must not load before
# all its lanes have stored, and ptxas moves no product of p V in front of that wait: the whole tile is packed before
# the first of them. In registers there is no wait, and ptxas mixes the softmax of one part of the tile with products
# of another:

# %%
table(
    "HMMA between the first exponential and the last pair packed | through shared memory | in registers | of",
    ((pair.label, pair.shared.amid, pair.registers.amid, pair.shared.counts["HMMA"]) for pair in both),
)

# %%
saved = [1 - pair.registers.stalls / pair.shared.stalls for pair in both]
alone = [1 - pair.registers.chain_cycles / pair.shared.chain_cycles for pair in both]
Markdown(
    f"That is {min(saved):.0%} to {max(saved):.0%} of the cycles that ptxas counts, and {min(alone):.0%} to "
    f"{max(alone):.0%} of what one warp alone is estimated to take when it also waits by scoreboard. The rest of what "
    "a tile takes is hidden, or not, by the other warps."
)

# %% [markdown]
# Turing has no such question. Its `mma.m16n8k8` has two keys of a row in each lane as accumulator and wants the same
# two as operand, so that `attention/kernels/sm75/forward/register_staged` packs p in place:

# %%
turing = by_path("sm75/forward/register_staged")
problem = full(128)
shapes = [config for config in turing.configs() if turing.illegal(problem, config, by_name("sm75")) is None]
turing_counts = {
    config: Counter(each.head for each in phases_of(routes.compiled(turing, problem, config)).tile) for config in shapes
}
table(
    "Turing, head dim 128 | HMMA | SHFL, for the softmax | SEL | STS, of K and V | LDS",
    ((str(config), *(counts[head] for head in HEADS)) for config, counts in turing_counts.items()),
)

# %% [markdown]
# ## Estimated
#
# What this comes to with all warps of an SM under way, by `attention.estimate`: machine code, and rates of a V100
# PCIe that others published. It knows nothing of instruction caches, register banks and power. **These are estimates,
# of a GPU that nobody here has.** The interval is what timings of an H200 missed their estimates by.


# %%
def speed(each: routes.Route) -> str:
    told = held.interval(each.estimate)
    low, high = told.low_flops_per_s / 1e12, told.high_flops_per_s / 1e12
    return f"{each.estimate.flops_per_s / 1e12:.1f} ({low:.0f} to {high:.0f})"


def bound(each: routes.Route) -> str:
    return f"{each.estimate.bound}, {each.estimate.terms[0].share:.0%}"


def gain(pair: routes.Pair) -> float:
    return pair.registers.estimate.flops_per_s / pair.shared.estimate.flops_per_s


table(
    "full attention, 8192 | through shared memory [TFLOPS] | in registers [TFLOPS] | ratio | longest taken, shared "
    "memory | "
    "registers",
    ((pair.label, *map(speed, pair.routes), f"{gain(pair):.2f}", *map(bound, pair.routes)) for pair in both),
)

# %% [markdown]
# A route also decides which tiles there are: a panel of p in shared memory may be one too many for the block, and
# where two warps share the keys of a row, p has to go through shared memory. So each route with its own best tile:

# %%
rates = routes.rates_of(V100)
best = {
    (dim, name): max(
        (
            estimate(by_path(VOLTA), full(dim), config, rates)
            for config in routes.legal(full(dim))
            if routes.NAMES[config["p_in_registers"]] == name
        ),
        key=lambda each: each.flops_per_s,
    )
    for dim in HEAD_DIMS
    for name in routes.NAMES
}
table(
    "head dim | route | best tile | estimated [TFLOPS] | longest taken",
    (
        (dim, name, each.config, f"{each.flops_per_s / 1e12:.1f}", f"{each.bound}, {each.terms[0].share:.0%}")
        for (dim, name), each in best.items()
    ),
)

# %%
gains = [gain(pair) for pair in both]
own = {dim: best[dim, routes.REGISTERS].flops_per_s / best[dim, routes.SHARED].flops_per_s for dim in HEAD_DIMS}
misses = [row.ratio for row in held.read()]
Markdown(
    f"In registers is estimated to be {min(gains):.2f} to {max(gains):.2f} times as fast on one tile, "
    f"{geometric_mean(gains):.2f} in geometric mean, and with either's own best tile "
    f"{', '.join(f'{ratio:.2f} at head dim {dim}' for dim, ratio in own.items())}. Timings of an H200, whose rates "
    f"were measured here, took {min(misses):.2f} to {max(misses):.2f} times their estimates, so that a ratio below "
    f"{max(misses) / min(misses):.2f} may be the estimate's own error: "
    f"{sum(ratio < max(misses) / min(misses) for ratio in gains)} of {len(gains)} are below it. All are on one side, "
    "and the reason is in the machine code; a V100 has not been asked."
)

# %% [markdown]
# ## What others claim
#
# Two papers are about attention on Volta's tensor cores. SparkAttention takes kernel fusion to training, and
# FastAttention redesigns how operands lie in shared memory. What was read of both are abstracts, as `data/published`
# says: neither gives a TFLOPS or a shape there, or says by which route p becomes an operand, and no source code of
# either was found.

# %%
facts = published.load()
CLAIMS = ("SPARK", "FASTATT")
table(
    "source | quantity | times | conditions | read in",
    (
        (f"`{fact.source}`", f"`{fact.quantity}`", fact.value, fact.conditions, f"{fact.locator}, {fact.confidence}")
        for fact in facts.facts
        if fact.source in CLAIMS
    ),
)

# %%
table(
    "id | source | what was read",
    (
        (f"`{each.id}`", each.citation, each.read)
        for each in facts.sources
        if each.id in (*CLAIMS, "1CAT", "Z20", "ZHQ")
    ),
)

# %% [markdown]
# A multiple of PyTorch or of xformers holds for that version, on that shape. It says how much a user gained, and
# cannot be set against an estimate in TFLOPS. What can, at least by its unit, are the speeds that kernels reached on
# real boards, each kernel's best here. They have a causal mask or a long prefix, and boards of several clocks and SM
# counts:

# %%
volta = [each for each in facts.attention if (gpu := facts.gpu(each.gpu)) and gpu.generation == "Volta" and each.tflops]
fastest = {
    name: max((each for each in volta if each.kernel == name), key=lambda each: each.tflops)
    for name in dict.fromkeys(each.kernel for each in volta)
}
table(
    "kernel | head dim | queries, keys | TFLOPS | on | source",
    (
        (name, each.head_dim, f"{each.seqlen}, {each.kv_seqlen}", each.tflops, each.gpu, f"`{each.source}`")
        for name, each in sorted(fastest.items(), key=lambda item: -item[1].tflops)
    ),
)


# %%
def fact_of(quantity: str, source: str) -> float:
    return next(fact.value for fact in facts.facts if (fact.quantity, fact.source) == (quantity, source))


round_trip = fact_of("latency_smem_store_load_roundtrip_cycles", "1CAT")
shuffle = fact_of("latency_shfl_tile_cycles", "Z20")
most = max(volta, key=lambda each: each.tflops)
ours = best[256, routes.REGISTERS]
Markdown(
    f"The most that was published for Volta is {most.tflops} TFLOPS (`{most.source}`, {most.kernel}, {most.gpu}), "
    f"measured at head dim {most.head_dim}. Ours is estimated at {ours.flops_per_s / 1e12:.1f} for head dim 256 "
    "without a mask, which counts for nothing until a V100 has said so. Of the steps of either route others measured "
    f"a store, a wait and a load at {round_trip:.1f} cycles (`1CAT`), and a shuffle at {shuffle:.0f} (`Z20`, quoted "
    f"by a third party). Two shuffles that depend on one another, which our exchange has, are {2 * shuffle:.0f}: as a "
    "chain, registers are the longer route. What speaks for them is that other work of the same warp may stand in "
    "between."
)

# %% [markdown]
# ## What holds, and what does not
#
# - **Proven here:** the layouts, that both routes hand over the same p, that no order of keys spares the transfer, that
#   the exchange has as few shuffles as a tile of two by two allows, and what the compiler makes of each.
# - **Estimated:** every cycle and every TFLOPS. The loops are longer than Volta's innermost instruction cache, and what
#   fetching them costs no rate says.
# - **Not known:** which route is faster on a V100, and whether a wait for every eight keys instead of one a tile would
#   bring the route through shared memory what the other has. The kernel has both routes as an axis of its tiles.
