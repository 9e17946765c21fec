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
# # Blackwell: who waits for whom
#
# **The question.** On Blackwell one thread multiplies, scores and outputs lie in tensor memory, and every other warp
# has one job. Which unit is busy when, what do the warps wait for, and what is left to gain?
#
# **Nothing here was measured on a Blackwell.** What each warp waits for and arrives at, and in which order, is the run
# of our kernel's own text on the emulator. How long a unit works is the arithmetic of its tile by rates that others
# published (`smscope explain --gpu b200` lists them with their sources). It executes on any CPU.

# %%
from collections import Counter

from IPython.display import Markdown

from attention.choose.machine import named_machine
from attention.choose.published.cycles import cycles_of
from attention.choose.published.ranking import ranking
from attention.choose.published.table import their_choice
from attention.problem import AttentionProblem
from attention.variant import Config
from microbench import published
from microbench.machine.arch import Machine, by_name
from microbench.point import Point
from microbench.report import figures
from microbench.shapes import tcgen05
from notebooks.ladders import figure_pair, figure_pipeline, pipeline, replay
from notebooks.ladders.table import table

figures.style()
b200 = named_machine("b200").published
assert b200 is not None
ROWS, KEYS, TILES = 256, 128, 12  # two query tiles of 128 rows; so many tiles of keys


def run(head_dim: int, polynomial: int = 0, blocks: int = 1) -> pipeline.Run:
    """One block over one tile of rows, or a pair."""
    problem = AttentionProblem(1, 1, 1, blocks * ROWS, TILES * KEYS, head_dim, dtype="bfloat16").on("cuda")
    config = {"tile_keys": KEYS, "polynomial": polynomial, "dynamic": 0, "cta_group": blocks}
    return pipeline.run(problem, Config(tuple(config.items())))


# %% [markdown]
# ## Fifteen warps, six roles
#
# What one warp of each role does to barriers while its block works through twelve tiles of keys. A commit is the
# tensor cores' arrival: it comes when the products before it are through.

# %%
whole = run(128)
by_role = {replay.lane_of(whole, warp): steps for warp, steps in reversed(whole.warps.items())}
kinds = ("wait", "arrive", "load", "commit", "scores", "values")
table(
    "role | warps | waits | arrivals | copies | commits | products Q K | products P V",
    (
        (
            role,
            sum(replay.lane_of(whole, warp) == role for warp in whole.warps),
            *(Counter(step.kind for step in steps)[kind] for kind in kinds),
        )
        for role, steps in reversed(by_role.items())
    ),
)

# %% [markdown]
# ## The timeline
#
# The run's steps again, each unit working as long as its rate says. Above the units, below the warps and what they wait
# for, by the name of the barrier. Dark is the first query tile, light the second. From the start:

# %%
rates = replay.Rates.of(b200, whole)
spans = replay.replayed(whole, rates)
sources = replay.sources_of(b200)
first = "The first tiles: copies come, and the tensor cores go ahead by two"
figure = figure_pipeline.timeline(spans, 0, 6500, first, sources)

# %% [markdown]
# And in the middle. `s_full`: scores stand in tensor memory. `ready`: P stands there, and outputs are on its scale.
# `factor_full`: what outputs are to be multiplied by. `kv_empty`: a place in the ring of K and V is free.

