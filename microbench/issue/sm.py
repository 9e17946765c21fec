"""The warps of one SM through a path of instructions: who issues when.

Each of four schedulers issues one instruction a clock, of the warp that could go first (of equals, the one that has
waited longest). A warp goes on after its stall count, when the scoreboards that it waits for have fallen, and when the
unit is free; results of the special-function lanes, of shared memory and of L2 come back in turn. Queues before these
have no end, instructions are always at hand, and registers have no banks: where one of these binds, an SM is slower.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from microbench.issue.pipes import SCHEDULERS, Use, use_of
from microbench.issue.rates import Rates
from microbench.sass.instruction import Instruction

TRIPS, WARM_UP = 6, 2
# An instruction that issues beside a tensor instruction takes a clock of the tensor core from it. Nobody knows why: the
# ports of the registers would be a reason, but a product holds its tensor core for as long with half as many registers
# of sums, or with B in A's (data/experiments, mma_sync_cycles). It is the one rule here that timings chose: with it all
# 39 tiles of an H100's ladder come within 15 % of what was measured, without it 28 (4096 keys, no mask;
# tests/compile/test_estimate.py). The estimate is judged by an H200 (attention/estimate/held.py).
OPERAND_CLOCKS = 1.0

Unit = Literal["issue", "tensor", "fp32", "integer", "special", "port", "L2"]
UNITS: tuple[Unit, ...] = get_args(Unit)
_OWN = ("tensor", "fp32", "integer")  # a scheduler's units that an instruction waits for before it issues
_SCOREBOARDS = 6


@dataclass(frozen=True)
class Taken:
    """Cycles of a trip for which a unit was taken."""

    unit: Unit
    cycles: float


@dataclass(frozen=True)
class Pace:
    """Cycles of one trip through a loop, with all warps under way, and how long each unit was taken meanwhile.

    Of `taken`, issue slots, tensor core and lanes are one scheduler's, the port is the SM's, and L2 its share of it.
    """

    cycles: float
    taken: tuple[Taken, ...]


@dataclass(frozen=True, slots=True)
class _Step:
    use: Use
    stall: int
    waits: tuple[int, ...]
    raises: int | None  # the scoreboard that falls with the result
    reads: int | None  # the one that falls when operands have been read
    copies: bool
    gathers: bool
    meets: bool


@dataclass(slots=True)
class _Warp:
    block: int
    ready: float = 0.0
    at: int = 0
    trip: int = 0
    blocked: bool = False
    last: float = -1.0
    copied: float = 0.0
    boards: list[float] = field(default_factory=lambda: [0.0] * _SCOREBOARDS)
    ends: list[float] = field(default_factory=list)


@dataclass(slots=True)
class _Scheduler:
    warps: list[_Warp]
    free: float = 0.0
    units: dict[str, float] = field(default_factory=lambda: dict.fromkeys((*_OWN, "special", "none", "port"), 0.0))
    next_time: float = 0.0
    next_warp: _Warp | None = None


def pace(path: Sequence[Instruction], rates: Rates, warps: int, blocks: int) -> Pace:
    """One trip of a loop in the long run, where `blocks` of `warps` warps each go round."""
    sm = _Sm(path, rates, warps, blocks, rates.l2_cycles)
    sm.run(TRIPS)
    trips = [(warp.ends[-1] - warp.ends[WARM_UP - 1]) / (TRIPS - WARM_UP) for warp in sm.warps]
    return Pace(sum(trips) / len(trips), tuple(Taken(unit, sm.busy[unit] / TRIPS) for unit in UNITS))


def passage(path: Sequence[Instruction], rates: Rates, warps: int, memory_cycles: float) -> float:
    """Cycles of one block alone, from its first issue until the last result of a path that is passed once."""
    sm = _Sm(path, rates, warps, 1, memory_cycles)
    sm.run(1)
    return max(max(warp.ready, *warp.boards) for warp in sm.warps)


class _Sm:
    def __init__(
        self, path: Sequence[Instruction], rates: Rates, warps: int, blocks: int, memory_cycles: float
    ) -> None:
        self.steps = [_step(each, rates, memory_cycles) for each in path]
        self.rates, self.warps_per_block = rates, warps
        self.warps = [_Warp(block) for block in range(blocks) for _ in range(warps)]
        dealt = [at % warps % SCHEDULERS for at in range(len(self.warps))]
        self.schedulers = [
            _Scheduler([warp for warp, to in zip(self.warps, dealt, strict=True) if to == number])
            for number in range(SCHEDULERS)
        ]
        self.port_free = self.l2_free = 0.0
        self.arrived: list[list[_Warp]] = [[] for _ in range(blocks)]
        self.busy: dict[str, float] = dict.fromkeys(UNITS, 0.0)

    def run(self, trips: int) -> None:
        """Every warp through the path this often."""
        for scheduler in self.schedulers:
            self._look(scheduler, trips)
        while waiting := [each for each in self.schedulers if each.next_warp is not None]:
            scheduler = min(waiting, key=lambda each: each.next_time)
            if self._issue(scheduler):
                for each in self.schedulers:
                    self._look(each, trips)
            else:
                self._look(scheduler, trips)

    def _look(self, scheduler: _Scheduler, trips: int) -> None:
        """Find who issues next, and when."""
        scheduler.next_warp = None
        for warp in scheduler.warps:
            if warp.blocked or warp.trip == trips:
                continue
            step = self.steps[warp.at]
            time = max(warp.ready, scheduler.free)
            for board in step.waits:
                time = max(time, warp.boards[board])
            if step.use.pipe in _OWN:
                time = max(time, scheduler.units[step.use.pipe])
            best: _Warp | None = scheduler.next_warp
            if best is None or (time, warp.last) < (scheduler.next_time, best.last):
                scheduler.next_time, scheduler.next_warp = time, warp

    def _issue(self, scheduler: _Scheduler) -> bool:
        """Issue one instruction; whether a barrier opened by it, so that other warps may go on."""
        warp, time = scheduler.next_warp, scheduler.next_time
        assert warp is not None
        step = self.steps[warp.at]
        use, units = step.use, scheduler.units
        start = self._begin(use, units, time)
        scheduler.free, warp.last, warp.ready = time + 1, time, time + step.stall
        done = start + use.latency
        if use.memory_bytes:
            taken = use.memory_bytes / self.rates.l2_bytes_per_clk
            self.l2_free = max(start, self.l2_free) + taken
            self.busy["L2"] += taken
            done = self.l2_free + use.latency
        if step.copies:
            warp.copied = max(warp.copied, done)
        if step.gathers:
            done = warp.copied
        if use.pipe not in ("tensor", "none") and units["tensor"] > time:
            units["tensor"] += OPERAND_CLOCKS
        if step.raises is not None:
            warp.boards[step.raises] = max(warp.boards[step.raises], done)
        if step.reads is not None:
            warp.boards[step.reads] = max(warp.boards[step.reads], start + use.cycles)
        warp.at += 1
        if warp.at == len(self.steps):
            warp.at, warp.trip = 0, warp.trip + 1
            warp.ends.append(time)
        return step.meets and self._meet(warp, time)

    def _begin(self, use: Use, units: dict[str, float], time: float) -> float:
        """Take the unit; when the instruction's turn there comes."""
        self.busy["issue"] += 1 / SCHEDULERS
        if use.pipe == "none":
            return time
        if use.pipe == "port":
            start = max(time, self.port_free)
            self.port_free = start + use.cycles
            self.busy["port"] += use.cycles
            return start
        start = max(time, units[use.pipe])
        units[use.pipe] = start + use.cycles
        self.busy[use.pipe] += use.cycles / SCHEDULERS
        return start

    def _meet(self, warp: _Warp, time: float) -> bool:
        here = self.arrived[warp.block]
        here.append(warp)
        warp.blocked = True
        if len(here) < self.warps_per_block:
            return False
        for each in here:
            each.blocked = False
            each.ready = max(each.ready, time + self.rates.barrier_cycles)
        here.clear()
        return True


def _step(instruction: Instruction, rates: Rates, memory_cycles: float) -> _Step:
    control, head = instruction.control, instruction.head
    return _Step(
        use_of(instruction, rates, memory_cycles),
        max(control.stall, 1),
        tuple(sorted(instruction.waits)),
        control.write_barrier,
        control.read_barrier,
        head == "LDGSTS",
        head == "LDGDEPBAR",
        head == "BAR",
    )
