"""A kernel's mbarriers as a graph of roles: what each warp waits for and arrives at, taken from an emulated run.

The run says who does what in which order; here every other order of the same programs is tried. A program's steps are
waits, arrivals, and what it starts: products, whose commits arrive in each block in the order of their issue, and
copies, which arrive in any.
"""

import ctypes
import random
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from tests.emulated.forward_launch import Kernel
from tests.emulated.forward_planted import inlined

MOST = 1 << 20
TRACED = (
    r"ptx::(mbarrier_init|mbarrier_wait|mbarrier_arrive|mbarrier_arrive_expect|mbarrier_arrive_remote|tcgen05_commit"
    r"|tcgen05_commit_multicast<2>)\("
)
WINDOW = 24  # the bit of a barrier's address from which on it says whose block it lies in
SHIM = """
static unsigned events[MOST][4];
static unsigned count;
extern "C" unsigned traced(unsigned* to) {
  for (unsigned i = 0; i < count; ++i)
    for (unsigned j = 0; j < 4; ++j) to[4 * i + j] = events[i][j];
  const unsigned found = count;
  count = 0;
  return found;
}
namespace trace {
inline void note(unsigned kind, unsigned bar, unsigned value) {
  if (kind == 1 && threadIdx.x % 32) return;
  unsigned* to = events[count++];
  to[0] = blockIdx.x * 32 + threadIdx.x / 32, to[1] = kind, to[2] = bar, to[3] = value;
}
inline void mbarrier_init(unsigned bar, unsigned n) { note(0, bar, n); ptx::mbarrier_init(bar, n); }
inline void mbarrier_wait(unsigned bar, unsigned parity) { note(1, bar, parity); ptx::mbarrier_wait(bar, parity); }
inline void mbarrier_arrive(unsigned bar) { note(2, bar, 0); ptx::mbarrier_arrive(bar); }
inline void mbarrier_arrive_expect(unsigned bar, unsigned bytes) {
  note(3, bar, bytes);
  ptx::mbarrier_arrive_expect(bar, bytes);
}
inline void mbarrier_arrive_remote(unsigned bar) { note(2, bar, 0); ptx::mbarrier_arrive_remote(bar); }
inline void tcgen05_commit(unsigned bar) { note(4, bar, 0); ptx::tcgen05_commit(bar); }
template <int Group>
void tcgen05_commit_multicast(unsigned bar, unsigned short ranks) {
  for (unsigned rank = 0; rank < 2; ++rank)
    if (ranks >> rank & 1) note(4, (bar & (1u << WINDOW) - 1) | rank << WINDOW, 0);
  ptx::tcgen05_commit_multicast<Group>(bar, ranks);
}
}
"""
WAIT, ARRIVE, LOAD, COMMIT = 1, 2, 3, 4
Counts = tuple[int, ...]
# How far each role is, commits and copies under way by barrier, and what has arrived at each barrier.
State = tuple[Counts, Counts, Counts, Counts]


@dataclass(frozen=True)
class Step:
    """One step of a role: its kind, the barrier, and of a wait the parity."""

    kind: int
    bar: int
    parity: int


@dataclass(frozen=True)
class Graph:
    """Programs by role, of a block or a pair, and what each barrier counts; `weights`: warps that a role stands for."""

    programs: tuple[tuple[Step, ...], ...]
    weights: tuple[int, ...]
    counts: dict[int, int]

    @property
    def awaited(self) -> set[int]:
        """Barriers that some role really waits at: for a phase that arrivals must end, not the one before the first."""
        return {
            step.bar
            for program in self.programs
            for step, phases in zip(program, _phases(program), strict=True)
            if step.kind == WAIT and phases > 0
        }

    @property
    def sole(self) -> frozenset[int]:
        """Barriers at which one role alone arrives, and in one way."""
        ways: dict[int, set[tuple[int, int]]] = {}
        for role, program in enumerate(self.programs):
            for step in program:
                if step.kind != WAIT:
                    ways.setdefault(step.bar, set()).add((role, step.kind))
        return frozenset(bar for bar, of in ways.items() if len(of) == 1)