# %%
middle = sorted(span.start for span in spans if span.what == "scores" and span.query_tile == 0)[TILES // 2]
step = replay.period(spans)
later = "Two tiles of keys, in the middle of the run"
figure = figure_pipeline.timeline(spans, middle, middle + 2 * step, later, sources)

# %%
unit_shares = {
    unit: replay.busy(spans, unit, middle, middle + 2 * step) for unit in ("tensor cores", "exponentials", "copies")
}
Markdown(
    f"A tile of keys takes {step:.0f} cycles for {ROWS} rows. Of these the tensor cores work "
    f"{unit_shares['tensor cores']:.0%}, the exponentials {unit_shares['exponentials']:.0%} and the copies "
    f"{unit_shares['copies']:.0%}. Two query tiles take turns: while one is multiplied, the other is softened. "
    "The issuer waits nearly always, for what it asks is done by others; the correction too, unless a maximum has "
    "moved far. Both units are full, so that whatever these rates leave out (tensor memory to registers, maxima, sums, "
    "conversions, the answers of barriers) must hide behind them."
)

# %% [markdown]
# ## Where polynomials help
#
# At head dim 128 a tile asks as many cycles of the exponentials as of the tensor cores; at 64 twice as many. The kernel
# can compute 4, 6 or 8 of 32 exponentials by a polynomial on the FP32 lanes. By the same replay:


# %%
def replayed_row(head_dim: int, polynomial: int) -> tuple[object, ...]:
    """The period of one configuration, and what bounds it."""
    one = run(head_dim, polynomial)
    found = replay.replayed(one, replay.Rates.of(b200, one))
    cycles = replay.period(found)
    ends = sorted(span.start for span in found if span.what == "scores" and span.query_tile == 0)
    begin = ends[TILES // 4]
    shares = [replay.busy(found, unit, begin, begin + 4 * cycles) for unit in ("tensor cores", "exponentials")]
    return (head_dim, f"{polynomial} of 32", f"{cycles:.0f}", *(f"{share:.0%}" for share in shares))


table(
    "head dim | polynomials | cycles a tile of keys | tensor cores busy | exponentials busy",
    (replayed_row(head_dim, polynomial) for head_dim in (64, 128) for polynomial in (0, 4, 8)),
)

# %% [markdown]
# The replay gives everything but these units no time. The model (`smscope explain --gpu b200`) prices a turn: the
# products of a query tile, the way of the last one, the maxima and the exponentials follow each other, while the other
# query tile's products run. Its cycles of 128 rows by 128 keys, one block:


# %%
def priced(head_dim: int, polynomial: int) -> tuple[object, ...]:
    """What the model says of one share."""
    problem = AttentionProblem.parse_shape(f"1,16,16,16384,16384,{head_dim}", dtype="bfloat16", causal=False)
    config = Config(tuple({"tile_keys": KEYS, "polynomial": polynomial, "dynamic": 0, "cta_group": 1}.items()))
    found = next(each for each in ranking(b200, problem.on("cuda"), ()).candidates if each.config == config)
    assert found.prediction is not None
    cycles = cycles_of(b200, problem.on("cuda"), found.variant, config, found.prediction)
    theirs = their_choice(b200, problem.on("cuda"))
    assert cycles is not None and theirs is not None
    by_name = {term.term: term.cycles for term in cycles.terms}
    names = ("products on tcgen05", "exponentials", "instructions of the softmax", "turns by their exponentials")
    same = "FlashAttention-4's" if theirs.same_share(config) else ""
    return (head_dim, f"{polynomial} of 32", *(f"{by_name[name]:.0f}" for name in names), cycles.bound.term, same)


table(
    "head dim | polynomials | products | exponentials | instructions | turns | bound | whose share",
    (priced(head_dim, polynomial) for head_dim in (64, 128) for polynomial in (0, 4, 6, 8)),
)

# %% [markdown]
# At head dim 128 six of 32 are the fewest that hide a turn behind the other query tile's products, by a cycle; more
# would only take more instructions. Not priced, for want of a published rate: scores to registers and P back.
#
# FlashAttention-4's own table (FA4SRC) has the same tile, two times 128 rows by 128 keys, and at head dim 128:

# %%
table(
    "board | of FlashAttention-4's forward | value | source",
    (
        (fact.gpu, fact.quantity.removeprefix("fa4_fwd_"), f"{fact.value:g}", f"{fact.conditions} ({fact.locator})")
        for fact in published.load().facts
        if fact.source == "FA4SRC"
    ),
)

# %% [markdown]
# ## What two CTAs change
#
# A pair of blocks multiplies M = 256: each SM holds its own 128 rows of A and of the result, and half of B. The
# products are the same, and what each SM reads of B is half. Our kernel works so where its configuration says
# `cta_group=2`: one block issues when P of both is there, commits arrive in both, and twice as many tiles of K and V
# fit. One instruction of bf16, N = 128, by the bounds that our probes `tcgen05_latency` and `tcgen05_throughput` are
# held to:


# %%
def operands(shape: str, source: str) -> tuple[object, ...]:
    """Bytes of shared memory and cycles that one instruction asks of one SM."""
    point = Point((("type", "bf16"), ("shape", shape), ("n", 128), ("operands", source)))
    chip = by_name("sm100a")
    sm = Machine("b200", "B200", chip, b200.sm_count, None, None, 0, None)
    of, limits = tcgen05.shape_of(point), chip.limits
    assert limits is not None
    a_bytes = of.rows * tcgen05.SLICE_BYTES if source == "ss" else 0
    b_bytes = 128 // of.blocks * tcgen05.SLICE_BYTES
    products = tcgen05.flops(point) / limits.tensor_f16_flops_per_clk
    reading = (a_bytes + b_bytes) / limits.smem_bytes_per_clk
    return (
        shape,
        source,
        a_bytes,
        b_bytes,
        f"{products:.0f}",
        f"{reading:.0f}",
        f"{tcgen05.least_cycles(sm, point):.0f}",
    )


table(
    "shape | A and B from | bytes of A | bytes of B | cycles of products | cycles of reading | least",
    (operands(shape, source) for shape in ("m128", "m256_pair") for source in ("ss", "ts")),
)


# %%
def of_both(shape: str) -> int:
    """Bytes that one instruction of Q K (ss) and one of P V (ts) read of shared memory."""
    rows = (operands(shape, source) for source in ("ss", "ts"))
    return sum(int(str(row[2])) + int(str(row[3])) for row in rows)


single, pair = of_both("m128"), of_both("m256_pair")
Markdown(
    "Q K takes Q and K from shared memory (ss), P V takes V alone (ts): together an instruction of each reads "
    f"{single} bytes with one block and {pair} with a pair. A tile of 128 by 128 is eight of each: "
    f"{single * 8 // 128} cycles of shared memory become {pair * 8 // 128}, beside 1024 of products. So a pair makes "
    "nothing faster that the tensor cores or the exponentials bound; it leaves shared memory free for copies and "
    "outputs, and each SM fetches half of K and V from the L2. Narrow products gain: at N = 64 one block is bound by "
    "shared memory, and a pair less."
)

# %% [markdown]
# And who waits for whom: one run of a pair, 512 rows, on two SMs of the emulator. The issuer has one `ready` for each
# query tile that warps of both blocks arrive at, so that the slower softmax of two holds up both SMs (arrows, those of
# the other SM red). The other block has no issuer: its warp tells the first when its halves of K and V have come.

# %%
POLYNOMIALS = 6
shared_run, alone_run = run(128, POLYNOMIALS, blocks=2), run(128, POLYNOMIALS)
pair_rates = replay.Rates.of(b200, shared_run)
pair_spans = replay.replayed(shared_run, pair_rates)
pair_step = replay.period(pair_spans)
begin = sorted(span.start for span in pair_spans if (span.what, span.query_tile, span.block) == ("scores", 0, 0))[6]
reads = figure_pair.reads_of(alone_run.shape, shared_run.shape)
figure = figure_pair.pair(pair_spans, begin, begin + 1.5 * pair_step, reads, sources)

# %%
arrivals = [of.counts[0, "ready", 0] for of in (alone_run, shared_run)]
remote = sum(
    step.kind == "arrive" and step.blocks == 1 and shared_run.block_of(warp) == 1
    for warp, steps in shared_run.warps.items()
    for step in steps
)
long = AttentionProblem.parse_shape("1,16,16,16384,16384,128", dtype="bfloat16", causal=False).on("cuda")
Markdown(
    f"`ready` counts {arrivals[0]} arrivals with one block and {arrivals[1]} with a pair; {remote} arrivals of this "
    f"run come from the other SM, {remote / TILES:.0f} for each tile of keys. The replay gives a barrier no time, so "
    f"that both take {pair_step:.0f} cycles a tile of keys. {ranking(b200, long, ()).pair}"
)

# %% [markdown]
# ## How fast that may be
#
# The highest is every term at the boost clock and behind the longest; the lowest the least share of its own highest
# that any published forward of this head dim and mask reaches within an octave. 16,384 tokens, 16 heads of 128:

# %%
lines = []
for causal in (False, True):
    problem = AttentionProblem.parse_shape("1,16,16,16384,16384,128", dtype="bfloat16", causal=causal).on("cuda")
    speed = ranking(b200, problem, ()).speed
    assert speed is not None and speed.low is not None and speed.high is not None
    mask = "causal" if causal else "full"
    lines.append((mask, "predicted", f"{speed.low / 1e12:.0f} to {speed.high / 1e12:.0f}", "", str(speed.cycles)))
    for peer in speed.peers:
        share = f"{peer.share:.2f}" if peer.share else "not compared"
        lines.append((mask, peer.kernel, f"{peer.flops_per_s / 1e12:.0f}", share, str(peer.miss or peer.figure)))
table("mask | whose | TFLOPS | of our highest, at its shape | why", lines)

# %% [markdown]
# **What would decide it.** `smscope verify` on a B200 measures what published rates stand for here: `tcgen05.mma` by
# type and shape, alone and back to back, tensor memory to registers and back, f32x2 and MUFU. These probes are
# compiled, their machine code is held to its contract, and the emulator executes them; their bounds are the cycles
# above.
