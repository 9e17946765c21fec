"""What campaigns teach: their lines count as those of comparisons do, while the code is what was timed."""

from dataclasses import replace
from pathlib import Path

import pytest

from attention.campaign.posed import parse
from attention.choose import learned, learned_file, learned_key, samples
from attention.choose.corrections import Corrections
from attention.choose.lengths import presumed
from attention.choose.model import predict
from attention.tile import FETCH_BYTES
from attention.timed import timings
from attention.timed.observed import Observed, of_newest_torch
from attention.variant import Config, by_path
from microbench.errors import DataWarning
from microbench.results.profile import Profile
from tests.cpu.attention_profiles import hopper_profile
from tests.cpu.campaign_lines import CONFIG, FREEZE, GPU, OURS, append, tile
from tests.cpu.timing_rows import made_up

SQUARE = "prefill 4 16 16 4096 4096 128 bf16 causal"
PACKED = "packed 0 16 16 0 0 128 bf16 causal lengths=4096+4x1024+8x16"
SLOTS = "decode 4 32 8 1 4096 128 bf16 used=4096+700+90+2000"
FLASH, CUDNN = "sm80/forward/torch_flash", "sm90a/forward/torch_cudnn"
PROFILE = hopper_profile().model_copy(update={"gpu": GPU})


def taught() -> Corrections:
    return learned.derive(PROFILE).corrections


def promised(text: str, path: str = OURS, config: Config = CONFIG) -> float:
    posed = parse(text)
    return predict(PROFILE, posed.problem, by_path(path), config, lengths=posed.counted).seconds


def test_a_campaigns_line_is_a_timing_of_each_of_its_candidates(data: Path) -> None:
    append(SQUARE, tile(2 * promised(SQUARE)), tile(4 * promised(SQUARE, FLASH, Config()), "peer/torch_flash"))
    found = learned.derive(PROFILE)
    assert found.compares and not found.left_out
    assert {path: each.value for path, each in found.corrections.of_class.items()} == {
        OURS: pytest.approx(1 / 2),
        FLASH: pytest.approx(1 / 4),
    }


def test_what_a_campaign_times_again_counts_once_by_its_median(data: Path) -> None:
    for number, slower in enumerate((2, 3, 8), start=1):
        append(SQUARE, tile(slower * promised(SQUARE)), campaign=number)
    found = taught().of_class[OURS]
    assert (found.value, found.timings) == (pytest.approx(1 / 3), 1)


def test_a_packing_is_held_against_what_a_call_predicts_which_does_not_know_its_lengths(data: Path) -> None:
    problem = parse(PACKED).problem
    of_call = predict(PROFILE, problem, by_path(OURS), CONFIG, lengths=presumed(problem)).seconds
    assert promised(PACKED) != of_call
    append(PACKED, tile(2 * of_call))
    assert taught().of_class[OURS].value == pytest.approx(1 / 2)


def test_slots_are_held_against_what_is_predicted_of_the_keys_that_they_use(data: Path) -> None:
    assert promised(SLOTS) != predict(PROFILE, parse(SLOTS).problem, by_path(OURS), CONFIG).seconds
    append(SLOTS, tile(2 * promised(SLOTS)))
    assert taught().of_class[OURS].value == pytest.approx(1 / 2)


@pytest.mark.parametrize(
    ("of_tile", "of_line"),
    [
        ({}, {"flags": ("busy",)}),
        ({}, {"texts": {OURS: "0" * 16}}),
        ({}, {"freeze": FREEZE}),
        ({"failure": "wrong"}, {}),
        ({"seconds": (), "failure": "has no such mask"}, {}),
        ({"variant": "door/sdpa", "config": {}}, {}),
        ({"variant": "peer/flash_attn_4", "config": {}}, {}),
    ],
)
def test_disturbed_lines_other_code_failures_and_strangers_teach_nothing(
    data: Path, of_tile: dict[str, object], of_line: dict[str, object]
) -> None:
    append(SQUARE, tile(0.01).model_copy(update=of_tile), **of_line)
    assert not taught()


def test_timings_of_wider_misses_teach_where_rows_are_whole_granules(data: Path) -> None:
    odd = SQUARE.replace(" 128 ", " 72 ")
    append(odd, tile(2 * promised(odd)), fetch_bytes=256)
    assert not taught()
    append(SQUARE, tile(2 * promised(SQUARE)), fetch_bytes=256)
    assert taught().of_class[OURS].timings == 1
    append(odd, tile(2 * promised(odd)), fetch_bytes=FETCH_BYTES, campaign=2)
    assert taught().of_class[OURS].timings == 2


