"""Floors by lines with made-up seconds: ratios, what is met, what nothing was timed of, and the table."""

import json
from collections.abc import Iterator

import pytest

from attention.campaign import floors, rows, set_floors
from attention.campaign.floors import Standing, partner, standings
from attention.campaign.posed import Posed, parse
from attention.campaign.rows import ProblemTiming, TileTiming
from attention.compare.candidates import FLASH_4
from microbench.machine import nvml
from microbench.results import derive
from smscope import cli
from tests.cpu.campaign_rows import GPU, line, tile
from tests.cpu.commands import called
from tests.cpu.scripted_campaign import H200, Scripted, campaign, machine_of_campaigns  # noqa: F401  a fixture

HEAD_DIM = parse("prefill 4 28 28 4096 4096 72 bf16")
MASKED = parse("features 4 16 16 4096 4096 128 bf16 mask")
PLAIN = parse("prefill 4 16 16 4096 4096 128 bf16")
SKEWED = parse("packed 0 16 16 0 0 128 bf16 lengths=511x256+8192")
EVEN = parse("packed 0 16 16 0 0 128 bf16 lengths=256x271+256x272")
SMALL = parse("short 128 12 12 197 197 64 bf16")
DECODE = parse("decode 16 32 8 1 8192 128 bf16 used=4x6000+4x8192+4x3000+4x500")


def timed(posed: Posed, pick: float, other: float = 9.0, number: int = 1, **peers: float | str) -> ProblemTiming:
    """A line: milliseconds of our pick, of another tile of ours, and of peers, or why there are none."""
    tiles = [tile(96, pick, pick * 1.2, pick * 0.8).model_copy(update={"picked": True}), tile(128, other)]
    for name, took in peers.items():
        peer = TileTiming(variant=f"peer/{name}", config={})
        given = {"failure": took} if isinstance(took, str) else {"seconds": (took,), "clock_mhz": (1.0,)}
        tiles.append(peer.model_copy(update=given))
    return line(posed, *tiles, set="floors", campaign=number)


def only(*lines: ProblemTiming) -> Standing:
    (found,) = standings(lines)
    return found


def test_a_pick_stands_beside_the_fastest_of_torchs_the_other_peer_and_our_own_best() -> None:
    peers = {"torch_flash": 3.0, "torch_cudnn": 2.2, "torch_efficient": "no kernel", "flash_attn_4": 1.9}
    found = only(timed(HEAD_DIM, 2.0, other=1.8, **peers))
    assert found.point == "head dims" and found.seconds == 2.0 and found.pick is not None and found.pick.picked
    values = {each.against: (each.value, each.least, each.met) for each in found.ratios}
    assert values["torch"] == (pytest.approx(1.1), 1.0, True) and found.ratio("torch").by == "peer/torch_cudnn"
    assert values["FlashAttention-4"] == (pytest.approx(0.95), 0.97, False)
    assert values["ours"] == (pytest.approx(0.9), None, None)
    assert [each.against for each in found.missed] == ["FlashAttention-4"] and found.open == ()


def test_a_floor_of_which_nothing_was_timed_is_neither_met_nor_missed() -> None:
    found = only(timed(HEAD_DIM, 2.0, torch_flash=2.0))
    assert found.missed == () and [each.against for each in found.open] == ["FlashAttention-4"]
    assert found.ratio("torch").met is True  # exactly as fast is fast enough


def test_a_peer_that_refuses_holds_for_nothing() -> None:
    found = only(timed(HEAD_DIM, 2.0, torch_flash=2.0, flash_attn_4="it has no such head dim"))
    assert found.ratio("FlashAttention-4").refused and found.missed == () == found.open


def test_a_mask_is_judged_beside_the_same_problem_without_it() -> None:
    masked, plain = timed(MASKED, 1.0, torch_efficient=0.9), timed(PLAIN, 0.75)
    without, found = standings([masked, plain])
    assert (without.posed, found.posed) == (PLAIN, MASKED)  # in the order of the set
    ratio = found.ratio("unmasked")
    assert ratio.value == pytest.approx(0.75) and [each.against for each in found.missed] == ["torch", "unmasked"]
    assert all(each.least is None for each in without.ratios)
    assert [each.against for each in only(masked).open] == ["unmasked"]


