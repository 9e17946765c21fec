"""The tables of a dissection: four sections, the same columns for every generation, a source in every line."""

from collections.abc import Iterator

from IPython.display import Markdown

from attention.choose.published.ranking import ranking
from attention.compare import results
from attention.problem import AttentionProblem
from microbench import paths, published
from microbench.console.si import written
from microbench.machine import arch
from microbench.published.facts import AttentionFact
from notebooks.ladders import gpu_benches
from notebooks.ladders.dissection import (
    GENERATIONS,
    Generation,
    Quoted,
    facts,
    feeds,
    in_flight,
    levels,
    softmax_share,
)
from notebooks.ladders.dissection_costs import Cost, costs
from notebooks.ladders.table import table

ABSENT = "absent"
HEAD_DIMS = (64, 128, 256)
HALF = ("fp16", "bf16", "fp16/bf16")


def board(generation: Generation) -> Markdown:
    """Which board speaks for the generation, and how much an SM has."""
    limits = arch.by_name(generation.profile.arch).limits
    assert limits is not None
    capability = arch.by_name(generation.profile.arch).capability
    of_sm = dict.fromkeys(row.source for row in published.load().limits if row.compute_capability == capability)
    sources = ", ".join(generation.sheet.sources) if generation.sheet else "measured"
    return table(
        "board | architecture | SMs | clock | registers of an SM | shared memory of an SM | warps | source",
        (
            (
                generation.profile.name,
                f"`{generation.profile.arch}`",
                generation.profile.sm_count,
                f"{generation.clock_hz / 1e6:.0f} MHz",
                f"{limits.registers * 4 // 1024} KiB",
                f"{limits.smem_bytes // 1024} KiB",
                limits.max_warps,
                f"{sources}; an SM's: {', '.join(of_sm)}",
            ),
        ),
    )


def further(generation: Generation, *quantities: str) -> Markdown:
    """Published figures beyond the common questions, as their rows in measurements.csv say them."""
    found = (fact for name in quantities for fact in facts(generation, name))
    return table(
        "what | value | unit | conditions | source",
        ((f"`{each.quantity}`", f"{each.value:.10g}", each.unit, each.conditions, each.source) for each in found),
    )


def experiment(name: str, *starting: str, lines: int = 100) -> str:
    """What an experiment of data/experiments printed on the H200: its heading, and the lines that start so."""
    text = (paths.SHIPPED / "experiments" / gpu_benches.GPU / "experiments.txt").read_text(encoding="utf-8")
    (section,) = (part for part in text.split("== ") if part.startswith(f"{name}\n"))
    heading, *rest = section.splitlines()[1:]
    return "\n".join((heading, *[line for line in rest if line.strip().startswith(starting or "")][:lines]))


def memory(generation: Generation) -> Markdown:
    """How far each level is."""
    return table(
        "level | cycles | at a clock of | ns | source | of",
        (
            (
                level.name,
                f"{level.cycles.value:.4g}",
                f"{level.clock_hz / 1e6:.0f} MHz",
                f"{level.ns:.0f}",
                level.cycles.source,
                level.cycles.of,
            )
            if level.cycles
            else (level.name, ABSENT, "", "", "no source gives it", "")
            for level in levels(generation)
        ),
    )


def under_way(generation: Generation) -> Markdown:
    bandwidth = generation.profile.value("dram_bandwidth_bytes_per_s")
    return Markdown(  # type: ignore[no-untyped-call]
        f"DRAM gives {written(bandwidth, 'B/s')}, {bandwidth / generation.profile.sm_count / 1e9:.1f} GB/s to each of "
        f"{generation.profile.sm_count} SMs. Bandwidth times latency: **{in_flight(generation) / 1024:.1f} KiB must be "
        "under way in each SM**, or DRAM waits."
    )


def instructions(generation: Generation) -> Markdown:
    """What each instruction that the architecture has costs."""
    return table(
        "instruction | cycles by ptxas | cycles to the result | source | results a clock and SM | source",
        (
            (each.label, _static(each.static, each.least), *_result(each), *_rate(each))
            for each in costs(generation)
            if each.here
        ),
    )


