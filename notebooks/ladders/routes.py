"""Both routes of p on Volta: what a warp runs for a tile of keys, counted in the cubin, and the static estimate.

Instructions are those of the usual path through the main loop, as attention.estimate reads it.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from attention.estimate.phases import phases_of
from attention.estimate.predicted import Estimate, estimate, rates_of
from attention.kernels.launch.source import source_of
from attention.kernels.sm70.forward.quad_pair.arguments import shape_of
from attention.problem import AttentionProblem
from attention.variant import Config, Variant, by_path
from microbench.compile import Cubin, require_all
from microbench.issue.pipes import use_of
from microbench.issue.rates import V100
from microbench.machine.arch import by_name
from notebooks.ladders.exchange import VOLTA

SHARED, REGISTERS = "through shared memory", "in registers"
NAMES = (SHARED, REGISTERS)  # by the kernel's axis p_in_registers


@dataclass(frozen=True)
class Route:
    """One configuration of the Volta kernel.

    counts       instructions of a warp and tile, by opcode without modifiers
    amid         of these, tensor instructions between the first exponential and the last pair that is packed
    stalls       cycles, the sum of their stall counts: a warp that waits for nothing else
    port_cycles  cycles that a warp's tile takes of the port to shared memory and L1
    registers    of a thread
    smem_bytes   of a block
    """

    config: Config
    counts: Counter[str]
    amid: int
    stalls: int
    port_cycles: float
    registers: int
    smem_bytes: int
    estimate: Estimate

    @property
    def name(self) -> str:
        return NAMES[self.config["p_in_registers"]]

    @property
    def chain_cycles(self) -> float:
        """One warp alone through a tile: stalls, and what it waits for by scoreboard."""
        return next(term.cycles for term in self.estimate.terms if term.name == "one warp's chain of waits")


@dataclass(frozen=True)
class Pair:
    """A tile that is legal by both routes."""

    problem: AttentionProblem
    shared: Route
    registers: Route

    @property
    def label(self) -> str:
        config = self.shared.config
        rows = f"{config['warps']} warps of {config['warp_rows']} rows"
        return f"head dim {self.problem.head_dim}, {config['tile_keys']} keys: {rows}"

    @property
    def routes(self) -> tuple[Route, Route]:
        return self.shared, self.registers


def route(problem: AttentionProblem, config: Config) -> Route:
    """One configuration, compiled and estimated for a V100 PCIe. Raises BuildError."""
    variant, rates = by_path(VOLTA), rates_of(V100)
    cubin = compiled(variant, problem, config)
    path = phases_of(cubin).tile
    uses = [use_of(each, rates, rates.l2_cycles) for each in path]
    heads = [each.head for each in path]
    softmax = heads[heads.index("MUFU") : len(heads) - heads[::-1].index("PRMT")]
    return Route(
        config,
        Counter(heads),
        softmax.count("HMMA"),
        sum(each.control.stall for each in path),
        sum(use.cycles for use in uses if use.pipe == "port"),
        cubin.resources.registers,
        shape_of(problem, config).smem_bytes,
        estimate(variant, problem, config, rates),
    )


def compiled(variant: Variant, problem: AttentionProblem, config: Config) -> Cubin:
    """The cubin of a kernel of one architecture. Raises BuildError."""
    (build,) = variant.steps(problem, config)
    (cubin,) = require_all([source_of(variant.folder, build, by_name(variant.archs[0]))])
    return cubin


def legal(problem: AttentionProblem) -> tuple[Config, ...]:
    """Every tile of the Volta kernel that a problem may have, with its keys on one block."""
    variant, arch = by_path(VOLTA), by_name("sm70")
    assert variant.illegal is not None
    whole = [config for config in variant.configs() if config["key_splits"] == 1]
    return tuple(config for config in whole if variant.illegal(problem, config, arch) is None)


def pairs(problem: AttentionProblem) -> Iterator[Pair]:
    """Tiles that differ in nothing but the route."""
    configs = legal(problem)
    for config in configs:
        other = Config(tuple((axis, 1 if axis == "p_in_registers" else value) for axis, value in config.values))
        shares = {shape_of(problem, each).split for each in (config, other)}  # in registers no two warps share rows
        if other != config and other in configs and len(shares) == 1:
            yield Pair(problem, route(problem, config), route(problem, other))
