"""Tile counters where handles of streams do not tell streams apart, and where captured launches are many."""

from typing import Any

import pytest
import torch

from attention.kernels.launch.counters import CHUNK_BYTES, PAIR_BYTES, PER_THREAD, counters
from attention.kernels.launch.driver import bindings, check, current_stream
from attention.problem import AttentionProblem
from attention.variant import by_path
from attention.verify.builds import Build, builds_of
from attention.verify.counters import counters_left
from tests.elsewhere import on_threads

# Warnings of torch itself are torch's affair.
pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("hopper"), pytest.mark.filterwarnings("default")]

VARIANT = "sm90a/forward/warp_specialised"
SLEEP = 50_000_000  # clocks: tens of milliseconds, in which launches queue up
Pair = tuple[torch.Tensor, torch.Tensor]


class Calls:
    """Calls of one kernel with the same inputs, every result of which has the same bits."""

    def __init__(self, rows: int) -> None:
        self.build: Build = next(
            each for each in builds_of(VARIANT) if each.bucket == (97, 128) and each.asked == frozenset({"CAUSAL"})
        )
        self.problem = AttentionProblem(*(2, 8, 2, rows, rows, 128), dtype=self.build.dtype, device="cuda", causal=True)
        dtype = getattr(torch, self.build.dtype)
        generator = torch.Generator("cuda").manual_seed(0)
        self.inputs = [
            torch.randn(2, heads, rows, 128, device="cuda", generator=generator).to(dtype) for heads in (8, 2, 2)
        ]
        self.expected = self()
        torch.cuda.synchronize()

    def __call__(self) -> Pair:
        out, lse = by_path(VARIANT).load()(*self.inputs, self.problem, self.build.config)
        return out, lse

    def require(self, results: list[Pair]) -> None:
        """Every result has the bits of the first call, and no counter is left."""
        torch.cuda.synchronize()
        for out, lse in results:
            assert torch.equal(out, self.expected[0]) and torch.equal(lse, self.expected[1])
        assert not counters_left(torch.device("cuda"))


def address() -> int:
    index = torch.cuda.current_device()
    return counters(index).address(current_stream(index), capturing=False)


def external(handle: int) -> Any:
    return torch.cuda.stream(torch.cuda.ExternalStream(handle))


def test_two_threads_per_thread_streams_count_apart() -> None:
    """Both have the handle 2. Results are kept: torch's allocator, too, takes them for one stream."""
    calls = Calls(777)

    def work() -> tuple[int, list[Pair]]:
        with external(PER_THREAD):
            torch.cuda._sleep(SLEEP)
            return address(), [calls() for _ in range(100)]

    (one, first), (other, second) = on_threads(2, work)
    assert one != other
    calls.require(first + second)


def test_a_destroyed_streams_handle_comes_back_and_counts_apart() -> None:
    """Each stream is destroyed while its kernel waits. Results are kept, as above."""
    calls = Calls(777)
    driver = bindings()
    results: list[Pair] = []
    found: list[tuple[int, int]] = []
    for _ in range(60):
        handle = int(check(driver.cuStreamCreate(int(driver.CUstream_flags.CU_STREAM_NON_BLOCKING)), "create one"))
        with external(handle):
            torch.cuda._sleep(SLEEP // 50)
            results.extend([calls() for _ in range(3)])
            found.append((handle, address()))
        check(driver.cuStreamDestroy(handle), "destroy one")
    calls.require(results)
    assert len({pair for _, pair in found}) == len(found)
    assert len({handle for handle, _ in found}) < len(found), "no handle came back: this showed nothing"


def test_torchs_own_streams_keep_their_pairs() -> None:
    calls = Calls(333)
    streams = [torch.cuda.Stream() for _ in range(4)]
    rounds: list[list[int]] = []
    for _ in range(2):
        rounds.append([])
        for stream in streams:
            with torch.cuda.stream(stream):
                rounds[-1].append(address())
    assert rounds[0] == rounds[1] and len(set(rounds[0])) == len(streams)
    calls.require([calls()])


def test_captured_launches_have_no_limit_in_a_process() -> None:
    """More than a chunk of counters holds, with no eager call between them: memory grows while a graph is captured."""
    calls = Calls(333)
    launches, each = CHUNK_BYTES // PAIR_BYTES + 500, 100
    before = len(counters(torch.cuda.current_device()).chunks)
    graphs: list[tuple[torch.cuda.CUDAGraph, Pair]] = []
    for _ in range(-(-launches // each)):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(each):
                result = calls()
        graphs.append((graph, result))
    assert len(counters(torch.cuda.current_device()).chunks) > before
    side = torch.cuda.Stream()
    torch.cuda.synchronize()
    for _ in range(3):  # two graphs beside one another, and eager calls beside both
        graphs[0][0].replay()
        with torch.cuda.stream(side):
            graphs[-1][0].replay()
        eager = [calls() for _ in range(20)]
    calls.require([graphs[0][1], graphs[-1][1], *eager])
