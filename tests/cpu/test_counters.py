"""Which launches share a tile counter: on made-up devices, whose streams are destroyed and whose handles come back."""

import threading
from collections.abc import Hashable
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attention.kernels.launch import counters as counting
from attention.kernels.launch import driver
from attention.kernels.launch.counters import CHUNK_BYTES, PAIR_BYTES, PER_THREAD, Counters, _counters, counters
from tests.elsewhere import on_threads


class Memory:
    """A device's memory, which is handed out and never taken back."""

    def __init__(self) -> None:
        self.given: list[tuple[int, int]] = []

    def zeroed(self, size: int) -> int:
        begin = self.given[-1][0] + self.given[-1][1] + 256 if self.given else 1 << 20
        self.given.append((begin, size))
        return begin

    def holds(self, address: int) -> bool:
        return any(begin <= address <= begin + size - PAIR_BYTES for begin, size in self.given)


POOLED = (0, 64, 128)  # handles of streams that torch keeps
EXTERNAL = (256, 320)  # handles that streams from elsewhere have, one after another

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("launch"), st.sampled_from(POOLED + EXTERNAL)),
        st.tuples(st.just("capture"), st.sampled_from(POOLED)),
        st.tuples(st.just("replay"), st.integers(0, 5)),
        st.tuples(st.just("recycle"), st.sampled_from(EXTERNAL)),
    ),
    max_size=40,
)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(steps=STEPS)
def test_no_two_launches_that_may_run_together_share_a_pair(steps):
    """Nothing ever finishes here: a launch may run beside every other one that its stream or graph does not order."""
    memory, lives = Memory(), dict.fromkeys(EXTERNAL, 0)

    def identity(handle: int) -> Hashable | None:
        return None if handle in POOLED else (handle, lives[handle])

    found = Counters(memory.zeroed, identity)
    owners: dict[int, Any] = {}
    graphs: list[int] = []
    for what, which in steps:
        if what == "recycle":  # destroyed while its kernel runs, and the handle comes back
            lives[which] += 1
        elif what == "launch":
            address = found.address(which, capturing=False)
            assert owners.setdefault(address, (which, lives.get(which))) == (which, lives.get(which))
        elif what == "capture":
            graphs.append(found.address(which, capturing=True))
            assert owners.setdefault(graphs[-1], len(graphs)) == len(graphs)
        elif which < len(graphs):
            assert owners[graphs[which]] == which + 1
    assert all(memory.holds(address) for address in owners)
    assert all(abs(one - other) >= PAIR_BYTES for one in owners for other in owners if one != other)


def test_launches_that_follow_one_another_share_a_pair():
    found = Counters(Memory().zeroed, lambda handle: None if handle in POOLED else handle)
    for handle in POOLED + EXTERNAL:
        assert len({found.address(handle, capturing=False) for _ in range(3)}) == 1