def feeding(generation: Generation) -> Markdown:
    """What each path brings, and what the tensor core asks of each byte of it."""
    constant = generation.profile[generation.tensor]
    product = f"`{generation.product}`"
    said = ", ".join(constant.sources or ("measured",))
    head = f"Products by {product}: **{generation.flops_per_clk:.0f} FLOP a clock and SM** ({said}).\n\n"
    lines = table(
        f"path | bytes a clock and SM | FLOP that each byte must serve | {product} serves with a byte | source | of",
        (
            (
                path.name,
                f"{path.bytes_per_clk:.1f}",
                f"{path.asks:.1f}",
                f"{generation.rows} ({generation.rows / path.asks:.2f} of it)" if path.name == "shared memory" else "",
                path.quoted.source,
                path.quoted.of,
            )
            for path in feeds(generation)
        ),
    )
    return Markdown(head + lines.data)  # type: ignore[no-untyped-call]


def softmax(generation: Generation) -> Markdown:
    """How the exponentials stand beside the products, by head dim, and what the model of our kernel says."""
    rate = generation.profile["mufu_ex2_per_clk_sm"]
    return table(
        "head dim | clocks of products for 1024 scores | clocks of exponentials | over the products | source of both",
        (
            (
                dim,
                f"{1024 * 4 * dim / generation.flops_per_clk:.0f}",
                f"{1024 / rate.value:.0f}",
                f"{softmax_share(generation, dim):.2f}",
                "; ".join(
                    ", ".join(each.sources or ("measured",)) for each in (generation.profile[generation.tensor], rate)
                ),
            )
            for dim in HEAD_DIMS
        ),
    )


def sharing(generation: Generation) -> Markdown:
    """Who must share a read of K and V, and what DRAM leaves of the rate where only the heads of a group do."""
    who = {
        "shared memory": "rows of a warp, or of one instruction",
        "L2": "rows of a block",
        "DRAM": "rows of all blocks that read the same head together",
    }
    paths_to_core = tuple(feeds(generation))
    lines = [(who[path.name], path.name, f"at least {path.asks:.0f} rows") for path in paths_to_core]
    (dram,) = (path for path in paths_to_core if path.name == "DRAM")
    lines += [
        (f"decoding: {name} to each of K and V", "DRAM", f"at best {heads / dram.asks:.1%} of the products' rate")
        for name, heads in (("one query head", 1), ("eight query heads", 8))
    ]
    return table("who shares a read of K and V | from | to keep the tensor core busy", lines)


def kernel(generation: Generation) -> Markdown:
    """Our kernel for the generation: timed where we measured, else what published constants let one expect at most."""
    lines = _timed(generation) if generation.measured else _foreseen(generation)
    return table("head dim | problem | kernel | TFLOPS | of the rate above | bound by, or source", lines)


def _timed(generation: Generation) -> Iterator[tuple[object, ...]]:
    for each in results.last_run(generation.kind):
        problem, found = each.cell.problem, each.of(results.HOPPER)
        if each.cell.grid and found and (problem.seq_q, problem.causal) == (4096, False):
            speed = each.tflops(found)
            file = f"timed: data/attention/{generation.kind}.jsonl"
            yield problem.head_dim, _of(problem), f"`{found.variant}`", f"{speed:.0f}", _share(generation, speed), file


def _foreseen(generation: Generation) -> Iterator[tuple[object, ...]]:
    for dim in HEAD_DIMS:
        problem = AttentionProblem(4, 32, 32, 4096, 4096, dim, dtype="float16").on("cuda")
        found = ranking(generation.profile, problem, ())
        best = found.candidates[0] if found.candidates else None
        if best is None or best.prediction is None:
            why = found.without or (best.unpredicted if best else "")
            yield dim, _of(problem), "", "none predicted", "", why
            continue
        speed = problem.flops / best.prediction.seconds / 1e12
        said = (f"at most {speed:.0f}", _share(generation, speed), f"predicted: {best.prediction.bound_by}")
        yield dim, _of(problem), f"`{best.variant}`", *said


