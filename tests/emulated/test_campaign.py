"""What a campaign prepares, with the emulator in the GPU's place: real kernels, checked, and one that is wrong."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from attention.campaign import timing
from attention.campaign.plan import Job
from attention.campaign.posed import parse
from attention.variant import Config, by_path
from attention.verify.emulated import emulating

TILES = (
    ("sm90a/forward/warp_specialised", {"tile_keys": 64, "warpgroups": 2, "stages": 2, "q_in_registers": 1}),
    ("sm80/forward/software_pipelined", {"warps": 4, "tile_keys": 64}),
)


class Captured:
    """A call that a graph would hold."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self.captured, self.replay = True, call


def job(text: str) -> Job:
    tiles = tuple((by_path(path), Config(tuple(config.items()))) for path, config in TILES)
    return Job(parse(text), tiles, 1e-3, "sm90a")


@pytest.mark.parametrize(
    "text",
    [
        "packed 0 2 1 0 0 64 bf16 causal lengths=20+70",
        "features 1 2 2 70 70 64 bf16 causal window=20 sinks",
        "decode 1 2 1 1 100 64 f16",
        "decode 2 2 1 1 100 64 f16 used=70+100",
        "features 1 2 2 70 70 64/32 bf16 bias=f32",
    ],
)
def test_every_configuration_runs_and_is_right(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "Graphed", Captured)
    with emulating():
        found, calls = timing.prepared(job(text), torch.device("cpu"))
    assert len(found) == len(calls) == 2
    for each in found.values():
        assert each.failure is None and len(each.cubin_sha256) == 64 and each.nvrtc and each.seconds == ()
        assert each.error is not None and each.allowed_error is not None and each.error <= each.allowed_error


def test_a_wrong_configuration_is_named_and_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    posed = job("short 1 2 2 70 70 64 bf16")
    (hopper, config), ampere = posed.tiles

    def wrong(*given: Any) -> tuple[torch.Tensor, None]:
        return torch.zeros_like(given[0]), None

    def lost(*given: Any) -> None:
        raise RuntimeError("no room\nat all")

    monkeypatch.setattr(timing, "Graphed", Captured)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(type(hopper), "load", lambda self: wrong if self.path == hopper.path else lost)
    found, calls = timing.prepared(posed, torch.device("cpu"))
    first, second = found.values()
    assert calls == {} and (first.failure or "").startswith("wrong: error") and second.failure == "no room"
    assert first.config == dict(config.values) and second.variant == ampere[0].path
