"""The warps of the Blackwell forward over its tiles: what each waits for and arrives at, from a run on the emulator.

The run gives order and dependence: every wait, arrival, commit and product of every warp, by the kernel's own text.
The emulator has no clock, so that lengths come from elsewhere: `replayed` (replay.py) takes them from published rates.
"""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch

from attention.kernels.launch.machine import standing_in
from attention.kernels.sm100a.forward.tensor_memory.arguments import KERNEL, Shape, shape_of
from attention.kernels.sm100a.forward.tensor_memory.launch import forward
from attention.problem import AttentionProblem
from attention.variant import Config, CudaBuild
from attention.verify.emulated import Emulated, headers_of
from microbench.emulator import EmulatedDevice, toolchain
from microbench.emulator.device import EmulatedKernel

MOST = 1 << 18
BARRIERS = (
    "q_full", "q_empty", "kv_full", "kv_empty", "s_full", "factor_full", "ready", "o_full", "sum_full", "sum_empty",
    "piece_full", "piece_empty", "tile_full", "tile_empty",
)  # fmt: skip
KINDS = ("init", "wait", "arrive", "load", "commit", "scores", "values")
Kind = Literal["init", "wait", "arrive", "load", "commit", "scores", "values"]
# The wrappers that are written down, by what they take: their names change behind ptx's own headers.
SHIM = """
#include "ptx/cluster.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/tcgen05.cuh"
#include "ptx/tma.cuh"
static unsigned events[MOST][5];
static unsigned count;
namespace ptx {
inline void note(unsigned kind, unsigned bar, unsigned value, unsigned blocks = 1u << cluster_rank()) {
  if (kind == 1 && threadIdx.x % 32) return;
  unsigned* to = events[count++ % MOST];
  to[0] = cluster_rank() * blockDim.x / 32 + threadIdx.x / 32;
  to[1] = kind, to[2] = bar & 0x3FFFF, to[3] = value, to[4] = blocks;
}
inline void noted_init(unsigned bar, unsigned n) { note(0, bar, n), mbarrier_init(bar, n); }
inline void noted_wait(unsigned bar, unsigned parity) { note(1, bar, parity), mbarrier_wait(bar, parity); }
inline void noted_arrive(unsigned bar) { note(2, bar, 0), mbarrier_arrive(bar); }
inline void noted_expect(unsigned bar, unsigned bytes) { note(3, bar, bytes), mbarrier_arrive_expect(bar, bytes); }
inline void noted_remote(unsigned bar) { note(2, bar, 0, 1), mbarrier_arrive_remote(bar); }
template <int G> inline void noted_multicast(unsigned bar, unsigned short ranks) {
  note(4, bar, 0, ranks), tcgen05_commit_multicast<G>(bar, ranks);
}
inline void noted_commit(unsigned bar) { note(4, bar, 0), tcgen05_commit(bar); }
template <int G, class... T> inline void noted_ss(T... t) { note(5, 0, 0), tcgen05_mma_f16_ss<G>(t...); }
template <int G, class... T> inline void noted_ts(T... t) { note(6, 0, 0), tcgen05_mma_f16_ts<G>(t...); }
}
#define mbarrier_init noted_init
#define mbarrier_wait noted_wait
#define mbarrier_arrive noted_arrive
#define mbarrier_arrive_expect noted_expect
#define mbarrier_arrive_remote noted_remote
#define tcgen05_commit_multicast noted_multicast
#define tcgen05_commit noted_commit
#define tcgen05_mma_f16_ss noted_ss
#define tcgen05_mma_f16_ts noted_ts
"""
READ = """
extern "C" unsigned read_events(unsigned* to, unsigned* bars) {
  const Rooms at(0);
  const unsigned found = count, named[] = {NAMED};
  for (unsigned i = 0; i < count; ++i)
    for (unsigned j = 0; j < 5; ++j) to[5 * i + j] = events[i][j];
  for (unsigned i = 0; i < sizeof named / sizeof *named; ++i) bars[i] = named[i];
  count = 0;
  return found;
}
"""