def reached(generation: Generation) -> Markdown:
    """The fastest forwards of others: peers of our own run, or half-precision figures that say head dim and mask."""
    lines = _peers(generation) if generation.measured else _published(generation)
    return table("head dim | mask | kernel | keys | TFLOPS | of the rate above | source", lines)


def _peers(generation: Generation) -> Iterator[tuple[object, ...]]:
    for each in results.last_run(generation.kind):
        problem, found = each.cell.problem, each.best_peer
        if each.cell.grid and found and problem.seq_q == 4096:
            speed, mask = each.tflops(found), "causal" if problem.causal else "full"
            said = (f"{speed:.0f}", _share(generation, speed), f"timed: data/attention/{generation.kind}.jsonl")
            yield problem.head_dim, mask, f"`{found.variant}`", problem.seq_kv, *said


def _published(generation: Generation) -> Iterator[tuple[object, ...]]:
    best: dict[tuple[int | None, bool | None], AttentionFact] = {}
    boards = generation.sheet.boards if generation.sheet else ()
    for fact in published.load().attention:
        plain = fact.pass_ == "fwd" and fact.dtype in HALF and fact.tflops and fact.head_dim and not fact.flags
        key = fact.head_dim, fact.causal
        if fact.gpu in boards and plain and fact.causal is not None:
            best[key] = max(best.get(key, fact), fact, key=lambda each: each.tflops or 0)
    for fact in best.values():
        speed = fact.tflops or 0
        mask, said = "causal" if fact.causal else "full", (f"{speed:.0f}", _share(generation, speed), fact.source)
        yield fact.head_dim, mask, fact.kernel, fact.seqlen or "", *said


def side_by_side(shown: Generation) -> Markdown:
    """The answers of all generations, the shown one's in bold; sources are in each one's notebook."""
    columns = {each: _answers(each) for each in GENERATIONS}
    questions = next(iter(columns.values()))
    names = (f"{each.title} ({each.name})" for each in GENERATIONS)
    return table(
        " | ".join(("", *names)),
        (
            (
                question,
                *(f"**{found[question]}**" if each == shown else found[question] for each, found in columns.items()),
            )
            for question in questions
        ),
    )


def _answers(generation: Generation) -> dict[str, str]:
    by_level = {level.name: level for level in levels(generation)}
    asks = {path.name: f"{path.asks:.0f}" for path in feeds(generation)}
    far = {f"{name} [ns]": f"{level.ns:.0f}" if level.ns else ABSENT for name, level in by_level.items()}
    return {
        **far,
        "under way in an SM for DRAM [KiB]": f"{in_flight(generation) / 1024:.1f}",
        "FLOP of products a clock and SM": f"{generation.flops_per_clk:.0f}",
        **{f"rows a read must serve, {name}": asked for name, asked in asks.items()},
        "rows that one instruction serves": str(generation.rows),
        **{f"exponentials over products, head dim {dim}": f"{softmax_share(generation, dim):.2f}" for dim in HEAD_DIMS},
    }


def _share(generation: Generation, tflops: float) -> str:
    peak = generation.flops_per_clk * generation.profile.sm_count * generation.clock_hz / 1e12
    return f"{tflops / peak:.0%} of {peak:.0f}"


def _of(problem: AttentionProblem) -> str:
    return f"{problem.batch} x {problem.heads_q} heads, {problem.seq_q} keys, {problem.dtype}, full"


def _static(cycles: int | None, least: bool) -> str:
    return "" if cycles is None else f"at least {cycles}" if least else str(cycles)


def _rate(cost: Cost) -> tuple[str, str]:
    return _figure(cost.rate) if cost.rated else ("its FLOP are below", "")


def _result(cost: Cost) -> tuple[str, str]:
    cycles, source = _figure(cost.latency)
    return (f"{cycles} each in a chain", source) if cost.chained else (cycles, source)


def _figure(found: Quoted | None) -> tuple[str, str]:
    return (f"{found.value:.4g}", found.source) if found else (ABSENT, "")
