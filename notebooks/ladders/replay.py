"""A run's steps with lengths from published rates: when which unit works, and which warp waits.

Order and dependence are the run's. Three units work one thing at a time, each in the order in which it was asked:

    tensor cores    a product's FLOP by the published rate       copies    a tile's bytes by an SM's share of the L2
    exponentials    a tile's, less the polynomials, by MUFU's rate

A pair of blocks has these units twice. Its products take the tensor cores of both, as long as one's own rows take: they
begin when both are free. What else a warp does takes no time here, and a barrier answers at once: it is the least that
these rates allow.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median

from microbench.results.profile import Profile
from notebooks.ladders.pipeline import Run, Step

ROWS = 128


@dataclass(frozen=True)
class Rates:
    """Cycles of one SM: of one product instruction, of a byte of a copy, and of a tile's exponentials."""

    scores: float
    values: float
    byte: float
    exponentials: float

    @classmethod
    def of(cls, profile: Profile, run: Run) -> "Rates":
        shape, hz = run.shape, profile["sm_clock_mhz"].value * 1e6
        flops = profile["tcgen05_bf16_flops_per_clk_sm"].value
        l2 = profile["l2_bandwidth_bytes_per_s"].value / profile.sm_count / hz
        mufu = ROWS * shape.tile_keys * (32 - shape.polynomial) / 32 / profile["mufu_ex2_per_clk_sm"].value
        depth = 16
        return cls(2 * ROWS * shape.tile_keys * depth / flops, 2 * ROWS * shape.value_dim * depth / flops, 1 / l2, mufu)


def sources_of(profile: Profile) -> tuple[str, ...]:
    """Who gave the rates of Rates."""
    names = ("tcgen05_bf16_flops_per_clk_sm", "l2_bandwidth_bytes_per_s", "mufu_ex2_per_clk_sm", "sm_clock_mhz")
    return tuple(source for name in names for source in profile[name].sources or ())


@dataclass(frozen=True)
class Span:
    """From one cycle to another a lane did something: what, and for which query tile."""

    lane: str
    what: str
    query_tile: int
    start: float
    end: float
    block: int = 0


@dataclass
class _Barrier:
    """Arrivals of the phase under way, the latest of them, and when each phase was complete."""

    count: int
    arrived: int = 0
    latest: float = 0.0
    complete: list[float] = field(default_factory=lambda: [0.0])  # the phase before the first

    def arrive(self, at: float) -> None:
        self.arrived, self.latest = self.arrived + 1, max(self.latest, at)
        if self.arrived == self.count:
            self.complete.append(self.latest)
            self.arrived, self.latest = 0, 0.0


@dataclass
class _Warp:
    number: int
    block: int
    lane: str
    steps: tuple[Step, ...]
    now: float = 0.0
    done: int = 0
    phases: dict[tuple[str, int], int] = field(default_factory=dict)  # the last one waited for

    def wanted(self, step: Step) -> int:
        """The phase that a wait for this parity is for: parity 1 first asks for the one before the first."""
        key, last = (step.barrier, step.index), self.phases.get((step.barrier, step.index), -1)
        wanted = max(last, 0)
        while (wanted % 2 == 0) != (step.value == 1):
            wanted += 1
        self.phases[key] = wanted
        return wanted