@dataclass(frozen=True)
class Step:
    """What a warp does: its kind, the barrier by name and number, a parity, bytes or a count, and in which blocks.

    `blocks` are bits: of a pair the issuing block is the first, and it is told by the other one's warps.
    """

    kind: Kind
    barrier: str
    index: int
    value: int
    blocks: int = 1


@dataclass(frozen=True)
class Run:
    """The steps of every warp in its own order, and what each barrier counts to, by block, name and number.

    The warps of a pair's second block are numbered on from those of the first.
    """

    shape: Shape
    warps: dict[int, tuple[Step, ...]]
    counts: dict[tuple[int, str, int], int]

    def block_of(self, warp: int) -> int:
        return warp // (self.shape.threads // 32)


@dataclass(frozen=True, eq=False)
class Noting(Emulated):
    """The emulator with one SM, or two of a pair, and the kernel's text between the shim and the reader."""

    sm_count: int = 1
    built: dict[str, Path] = field(default_factory=dict)

    def function(self, folder: Path, build: CudaBuild) -> tuple[EmulatedKernel, CudaBuild]:
        (source,) = folder.glob("*.cu")
        named = ", ".join(f"at.{name}" for name in BARRIERS)
        text = SHIM.replace("MOST", str(MOST)) + source.read_text(encoding="utf-8") + READ.replace("NAMED", named)
        given: dict[str, Any] = {"defines": build.defines, "include": headers_of(folder)}
        self.built["library"] = toolchain.build_kernel(text, source.name, build.kernel, *given.values())
        return self.device.load(text, source.name, kernel=build.kernel, **given), build


@contextmanager
def _noting(sms: int) -> Iterator[Noting]:
    machine = Noting(EmulatedDevice("lazy"), sm_count=sms)
    with standing_in("cpu", machine):
        yield machine


def run(problem: AttentionProblem, config: Config) -> Run:
    """One launch of one block, or of one pair. Raises EnvironmentLacks where there is no C++ compiler."""
    torch.manual_seed(7)
    of_queries = problem.batch, problem.heads_q, problem.seq_q, problem.head_dim
    of_keys = problem.batch, problem.heads_kv, problem.seq_kv, problem.head_dim
    query, key, value = (torch.randn(sizes).bfloat16() for sizes in (of_queries, of_keys, of_keys))
    shape = shape_of(problem, config)
    with _noting(shape.cta_group) as machine:
        forward(query, key, value, problem, config)
    words, bars = (ctypes.c_uint * (5 * MOST))(), (ctypes.c_uint * len(BARRIERS))()
    library = ctypes.PyDLL(str(machine.built["library"]))
    found = int(library.read_events(words, bars))
    assert found < MOST, f"{KERNEL} does more than is kept"
    return _read(shape, [tuple(words[i : i + 5]) for i in range(0, 5 * found, 5)], tuple(bars))


def _read(shape: Shape, events: list[tuple[int, ...]], bars: tuple[int, ...]) -> Run:
    base = min(event[2] for event in events if KINDS[event[1]] == "init") - bars[0]
    warps: dict[int, list[Step]] = {}
    counts: dict[tuple[int, str, int], int] = {}
    for warp, kind, bar, value, blocks in events:
        name, index = ("", 0) if KINDS[kind] in ("scores", "values") else _named(bar - base, bars)
        if KINDS[kind] == "init":
            counts[blocks.bit_length() - 1, name, index] = value
        else:
            step = Step(KINDS[kind], name, index, value, blocks)  # type: ignore[arg-type]
            warps.setdefault(warp, []).append(step)
    return Run(shape, {warp: tuple(steps) for warp, steps in sorted(warps.items())}, counts)


def _named(offset: int, bars: tuple[int, ...]) -> tuple[str, int]:
    """The last group of barriers that begins at or before this one, and its place there."""
    place = max(i for i, first in enumerate(bars) if first <= offset)
    return BARRIERS[place], (offset - bars[place]) // 8
