"""Memory that launches of one stream share: of torch's own streams, outside of captures, and small."""

from collections.abc import Iterator

import pytest

from attention.kernels.launch import machine
from attention.kernels.launch.machine import SCRATCH_BYTES, Gpu


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gpu]:
    """On stream `stream`; those from 256 on are not torch's."""
    memory = iter(range(1 << 20, 1 << 30, SCRATCH_BYTES))
    monkeypatch.setattr(machine.driver, "zeroed", lambda size: next(memory))
    monkeypatch.setattr(machine, "identity", lambda index, stream: stream if stream >= 256 else None)
    yield Gpu(0)


def on(monkeypatch: pytest.MonkeyPatch, stream: int, capturing: bool = False) -> None:
    monkeypatch.setattr(machine, "_stream", lambda index: stream)
    monkeypatch.setattr(machine, "_is_capturing", lambda: capturing)


def test_each_stream_has_its_own(gpu: Gpu, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for stream in (0, 64, 0, 64, 0):
        on(monkeypatch, stream)
        found.append(gpu.scratch(SCRATCH_BYTES))
    assert None not in found and found == [*found[:2], *found[:2], found[0]] and found[0] != found[1]


@pytest.mark.parametrize(
    ("stream", "capturing", "size"), [(0, True, 4), (256, False, 4), (0, False, SCRATCH_BYTES + 4)]
)
def test_other_launches_have_none(
    gpu: Gpu, monkeypatch: pytest.MonkeyPatch, stream: int, capturing: bool, size: int
) -> None:
    """A captured launch runs beside others when it is replayed, and another stream's handle may come back."""
    on(monkeypatch, 0)
    assert gpu.scratch(4) is not None
    on(monkeypatch, stream, capturing)
    assert gpu.scratch(size) is None