def lane_of(run: Run, warp: int) -> str:
    """The role of a warp: softmax warpgroups first, then the correction's, then the issuer, the loader, the writer.

    In the second block of a pair the issuer's place has the relay.
    """
    softmax, warp_in_block = 4 * run.shape.query_tiles, warp % (run.shape.threads // 32)
    if warp_in_block < softmax:
        return f"softmax {warp_in_block // 4}"
    issuer = "relay" if run.block_of(warp) else "issuer"
    names = ("correction",) * 4 + (issuer, "loader", "writer", "cleaner")
    return names[warp_in_block - softmax]


def period(spans: Sequence[Span]) -> float:
    """Cycles from one tile of keys to the next, in the middle of the run: Q K of the first query tile."""
    starts = sorted(span.start for span in spans if (span.what, span.query_tile, span.block) == ("scores", 0, 0))
    gaps = [later - sooner for sooner, later in pairwise(starts)]
    return median(gaps[len(gaps) // 4 : -len(gaps) // 4])


def busy(spans: Sequence[Span], lane: str, start: float, end: float) -> float:
    """The share of these cycles in which a unit works, of a pair that of the first block."""
    mine = (min(span.end, end) - max(span.start, start) for span in spans if (span.lane, span.block) == (lane, 0))
    return sum(max(0.0, each) for each in mine) / (end - start)


def replayed(run: Run, rates: Rates) -> tuple[Span, ...]:
    """What units did and which warps waited, by cycle."""
    return _Replay(run, rates).spans()


class _Replay:
    def __init__(self, run: Run, rates: Rates) -> None:
        self.run, self.rates = run, rates
        self.barriers = {key: _Barrier(count) for key, count in run.counts.items()}
        self.warps = [
            _Warp(number, run.block_of(number), lane_of(run, number), steps) for number, steps in run.warps.items()
        ]
        units = ("tensor cores", "exponentials", "copies")
        self.free = {(block, unit): 0.0 for block in range(run.shape.cta_group) for unit in units}
        self.made: list[Span] = []
        self.shared: dict[tuple[int, str, int], float] = {}  # when the exponentials of a warpgroup's step end
        self.products: list[tuple[float, str, float]] = []  # of the issuer, not committed: when asked, what, how long

    def spans(self) -> tuple[Span, ...]:
        """Always the warp that is furthest behind goes on, so that units are asked in the order of time."""
        left = [warp for warp in self.warps if warp.steps]
        while left:
            ready = [(moment, warp.number, warp) for warp in left if (moment := self._when(warp)) is not None]
            assert ready, "the run's own order ended, and so must this one"
            moment, _, warp = min(ready)
            self._step(warp, moment)
            left = [each for each in left if each.done < len(each.steps)]
        return tuple(sorted(self.made, key=lambda span: span.start))

    def _when(self, warp: _Warp) -> float | None:
        """When its next step happens; None while a phase is open."""
        step = warp.steps[warp.done]
        if step.kind != "wait":
            return warp.now
        kept = dict(warp.phases)
        wanted, complete = warp.wanted(step), self.barriers[warp.block, step.barrier, step.index].complete
        warp.phases = kept
        return max(warp.now, complete[wanted]) if wanted < len(complete) else None

    def _step(self, warp: _Warp, moment: float) -> None:
        step = warp.steps[warp.done]
        warp.done += 1
        if step.kind == "wait":
            warp.wanted(step)
            if warp.number % 4 == 0 or warp.lane == "loader":  # of a warpgroup one speaks for all
                self._add(warp.block, warp.lane, f"waits for {step.barrier}", step.index, warp.now, moment)
            warp.now = moment
            return
        if step.kind in ("scores", "values"):
            self.products.append((warp.now, step.kind, getattr(self.rates, step.kind)))
            return
        arrival = warp.now
        if step.kind == "load":
            cycles = step.value * self.rates.byte
            arrival = self._work((warp.block,), "copies", step.barrier, step.index, warp.now, cycles)
        elif step.kind == "commit":
            arrival = self._multiply()
        elif warp.lane.startswith("softmax") and step.barrier == "ready":
            arrival = warp.now = self._soften(warp)
        for block in range(self.run.shape.cta_group):
            if step.blocks >> block & 1:
                self.barriers[block, step.barrier, step.index].arrive(arrival)

    def _multiply(self) -> float:
        """The products since the last commit, as one span; a commit comes when all before it are through."""
        both = tuple(range(self.run.shape.cta_group))
        if self.products:
            asked, kind, _ = self.products[0]
            cycles = sum(length for *_, length in self.products)
            before = sum(span.what == kind and span.block == 0 for span in self.made)
            query_tile = before % self.run.shape.query_tiles  # they take turns
            self._work(both, "tensor cores", kind, query_tile, asked, cycles)
            self.products.clear()
        return max(self.free[block, "tensor cores"] for block in both)

    def _soften(self, warp: _Warp) -> float:
        """Four warps of a warpgroup share one tile: the first to come asks for all."""
        key = warp.block, warp.lane, sum(each.barrier == "ready" for each in warp.steps[: warp.done])
        if key not in self.shared:
            query_tile = int(warp.lane[-1])
            cycles = self.rates.exponentials
            done = self._work((warp.block,), "exponentials", warp.lane, query_tile, warp.now, cycles)
            self.shared[key] = done
            self._add(warp.block, warp.lane, "waits for MUFU", 0, warp.now, done - cycles)
            self._add(warp.block, warp.lane, "works", query_tile, done - cycles, done)
        return self.shared[key]

    def _work(
        self, blocks: tuple[int, ...], unit: str, what: str, query_tile: int, asked: float, cycles: float
    ) -> float:
        start = max(asked, *(self.free[block, unit] for block in blocks))
        for block in blocks:
            self.free[block, unit] = start + cycles
            self._add(block, unit, what, query_tile, start, start + cycles)
        return start + cycles

    def _add(self, block: int, lane: str, what: str, query_tile: int, start: float, end: float) -> None:
        if end > start:
            self.made.append(Span(lane, what, query_tile, start, end, block))