def test_captured_launches_have_no_limit():
    memory = Memory()
    found = Counters(memory.zeroed, lambda _: None)
    first = found.address(0, capturing=False)
    captured = {found.address(0, capturing=True) for _ in range(3 * CHUNK_BYTES // PAIR_BYTES)}
    assert len(captured) == 3 * CHUNK_BYTES // PAIR_BYTES and first not in captured
    assert found.address(0, capturing=False) == first
    assert [size for _, size in memory.given] == [CHUNK_BYTES] * 4
    assert found.chunks == [begin for begin, _ in memory.given]


def test_threads_that_ask_at_once_get_pairs_of_their_own():
    found = Counters(Memory().zeroed, lambda handle: handle)

    def ask() -> list[tuple[Hashable, int]]:
        shared = [(handle, found.address(handle, capturing=False)) for handle in range(200)]
        return shared + [((threading.get_ident(), at), found.address(0, capturing=True)) for at in range(200)]

    results = [each for thread in on_threads(4, ask) for each in thread]
    assert len(set(results)) == len({address for _, address in results}) == 200 + 4 * 200


@pytest.fixture
def on_streams(monkeypatch: pytest.MonkeyPatch) -> dict[int, int]:
    """Torch's numbers of the current stream by raw handle, and the driver's ids, of a device without a GPU."""
    numbers = {0: 0, 64: 3, 256: 256, PER_THREAD: PER_THREAD}
    current = SimpleNamespace(handle=0)

    class Spied(dict[int, int]):
        def __getitem__(self, handle: int) -> int:
            current.handle = handle
            return super().__getitem__(handle)

    memory = Memory()
    monkeypatch.setattr(driver, "zeroed", memory.zeroed)
    monkeypatch.setattr(driver, "stream_id", lambda handle: 1000 + handle)
    monkeypatch.setattr(torch._C, "_cuda_getCurrentStream", lambda _: (numbers[current.handle], 0, 1), raising=False)
    _counters.cache_clear()
    return Spied({handle: handle for handle in numbers})


def test_the_drivers_id_tells_streams_from_elsewhere_apart(on_streams, monkeypatch):
    found = counters(0)
    assert found.address(on_streams[0], capturing=False) == found.address(on_streams[0], capturing=False)
    before = found.address(on_streams[256], capturing=False)
    pooled = found.address(on_streams[64], capturing=False)
    monkeypatch.setattr(driver, "stream_id", lambda handle: 2000 + handle)  # another stream, with the same handle
    assert found.address(on_streams[256], capturing=False) != before
    assert found.address(on_streams[64], capturing=False) == pooled  # which is not asked for again


def test_sets_of_another_size_lie_elsewhere_and_do_not_overlap(on_streams):
    pairs, many = counters(0), counters(0, 1024)
    taken = [(pairs.address(on_streams[handle], capturing=False), 8) for handle in (0, 64)]
    taken += [
        (many.address(on_streams[handle], capturing=capturing), 4096) for handle in (0, 64) for capturing in (0, 1)
    ]
    ends = sorted((begin, begin + size) for begin, size in taken)
    assert len(ends) == 6 and all(end <= begin for (_, end), (begin, _) in pairwise(ends))
    assert many.address(on_streams[0], capturing=False) == taken[2][0]
    assert counters(0) is counters(0, 2) is pairs


def test_the_per_thread_stream_is_another_in_every_thread(on_streams):
    """Threads one after another, so that numbers of threads come back."""
    found, addresses = counters(0), []

    def ask() -> None:
        addresses.append({found.address(on_streams[PER_THREAD], capturing=False) for _ in range(3)})

    for _ in range(5):
        thread = threading.Thread(target=ask)
        thread.start()
        thread.join(30)
    ask()
    assert all(len(each) == 1 for each in addresses) and len(set.union(*addresses)) == 6


class FakeDriver:
    """The driver's calls behind `zeroed`, in the order of their coming; the first allocations may fail."""

    CUresult = SimpleNamespace(CUDA_ERROR_OUT_OF_MEMORY=2, CUDA_ERROR_INVALID_CONTEXT=201)
    CUstreamCaptureMode = SimpleNamespace(CU_STREAM_CAPTURE_MODE_RELAXED="relaxed")
    CUstream_flags = SimpleNamespace(CU_STREAM_NON_BLOCKING=1)

    def __init__(self, failures: int = 0) -> None:
        self.calls: list[str] = []
        self.mode = "global"
        self.failures = failures

    def cuThreadExchangeStreamCaptureMode(self, mode: str) -> tuple[int, str]:
        self.mode, before = mode, self.mode
        return 0, before

    def cuMemAlloc(self, size: int) -> tuple[int, int]:
        assert self.mode == "relaxed" and size == 64
        self.calls.append("allocate")
        self.failures -= 1
        return (2, 0) if self.failures >= 0 else (0, 4096)

    def cuStreamCreate(self, flags: int) -> tuple[int, int]:
        assert flags == 1
        return 0, 77

    def cuMemsetD8Async(self, address: int, value: int, size: int, stream: int) -> tuple[int]:
        assert (address, value, size, stream) == (4096, 0, 64, 77)
        self.calls.append("zero")
        return (0,)

    def cuStreamSynchronize(self, stream: int) -> tuple[int]:
        self.calls.append("wait")
        return (0,)

    def cuStreamDestroy(self, stream: int) -> tuple[int]:
        return (0,)

    def cuGetErrorName(self, status: int) -> tuple[int, bytes]:
        return 0, b"CUDA_ERROR_OUT_OF_MEMORY"


@pytest.mark.parametrize("failures", [0, 1, 2])
@pytest.mark.parametrize("capturing", [False, True])
def test_memory_is_zero_before_anyone_counts_and_captures_go_on(failures, capturing, monkeypatch):
    fake = FakeDriver(failures)
    monkeypatch.setattr(driver, "bindings", lambda: fake)
    monkeypatch.setattr(driver, "make_current", lambda: None)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: capturing)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "a GPU")
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: fake.calls.append("empty"))
    if failures == 0:
        assert driver.zeroed(64) == 4096 and fake.calls == ["allocate", "zero", "wait"]
    elif failures == 1 and not capturing:
        assert driver.zeroed(64) == 4096 and fake.calls == ["allocate", "empty", "allocate", "zero", "wait"]
    else:
        with pytest.raises(driver.LaunchError, match="a GPU could not give 64 bytes for tile counters"):
            driver.zeroed(64)
    assert fake.mode == "global"


def test_a_pair_is_two_ints():
    assert PAIR_BYTES == 2 * 4 and CHUNK_BYTES % PAIR_BYTES == 0 and counting.PER_THREAD == 2
