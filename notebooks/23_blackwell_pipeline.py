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
from attention.choose.published_ranking import ranking
from attention.problem import AttentionProblem
from attention.variant import Config
from microbench import published
from microbench.machine.arch import Machine, by_name
from microbench.point import Point
from microbench.report import figures
from microbench.shapes import tcgen05
from notebooks.ladders import figure_pipeline, pipeline, replay
from notebooks.ladders.table import table

figures.style()
b200 = named_machine("b200").published
assert b200 is not None
ROWS, KEYS, TILES = 256, 128, 12  # two query tiles of 128 rows; so many tiles of keys


def run(head_dim: int, polynomial: int = 0) -> pipeline.Run:
    """One block over one tile of rows."""
    problem = AttentionProblem(1, 1, 1, ROWS, TILES * KEYS, head_dim, dtype="bfloat16").on("cuda")
    config = {"tile_keys": KEYS, "polynomial": polynomial, "dynamic": 0, "cta_group": 1}
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
# can compute 4 or 8 of 32 exponentials by a polynomial on the FP32 lanes. By the same replay:


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
        ratio = f"{peer.ratio:.2f}" if peer.ratio else "not compared"
        lines.append((mask, peer.kernel, f"{peer.flops_per_s / 1e12:.0f}", ratio, str(peer.miss or peer.figure)))
table("mask | whose | TFLOPS | our highest over it, at its shape | why", lines)

# %% [markdown]
# **What would decide it.** `smscope bench` on a B200 measures what published rates stand for here: `tcgen05.mma` by
# type and shape, alone and back to back, tensor memory to registers and back, f32x2 and MUFU. These probes are
# compiled, their machine code is held to its contract, and the emulator executes them; their bounds are the cycles
# above.