def traced(kernel: Kernel, file: str) -> Kernel:
    """The kernel, which writes down what it does to mbarriers."""
    text = re.sub(TRACED, r"trace::\1(", inlined(file, kernel.include))
    shim = '#include "ptx/mbarrier.cuh"\n#include "ptx/tcgen05.cuh"\n' + SHIM.replace("MOST", str(MOST))
    return replace(kernel, source=shim.replace("WINDOW", str(WINDOW)) + text)


def graph_of(kernel: Kernel, *, apart: bool = False) -> Graph:
    """Of the last run. Warps of the same program are one role of as many arrivals, unless they are to stand apart."""
    words = (ctypes.c_uint * (4 * MOST))()
    events = int(kernel.library().traced(words))
    counts: dict[int, int] = {}
    programs: dict[int, list[Step]] = {}
    for at in range(0, 4 * events, 4):
        warp, kind, bar, value = words[at : at + 4]
        if kind == 0:
            counts[bar] = value
        else:
            programs.setdefault(warp, []).append(Step(kind, bar, value if kind == WAIT else 0))
    if apart:
        return Graph(tuple(map(tuple, programs.values())), (1,) * len(programs), counts)
    roles: dict[tuple[Step, ...], int] = {}
    for program in programs.values():
        roles[tuple(program)] = roles.get(tuple(program), 0) + 1
    return Graph(tuple(roles), tuple(roles.values()), counts)


def between_blocks(graph: Graph) -> Graph:
    """What is left of a pair's graph without barriers that nobody uses from the other block.

    It allows more orders than the whole, which other barriers restrict: what holds in all of these holds there.
    """
    homes = [next(step.bar >> WINDOW for step in program if step.kind == WAIT) for program in graph.programs]
    offsets = {
        _offset(step)
        for program, home in zip(graph.programs, homes, strict=True)
        for step in program
        if step.bar >> WINDOW != home
    }
    left = [tuple(step for step in program if _offset(step) in offsets) for program in graph.programs]
    used = {step.bar for program in left for step in program}
    roles = [(program, weight) for program, weight in zip(left, graph.weights, strict=True) if program]
    counts = {bar: count for bar, count in graph.counts.items() if bar in used}
    return Graph(tuple(program for program, _ in roles), tuple(weight for _, weight in roles), counts)


def _offset(step: Step) -> int:
    return step.bar & ((1 << WINDOW) - 1)


class Stuck(AssertionError):
    """Some order of steps ends in a deadlock, or breaks a barrier's count."""


def explored(graph: Graph, most: int = 10**7, *, reduced: bool = False) -> int:
    """How many states all orders of steps reach. Raises Stuck.

    `reduced`: an arrival at a barrier where nobody else arrives comes before all else. It loses no order that goes
    wrong: it enables waits and disables none, save where a wait comes too late, which is found; and what else arrives
    there comes from the same role behind it.

    A state is how far each role has come, how many commits are done, and which copies have landed: what barriers
    hold follows from it. Wrong is a state from which nothing goes on before all roles are through; an arrival beyond
    a count; and a wait whose phase is over and gone, by which its parity says the opposite.
    """
    roles = range(len(graph.programs))
    moves_of, start = _machine(graph, graph.sole if reduced else frozenset())
    seen, queue = {start}, deque([start])
    while queue:
        at = queue.popleft()
        moves = list(moves_of(at))
        if not moves and any(at[0][i] < len(graph.programs[i]) for i in roles):
            raise Stuck(f"a deadlock at {at[0]}")
        for state in moves:
            if state not in seen:
                seen.add(state)
                queue.append(state)
        if len(seen) > most:
            raise Stuck(f"more than {most} states")
    return len(seen)


def walked(graph: Graph, rng: random.Random) -> None:
    """One order of steps, drawn at random. Raises Stuck."""
    moves_of, at = _machine(graph)
    while moves := list(moves_of(at)):
        at = rng.choice(moves)
    if any(done < len(program) for done, program in zip(at[0], graph.programs, strict=True)):
        raise Stuck(f"a deadlock at {at[0]}")


