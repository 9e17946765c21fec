"""estimate(): the seconds of a forward of ours, from its cubin and a GPU's rates, and what bounds them.

    block   = before + masked tiles + tiles x cycles of a tile + after, each from its own machine code
    tile    = the issue of all warps that an SM holds (microbench.issue), or the SM's share of DRAM where that is longer
    seconds = when the last block ends / clock, blocks dealt as the kernel deals them; where several
              share a row's keys, what each leaves takes its time at the DRAM

No number in it was fitted; one rule was chosen on an H100 (microbench.issue.sm, OPERAND_CLOCKS). How far it is off was
measured on the sm80 kernel and an H200, and every estimate carries that as its interval (held.py). It knows nothing of
instruction caches, register banks, power or the launch.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from attention.errors import AttentionError, ProblemError
from attention.estimate.blocks import MOST_DEALT, last_end, late_end, launched, parts_of, resident, served, tiles_of
from attention.estimate.phases import flops, phases_of
from attention.kernels.common.family import held_head_dim, held_value_dim, row_tiles, section_of
from attention.kernels.launch.source import source_of
from attention.problem import AttentionProblem
from attention.seen import flops_seen
from attention.variant import PARTS, Config, Variant, by_path
from microbench.compile import Cubin, require_all
from microbench.console.si import written
from microbench.errors import UnknownGpu
from microbench.issue.rates import BOARDS, V100, Rates, measured, published
from microbench.issue.sm import Pace, pace, passage
from microbench.published.boards import Known, known
from microbench.published.names import listed
from microbench.results.profile import Profile

# What a tile's units are called: of a scheduler's, the SM's, and the GPU's share of an SM.
NAMES = {
    "issue": "issue slots",
    "tensor": "tensor cores",
    "fp32": "FP32 lanes",
    "integer": "integer lanes",
    "special": "exponentials and conversions",
    "port": "port to shared memory and L1",
    "L2": "L2",
    "DRAM": "DRAM",
    "chain": "one warp's chain of waits",
}
INSTRUCTION_BYTES = 16
BLOCK_A_TILE = ("sm70/forward/quad_pair", "sm80/forward/software_pipelined")


@dataclass(frozen=True)
class Term:
    """One unit of an SM, taken `cycles` of a tile of every block there; `share` of what such a tile takes."""

    name: str
    cycles: float
    share: float


@dataclass(frozen=True)
class Estimate:
    """Of one configuration of a problem on a GPU. `flops_per_s` counts the scores that are seen.

    tile_cycles    one tile of each of the `blocks` that an SM holds
    terms          units by the time that they are taken, the longest first: it is the bound
    code_bytes     of the main loop's usual path
    cautions       what is known to lie outside of the estimate, each a sentence
    sources        where the GPU's rates come from
    """

    variant: str
    config: Config
    gpu: str
    seconds: float
    flops_per_s: float
    tile_cycles: float
    blocks: int
    terms: tuple[Term, ...]
    code_bytes: int
    cautions: tuple[str, ...]
    sources: str

    @property
    def bound(self) -> str:
        """The unit that is taken longest, by name."""
        return self.terms[0].name


def rates_of(gpu: str) -> Rates:
    """Rates of a GPU with a profile, else those published of a V100's board. A name of several says which is taken.

    Raises UnknownGpu, also for what a profile lacks and for a Volta whose clock or SMs no table has.
    """
    try:
        return measured(Profile.load(gpu))
    except KeyError as error:
        raise UnknownGpu(f"Of {gpu} too little was measured for a static estimate: {error.args[0]}") from error
    except UnknownGpu:
        return _published(known(gpu))


def _published(about: Known) -> Rates:
    slugs = [board.slug for board in about.boards]
    if len(slugs) == 1:
        return published(slugs[0])
    theirs = [board for board in BOARDS if board in slugs or (not slugs and about.arch == published().arch.name)]
    rates = published(theirs[0] if theirs else about.asked)
    # The PCIe board is the first: most of what is published was measured on it.
    others = f"{about.asked!r} may be {listed(slugs or BOARDS)}, whose clocks and bandwidths differ"
    why = "of which the most is published" if rates.gpu == V100 else "the first of them"
    return replace(rates, taken=f"{others}; {rates.gpu} is taken, {why}. Name another for its own numbers.")


def estimate(variant: Variant, problem: AttentionProblem, config: Config, rates: Rates) -> Estimate:
    """One configuration. Raises ProblemError, AttentionError for a kernel of another kind, BuildError."""
    _require(variant, problem, rates)
    assert variant.tile is not None  # of a kernel whose blocks are tiles
    (build,) = variant.steps(problem, config)
    (cubin,) = require_all([source_of(variant.folder, build, rates.arch)])
    tile, warps = variant.tile(problem, config), build.threads // 32
    count = row_tiles(problem, tile.rows) * problem.batch * problem.heads_q * tile.key_splits
    held = resident(build, cubin.resources, rates.arch)
    if held == 0:
        raise ProblemError(
            f"{variant.path} with {config} needs more than an SM of {rates.gpu} holds; take a smaller tile."
        )
    blocks = min(held, -(-count // rates.sm_count))
    dims, held_dims = problem.head_dim + problem.head_dim_v, held_head_dim(problem.head_dim) + held_value_dim(problem)
    products = 2 * tile.rows * tile.columns
    times = _times(cubin, rates, warps, blocks, (products * dims, products * held_dims))
    dram = _dram_bytes(problem, tile.columns, blocks, rates.sm_count) / rates.dram_bytes_per_clk
    tile_cycles = max(times.tile.cycles, dram)
    # What parts leave, written and read again; all blocks of an SM at a time, and each as if it came last.
    left = blocks * sum(each.amount for each in tile.edge if each.phase == PARTS) / rates.dram_bytes_per_clk

    def each_part(row: int) -> list[float]:
        parts = parts_of(tiles_of(problem, row, tile.rows, tile.columns), tile.key_splits)
        return [times.around + left + each.masked * max(times.masked, dram) + each.seen * tile_cycles for each in parts]

    rows = range(0, problem.seq_q, tile.rows)
    of_row = {row: each_part(row) for row in rows} if problem.causal else dict.fromkeys(rows, each_part(0))
    slots = rates.sm_count * blocks
    if count <= MOST_DEALT:
        cycles = last_end((cycles for row in launched(problem, tile.rows) for cycles in of_row[row]), slots)
    else:
        cycles = late_end(of_row.values(), problem.batch * problem.heads_q, slots)
    seconds = cycles / rates.clock_hz
    busy = [(each.unit, each.cycles) for each in times.tile.taken] + [("DRAM", dram), ("chain", times.chain)]
    terms = [Term(NAMES[unit], taken, taken / tile_cycles) for unit, taken in busy]
    return Estimate(
        variant.path,
        config,
        rates.gpu,
        seconds,
        flops_seen(problem) / seconds,
        tile_cycles,
        blocks,
        tuple(sorted(terms, key=lambda term: -term.cycles)),
        times.code_bytes,
        tuple(_cautions(times.code_bytes, rates)),
        rates.sources,
    )


def estimate_all(variant: Variant, problem: AttentionProblem, rates: Rates) -> tuple[Estimate, ...]:
    """Every legal configuration of a variant, the fastest first. Raises what estimate() does."""
    _require(variant, problem, rates)
    legal = [
        config
        for config in variant.configs()
        if variant.illegal is None or variant.illegal(problem, config, rates.arch) is None
    ]
    found = [estimate(variant, problem, config, rates) for config in legal]
    return tuple(sorted(found, key=lambda each: each.seconds))


def _require(variant: Variant, problem: AttentionProblem, rates: Rates) -> None:
    served(problem)
    if variant.path not in BLOCK_A_TILE or variant.tile is None:
        raise AttentionError(f"{variant.path} launches no block a tile of rows; the static estimate cannot follow it.")
    if rates.arch.name not in variant.archs:
        able = [f"--variant {path}" for path in BLOCK_A_TILE if rates.arch.name in by_path(path).archs]
        raise ProblemError(
            f"{variant.path} runs on {', '.join(variant.archs)}, not on the {rates.arch.name} of {rates.gpu}; "
            f"{' and '.join(able) or 'no kernel that the static estimate follows'} can be estimated there."
        )
    if refusal := variant.refusal(problem, rates.arch):
        raise ProblemError(f"{variant.path} {refusal}.")
    if variant.launch_of(problem) is not problem:
        raise ProblemError(f"The static estimate follows one launch, and value dim {problem.head_dim_v} takes two.")


@dataclass(frozen=True)
class _Times:
    """Cycles of a block: outside its tiles, of a masked tile, of a tile with all blocks under way, of a warp alone."""

    around: float
    masked: float
    tile: Pace
    chain: float
    code_bytes: int


def _times(cubin: Cubin, rates: Rates, warps: int, blocks: int, tile_flops: tuple[int, int]) -> _Times:
    """`tile_flops`: what is asked of a tile, and what its padded head dims make of it."""
    phases = phases_of(cubin)
    asked, held = (each / (flops(phases.tile) * warps) for each in tile_flops)
    if abs(asked - 1) > 0.01 and abs(held - 1) > 0.01 and not _padded(asked):
        raise AttentionError(
            f"The static estimate follows a loop of one whole tile, and that of {cubin.kernel} holds {1 / asked:.2f} "
            "tiles of products: it has none to give for this tile and head dim."
        )
    masked = pace(phases.masked, rates, warps, blocks).cycles * flops(phases.tile) / flops(phases.masked)
    around = passage(phases.before, rates, warps, rates.dram_cycles) + passage(
        phases.after, rates, warps, rates.dram_cycles
    )
    chain = pace(phases.tile, rates, 1, 1).cycles
    tile = pace(phases.tile, rates, warps, blocks)
    return _Times(around, masked, tile, chain, INSTRUCTION_BYTES * len(phases.tile))


def _cautions(code_bytes: int, rates: Rates) -> Iterator[str]:
    if rates.taken:
        yield rates.taken
    if rates.icache_bytes is not None and code_bytes > rates.icache_bytes:
        cache, code = (written(size, "B") for size in (rates.icache_bytes, code_bytes))
        yield (
            f"The loop is {code} of code, where a scheduler has {cache} of instruction cache; what fetching the rest "
            "costs, no rate says."
        )


def _padded(trips: float) -> bool:
    """Whether a loop does more than is asked for: a head dim that shared memory pads."""
    return 0.5 <= trips < 1


def _dram_bytes(problem: AttentionProblem, columns: int, blocks: int, sm_count: int) -> float:
    """Bytes of K and V that an SM's blocks bring from DRAM a tile: rows of a head that are under way share them."""
    kv_bytes = columns * (problem.head_dim + problem.head_dim_v) * problem.element_bytes
    heads = min(section_of(problem), problem.batch * problem.heads_q) if problem.causal else 1
    readers = max(1.0, blocks * sm_count / heads) * problem.heads_q / problem.heads_kv
    return blocks * kv_bytes / min(readers, sm_count * blocks)
