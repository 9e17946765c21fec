"""Which published figures speak of a constant on a kind of GPU, and which of them wins: one rule for all.

The nearest figures win: those of the board that stands for the kind (of any board of the kind, where boards do not
differ in it), then of the kind's other boards, then of other boards of the architecture, then what a document says of
the architecture, and the board's data sheet last. Among the equally near, figures taken as ours are go before those of
another method. A chain that holds an address step comes last, because it is longer than the latency asked for.

Of the figures that win, a rate or a size is the highest, because somebody reached it and no bound refuses it; a latency
is the middle one. The lowest and the highest are kept as the spread. A figure that plausible.py refuses, or that its
own flags disown, never takes part.
"""

import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum

from microbench.machine.arch import Arch
from microbench.probe import Probe
from microbench.published import Published
from microbench.published.facts import OTHER_METHOD, Fact, Gpu, Kind, Quantity
from microbench.published.machines import converted
from microbench.published.plausible import reasons
from microbench.published.verdict import documented

LONGER_CHAIN = "address-step"
# Of the L2 and of DRAM: another chip of the architecture has others.
OF_THE_CHIP = ("l2_size", "l2_visible_size", "l2_latency", "l2_far_latency", "dram_")
LATENCIES = ("_cycles", "_ns")


class Nearness(IntEnum):
    """Whose figure it is; a lower one wins."""

    OWN = 0
    OTHER_BOARD = 1
    ARCHITECTURE = 2
    DOCUMENT = 3
    DATA_SHEET = 4


class Method(IntEnum):
    """How the figure was taken; a lower one wins among the equally near."""

    OURS = 0
    OTHER = 1
    LONGER = 2


@dataclass(frozen=True)
class Evidence:
    """A published figure, in the unit of our constant."""

    value: float
    unit: str
    nearness: Nearness
    method: Method
    of: str  # the board, or the compute capability
    quantity: str
    sources: tuple[str, ...]
    at_clock: bool = False  # made of a figure per clock, by the data sheet's SMs and clock

    @property
    def rank(self) -> tuple[int, int, bool]:
        return self.nearness, self.method, self.at_clock


@dataclass(frozen=True)
class Won:
    """The figure that wins, and all that are as near."""

    best: Evidence
    low: float
    high: float
    rows: int
    sources: tuple[str, ...]  # the best one's first


@dataclass(frozen=True)
class KindOfGpu:
    """A row of kinds.csv with what the other tables say of its first board."""

    kind: Kind
    board: Gpu
    published: Published
    probes: tuple[Probe, ...]

    @classmethod
    def of(cls, kind: Kind, published: Published, probes: Sequence[Probe]) -> "KindOfGpu":
        """Raises KeyError where gpus.csv has no such board."""
        board = published.gpu(kind.boards[0])
        if board is None:
            raise KeyError(f"{kind.boards[0]} of kinds.csv has no row in gpus.csv.")
        return cls(kind, board, published, tuple(probes))

    @property
    def arch(self) -> Arch:
        return self.board.arch


def figures(name: str, gpu: KindOfGpu, facts: Iterable[Fact]) -> Iterator[Evidence]:
    """Every figure among `facts` that speaks of the constant called `name` on this kind of GPU."""
    rules = [rule for rule in gpu.published.quantities if rule.constant == name and rule.scope != "bound"]
    for fact in facts:
        for rule in rules:
            if rule.quantity == fact.quantity and (found := _figure(fact, rule, gpu)) is not None:
                yield found


def usable(gpu: KindOfGpu) -> tuple[list[Fact], list[str]]:
    """The facts that may speak of this architecture, and a sentence for each that physics refuses."""
    facts, refused = [], []
    for fact in gpu.published.facts:
        board = gpu.published.gpu(fact.gpu)
        if board is None or not fact.trusted or board.compute_capability != gpu.board.compute_capability:
            continue
        why = reasons(fact, gpu.published, gpu.probes)
        if why:
            refused.append(f"{fact.gpu}, {fact.quantity} = {fact.value:g} ({fact.source}): {' '.join(why)}")
        else:
            facts.append(fact)
    return [*facts, *documented(gpu.published), *_banks(gpu.published)], refused


def won(every: Iterable[Evidence], constant: str) -> Won | None:
    """The winner; None where there is no figure."""
    ranked = sorted(every, key=lambda each: (each.rank, each.value, each.sources))
    near = [each for each in ranked if each.rank == ranked[0].rank]
    if not near:
        return None
    values = [each.value for each in near]
    value = statistics.median_low(values) if constant.endswith(LATENCIES) else max(values)
    best = next(each for each in near if each.value == value)
    sources = dict.fromkeys((*best.sources, *(source for each in near for source in each.sources)))
    return Won(best, min(values), max(values), len(near), tuple(sources))


def _figure(fact: Fact, rule: Quantity, gpu: KindOfGpu) -> Evidence | None:
    if rule.needs and rule.needs not in fact.flags and rule.needs not in fact.conditions:
        return None
    others = OTHER_METHOD.intersection(fact.flags) - {rule.needs}
    nearness = _nearness(fact.gpu, rule, gpu)
    value = converted(fact, rule, gpu.published)
    if nearness is None or value is None or others - {LONGER_CHAIN}:
        return None
    method = Method.LONGER if others else Method.OURS if rule.compared else Method.OTHER
    return Evidence(value, fact.unit, nearness, method, fact.gpu, fact.quantity, (fact.source,))


def _nearness(name: str, rule: Quantity, gpu: KindOfGpu) -> Nearness | None:
    major, minor = gpu.arch.compute_capability
    if name in (f"compute capability {major}.{minor}", f"compute capability {major}.x"):
        return Nearness.DOCUMENT
    board = gpu.published.gpu(name)
    if board is None or ("_flops_per_" in rule.constant and board.line != gpu.board.line):
        return None  # a GeForce has half the tensor rate of its SM elsewhere
    anywhere = rule.scope == "chip" or rule.constant.endswith("_per_clk_sm")
    if name in gpu.kind.boards:
        return Nearness.OWN if anywhere or board.spec == gpu.board.spec else Nearness.OTHER_BOARD
    if not anywhere or (board.chip != gpu.board.chip and rule.constant.startswith(OF_THE_CHIP)):
        return None
    return Nearness.ARCHITECTURE


def _banks(published: Published) -> Iterator[Fact]:
    for limit in published.limits:
        if limit.quantity == "smem_banks":
            yield Fact(
                gpu=f"compute capability {limit.compute_capability}",
                quantity="documented_smem_banks",
                unit="banks",
                source=limit.source,
                confidence=limit.confidence,
                value=float(limit.value),
                locator=limit.locator,
            )