def test_skewed_packing_is_judged_by_the_seconds_of_a_score() -> None:
    scores = SKEWED.flops / EVEN.flops
    assert scores == pytest.approx(2.67, abs=0.01)
    found, even = standings([timed(SKEWED, 1.05 * scores), timed(EVEN, 1.0)])
    assert found.ratio("evenly dealt").value == pytest.approx(1 / 1.05) and found.missed == ()
    assert all(each.least is None for each in even.ratios)
    assert standings([timed(SKEWED, 1.2 * scores), timed(EVEN, 1.0)])[0].missed != ()


@pytest.mark.parametrize("point", ["masks", "packed"])
def test_the_set_holds_what_its_problems_are_judged_beside(point: set_floors.Point) -> None:
    of_point = set_floors.of_point(point)
    beside = [found[1] for each in of_point if (found := partner(each))]
    assert len(beside) == {"masks": 6, "packed": 4}[point] and {*beside} <= {*map(str, of_point)}
    assert all(floors.FLOORS[each] is not None for each in set_floors.POINTS)


def test_points_ask_what_was_set_for_them() -> None:
    assert only(timed(SMALL, 1.0, torch_flash=0.99)).missed[0].least == 1.0
    ranges = only(timed(DECODE, 1.0, torch_flash=0.5))
    assert ranges.ratio("torch").value == 0.5 and all(each.met is None for each in ranges.ratios)
    values = only(timed(parse("prefill 4 10 10 4096 4096 192/128 bf16"), 1.0, torch_flash=0.5, flash_attn_4=0.99))
    assert [each.against for each in values.missed] == ["FlashAttention-4"]


def test_the_last_line_of_a_problem_counts_and_a_failed_pick_has_no_ratio() -> None:
    failed = tile(96).model_copy(update={"picked": True, "failure": "wrong: 3 above 1"})
    lost = line(SMALL, failed, TileTiming(variant=FLASH_4, config={}, seconds=(1.0,)), set="floors", campaign=2)
    found = only(timed(SMALL, 1.0, torch_flash=2.0), lost)
    assert found.campaign == 2 and found.seconds is None and found.tflops is None
    assert all(each.value is None for each in found.ratios) and found.open


def test_a_peer_in_no_graph_is_marked() -> None:
    posed = timed(SMALL, 1.0, torch_flash=2.0)
    eager = posed.tiles[-1].model_copy(update={"captured": False})
    assert only(posed.model_copy(update={"tiles": (*posed.tiles[:-1], eager)})).ratio("torch").eager
    assert not only(posed).ratio("torch").eager


@pytest.fixture
def on_file(gpu: Scripted) -> Iterator[Scripted]:
    derive.write(H200)
    yield gpu


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    return called(capsys, cli.main, "floors", *arguments)


def test_from_a_campaign_to_its_floors(
    on_file: Scripted, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(set_floors, "problems", lambda: (HEAD_DIM, SMALL))
    on_file.seconds, on_file.peers_s = lambda posed, config: 1e-3, {"peer/torch_flash": 2e-3}
    assert campaign(capsys, "--set", "floors", "--without", FLASH_4)[0] == 0
    code, out, err = told(capsys, "--json")
    found = {each["problem"]: each for each in json.loads(out)}
    assert code == 0 and {*found} == {str(HEAD_DIM), str(SMALL)} and "Not timed: " in err
    (torch, flash_4, _) = found[str(HEAD_DIM)]["ratios"]
    assert torch["ratio"] == 2.0 and torch["met"] and torch["by"] == "peer/torch_flash" and flash_4["met"] is None
    on_file.peers_s = {"peer/torch_flash": 0.5e-3}
    campaign(capsys, "--set", "floors", "--without", FLASH_4)
    code, out, _ = told(capsys, GPU)
    assert code == 1 and "2 below a floor" in out and "torch 0.500, asked 1.00" in " ".join(out.split())
    assert told(capsys, GPU, "--number", "1")[0] == 0


def test_lines_of_other_kernels_are_told(on_file: Scripted, capsys: pytest.CaptureFixture[str]) -> None:
    rows.append(timed(SMALL, 1.0, torch_flash=2.0).model_copy(update={"texts": {"gone": "0"}}))
    code, _, err = told(capsys)
    assert code == 0 and "By other texts of our kernels than today's: 1 problem." in err


def test_floors_that_nobody_timed_are_no_table(
    on_file: Scripted, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, _, err = told(capsys, GPU)
    assert code == 2 and "no campaign of the set of floors" in err
    monkeypatch.setattr(nvml, "visible_gpus", list)
    code, _, err = told(capsys)
    assert code == 2 and "Name a GPU whose floors were timed (there are: none yet" in err