def _machine(graph: Graph, sole: frozenset[int] = frozenset()) -> tuple[Callable[[State], Iterator[State]], State]:
    """What follows a state, and the first one. Arrivals at `sole` barriers come first."""
    assert sum(any(step.kind == COMMIT for step in program) for program in graph.programs) <= 1  # one order of commits
    bars = sorted(graph.counts)
    place, needs = {bar: i for i, bar in enumerate(bars)}, [graph.counts[bar] for bar in bars]
    wants = [_phases(program) for program in graph.programs]  # how many phases of its barrier a wait wants over
    start: State = ((0,) * len(graph.programs), (), (), (0,) * len(bars))
    return lambda state: _moves(graph, sole, wants, place, needs, *state), start


def _phases(program: Iterable[Step]) -> list[int]:
    """By step: how many phases of its barrier a wait wants over. Waits of one role go up by one phase each."""
    next_phase: dict[int, int] = {}
    wanted = []
    for step in program:
        phase = 0
        if step.kind == WAIT:
            # A first wait for parity 1 is for the phase before the first, which is over.
            phase = next_phase.get(step.bar, -1 if step.parity else 0)
            if (phase & 1) != step.parity:
                raise Stuck(f"a wait on barrier {step.bar} for parity {step.parity} leaves out phase {phase}")
            next_phase[step.bar] = phase + 1
        wanted.append(phase + 1)
    return wanted


def _moves(
    graph: Graph,
    sole: frozenset[int],
    wants: list[list[int]],
    place: dict[int, int],
    needs: list[int],
    at: Counts,
    commits: Counts,
    copies: Counts,
    arrived: Counts,
) -> Iterator[State]:
    def with_arrival(bar: int, weight: int) -> tuple[int, ...]:
        i = place[bar]
        if arrived[i] % needs[i] + weight > needs[i]:
            raise Stuck(f"arrivals beyond the {needs[i]} of barrier {bar}")
        return (*arrived[:i], arrived[i] + weight, *arrived[i + 1 :])

    for role, program in enumerate(graph.programs):
        if at[role] < len(program) and (step := program[at[role]]).kind in (COMMIT, LOAD):
            # What is started arrives at any time after: to start it before all else loses no order.
            then = (*at[:role], at[role] + 1, *at[role + 1 :])
            if step.kind == COMMIT:
                yield then, (*commits, step.bar), copies, arrived
            else:
                yield then, commits, tuple(sorted((*copies, step.bar))), arrived
            return
    firsts = {bar >> WINDOW: i for i, bar in reversed(list(enumerate(commits)))}  # of each block, where it stands

    def arrivals() -> Iterator[tuple[int, State]]:
        for i in firsts.values():
            yield commits[i], (at, (*commits[:i], *commits[i + 1 :]), copies, with_arrival(commits[i], 1))
        for i, bar in enumerate(copies):
            yield bar, (at, commits, (*copies[:i], *copies[i + 1 :]), with_arrival(bar, 1))
        for role, program in enumerate(graph.programs):
            if at[role] < len(program) and (step := program[at[role]]).kind == ARRIVE:
                then = (*at[:role], at[role] + 1, *at[role + 1 :])
                yield step.bar, (then, commits, copies, with_arrival(step.bar, graph.weights[role]))

    for bar, state in arrivals():
        if bar in sole:
            yield state
            return
    yield from (state for _, state in arrivals())
    for role, program in enumerate(graph.programs):
        position = at[role]
        if position == len(program):
            continue
        step = program[position]
        if step.kind == WAIT:
            over = arrived[place[step.bar]] // needs[place[step.bar]]
            wanted = wants[role][position]
            if over > wanted:
                raise Stuck(f"phase {wanted} of barrier {step.bar} is over twice before a wait saw it")
            if over == wanted:
                yield (*at[:role], position + 1, *at[role + 1 :]), commits, copies, arrived
