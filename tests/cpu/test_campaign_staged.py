"""The timer's stages on a GPU that answers as a test scripts it, and whether a result is right."""

from collections.abc import Callable
from itertools import count

import pytest
import torch

from attention.campaign import checked, staged, timing
from attention.campaign.posed import parse
from attention.campaign.rows import ProblemTiming
from attention.kernels.torch.composed import slow
from attention.variant import Config
from tests.cpu.campaign_rows import ONE, line, tile
from tests.cpu.scripted_device import ScriptedDevice

FEATURES = (
    "prefill 2 4 2 130 130 64 bf16 causal",
    "short 2 4 4 100 100 72 f16",
    "decode 2 4 1 1 300 64 bf16",
    "prefill 1 2 2 40 200 64 bf16 causal",
    "packed 0 4 2 0 0 64 bf16 causal lengths=40+130+20",
    "features 1 4 4 150 150 64 bf16 causal window=32 sinks",
    "features 2 4 4 150 150 64 bf16 causal softcap=20",
    "features 2 4 4 150 150 64 bf16 mask",
    "features 2 4 4 90 150 64 f16 causal alibi",
    "features 2 4 4 90 150 64/32 bf16 bias=f32",
    "features 2 4 4 90 90 32/64 f16 causal bias",
    "features 3 4 2 40 200 64 bf16 causal used=150+200+77",
    "decode 2 4 1 1 300 64 bf16 used=17+300",
)


def call(device: ScriptedDevice, microseconds: float, told: list[str], name: str) -> Callable[[], None]:
    def run() -> None:
        device.now_ns += 1e3 * microseconds
        told.append(name)

    return run


def test_what_is_far_behind_gets_the_least_samples_and_is_on_file_all_the_same() -> None:
    device, told = ScriptedDevice(mhz=1500.0), list[str]()
    took = {"best": 20.0, "near": 55.0, "far": 65.0}
    found = staged.staged(device, {name: call(device, us, told, name) for name, us in took.items()}, "seed")  # type: ignore[arg-type]
    assert {name: len(each.seconds) for name, each in found.items()} == {"best": 11, "near": 11, "far": staged.LEAST}
    for name, each in found.items():
        assert each.seconds == pytest.approx([took[name] * 1e-6] * len(each.seconds))
        assert len(each.clocks_mhz) == len(each.power_w) == len(each.seconds)


def test_the_best_of_a_kind_is_sampled_however_far_it_is_behind_all() -> None:
    # Two samples of 54 and 111 us had made an H200's fastest tile of one architecture its slowest.
    device = ScriptedDevice()
    took = {"ours best": 20.0, "others best": 90.0, "others near": 110.0, "others far": 120.0}
    calls = {name: spread(device, us, 0) for name, us in took.items()}
    found = staged.staged(device, calls, "seed", kind=lambda name: name.partition(" ")[0])  # type: ignore[arg-type]
    samples = {name: len(each.seconds) for name, each in found.items()}
    assert samples == {"ours best": 11, "others best": 11, "others near": 11, "others far": staged.LEAST}


def spread(device: ScriptedDevice, microseconds: float, percent: float) -> Callable[[], None]:
    """A call that takes more or less by so much, in turns."""
    times = count()

    def run() -> None:
        device.now_ns += 1e3 * microseconds * (1 + (-1) ** next(times) * percent / 100)

    return run


def test_what_is_close_to_the_fastest_is_timed_until_its_median_is_known() -> None:
    device = ScriptedDevice()
    took = {"best": 20.0, "close": 20.8, "behind": 22.0}
    calls = {name: spread(device, us, 1.5) for name, us in took.items()}
    found = staged.staged(device, calls, "seed", named=("behind",))  # type: ignore[arg-type]
    samples = {name: len(each.seconds) for name, each in found.items()}
    # 1.25 times 0.74 of 3 %, over the root of 30 samples, is 0.5 %.
    assert samples == {"best": 30, "close": 30, "behind": 30}
    without = staged.staged(device, calls, "seed")  # type: ignore[arg-type]
    assert {name: len(each.seconds) for name, each in without.items()} == samples | {"behind": 11}


def test_no_call_is_timed_for_ever() -> None:
    device = ScriptedDevice()
    noisy = staged.staged(device, {"one": spread(device, 20, 30)}, "seed")["one"]  # type: ignore[arg-type]
    slow = staged.staged(device, {"one": spread(device, 1e5, 30)}, "seed")["one"]  # type: ignore[arg-type]
    assert len(noisy.seconds) == staged.MOST
    assert 11 < len(slow.seconds) < staged.MOST  # two seconds of it


def test_slow_problems_get_fewer_samples() -> None:
    device, told = ScriptedDevice(), list[str]()
    calls = {name: call(device, 4e5, told, name) for name in "ab"}
    found = staged.staged(device, calls, "seed")  # type: ignore[arg-type]
    assert {len(each.seconds) for each in found.values()} == {staged.ENOUGH}


def test_the_order_within_a_problem_is_drawn_from_the_seed() -> None:
    def order(seed: str) -> list[str]:
        device, told = ScriptedDevice(), list[str]()
        staged.staged(device, {name: call(device, 20, told, name) for name in "abcdefgh"}, seed)  # type: ignore[arg-type]
        return told

    assert order("a 1 x") == order("a 1 x") != order("a 2 x")


def test_samples_join_a_configurations_line() -> None:
    device = ScriptedDevice(mhz=1500.0, watts=None)
    samples = staged.staged(device, {"one": call(device, 20.1234567, [], "one")}, "seed")["one"]  # type: ignore[arg-type]
    found = timing.with_samples(tile(96), samples)
    assert found.seconds[0] == pytest.approx(2.01235e-5) and len(found.seconds) == 11
    assert found.clock_mhz[0] == pytest.approx(1500, rel=0.01) and found.power_w == (None,) * 11
    assert timing.with_samples(tile(96), None) == tile(96)
    assert ProblemTiming.model_validate_json(line(ONE, found).model_dump_json(exclude_none=True)).tiles == (found,)


@pytest.mark.parametrize("text", FEATURES)
def test_a_right_result_is_right_and_a_wrong_row_is_not(text: str) -> None:
    posed = parse(text)
    given = checked.inputs(posed, torch.device("cpu"))
    part = checked.part_of(posed, given)
    out, _ = slow.forward(given.query, given.key, given.value, posed.problem, Config(), given.extras)
    assert part.judged(out).ok
    last = sum(posed.lengths[: posed.lengths.index(max(posed.lengths)) + 1]) if posed.lengths else out.shape[2]
    wrong = out.clone()
    wrong[0, -1, last - 1] += 1.0
    assert not part.judged(wrong).ok
    wrong[0, -1, last - 1] = torch.nan
    assert not part.judged(wrong).ok