def test_a_line_that_was_drawn_from_a_freeze_teaches_once_that_has_its_verdict(data: Path) -> None:
    file = append(SQUARE, tile(0.01), freeze=FREEZE)
    before = learned_key.key_of(PROFILE)
    assert not taught()
    (file.parent.parent / f"verdict-{FREEZE[:12]}.json").write_text("{}")
    assert taught() and learned_key.key_of(PROFILE) != before


def test_a_kernel_of_torchs_is_taught_by_problems_that_it_serves_itself(data: Path) -> None:
    append("features 4 16 16 4096 4096 128 bf16 bias", tile(0.01, "peer/torch_cudnn"))
    append("decode 4 16 16 1 8192 128 bf16 used=8192+3x100", tile(0.01, "peer/torch_cudnn"))
    assert not taught()


def observed(seconds: float, problem: str = SQUARE, **packages: str) -> Observed:
    return Observed("peer/torch_flash", {}, "forward", parse(problem).problem, *(seconds,) * 3, packages=packages)


def test_an_older_torch_gives_way_on_the_problem_that_a_newer_one_was_timed_on() -> None:
    longer = SQUARE.replace("4096", "8192")
    old, local, new = (observed(1.0, torch=each) for each in ("2.9.1", "2.11.0+cu130", "2.11.0"))
    other, ours = observed(1.0, longer, torch="2.9.1"), replace(old, variant=OURS)
    assert [*of_newest_torch([old, local, new, other, ours])] == [local, new, other, ours]
    assert [*of_newest_torch([local, later := observed(1.0, torch="2.11.0", cudnn="91900")])] == [later]


def in_a_new_process(profile: Profile = PROFILE) -> learned.Learned:
    learned._kept.clear()
    return learned._of(profile)


def test_lines_count_from_the_profile_after_them_on(data: Path) -> None:
    """A campaign that goes on after an interruption must not choose by what it timed before."""
    append(SQUARE, tile(2 * promised(SQUARE)))
    assert not in_a_new_process().corrections
    assert learned.write(PROFILE) is not None
    before = learned_key.key_of(PROFILE)
    append(SQUARE.replace("4096", "2048"), tile(0.01))
    append(SQUARE, tile(0.01), set="floors")
    assert in_a_new_process().corrections.of_class[OURS].timings == 1 and learned_key.key_of(PROFILE) != before
    learned.write(PROFILE)
    assert in_a_new_process().corrections.of_class[OURS].timings == 2
    assert learned_file.read(GPU, before) is None


def test_a_comparison_more_takes_no_campaign_away_nor_adds_one(data: Path) -> None:
    append(SQUARE, tile(2 * promised(SQUARE)))
    learned.write(PROFILE)
    append(SQUARE.replace("4096", "2048"), tile(0.01))
    what = {"gpu": GPU, "shape": (4, 16, 16, 1024, 1024, 128, 128), "dtype": "bfloat16"}
    timings.write(made_up(0.01, "peer/torch_cudnn", **what))
    found = in_a_new_process().corrections.of_class
    assert (found[OURS].timings, found[CUDNN].timings) == (1, 1)


def test_a_tree_without_campaigns_takes_what_they_taught(data: Path) -> None:
    file = append(SQUARE, tile(2 * promised(SQUARE)))
    learned.write(PROFILE)
    file.unlink()
    assert in_a_new_process().corrections.of_class[OURS].timings == 1


def test_a_line_that_is_none_is_named_and_the_rest_counts(data: Path) -> None:
    file = append(SQUARE, tile(2 * promised(SQUARE)))
    with file.open("a") as more:
        more.write("{\n")
    learned.write(PROFILE)
    learned.faults.forget()
    with pytest.warns(DataWarning, match="line 2: not valid JSON"):
        assert in_a_new_process().corrections


def test_a_prediction_is_made_once_for_what_was_timed_again(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []
    whole = samples.predict
    monkeypatch.setattr(samples, "predict", lambda *asked, **more: made.append(asked) or whole(*asked, **more))
    for number in (1, 2):
        append(SQUARE, tile(0.01), tile(0.01, "peer/torch_cudnn"), campaign=number)
    assert taught() and len(made) == 2
