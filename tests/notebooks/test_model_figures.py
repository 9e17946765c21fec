"""What the notebooks of the model draw: layers that add up, the problems they say, and README's figures up to date."""

from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pytest

from attention.campaign import choosers, plan, rows
from attention.campaign.regret import choices
from attention.choose import constants, turning
from attention.choose.candidates import TIE_BAND
from attention.choose.model import predict
from attention.variant import by_path
from microbench.results.profile import Profile
from notebooks.ladders import ablation, choice_map, figure_choosers, kept, set_a, stack
from notebooks.ladders.ablation import Worth

EX2, LAUNCH = "mufu_ex2_per_clk_sm", "event_to_event_empty_kernel_ns"
H200 = Profile.load("h200-sxm-141gb")
every_gpu = pytest.mark.parametrize("gpu", set_a.GPUS)
every_mask = pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])


@every_gpu
def test_layers_that_count_follow_each_other_up_to_the_prediction(gpu: str) -> None:
    profile = Profile.load(gpu)
    for each in set_a.problems(gpu):
        for path, config in each.picks:
            found = predict(profile, each.posed.problem, by_path(path), config)
            for shown in (stack.layers(found), stack.gathered(stack.layers(found), 0.02 * found.seconds)):
                count = sorted((layer for layer in shown if layer.counts), key=lambda layer: (layer.begin, layer.end))
                # Parts of a round add up to it as nearly as it was found (choose.queues).
                assert count[0].begin == 0 and count[-1].end == pytest.approx(found.seconds, rel=1e-5)
                assert all(one.end == pytest.approx(other.begin, rel=1e-5) for one, other in pairwise(count))


@every_gpu
def test_every_problem_of_the_set_is_there(gpu: str) -> None:
    assert len(set_a.problems(gpu)) == {"h100-sxm-80gb": 71, "h200-sxm-141gb": 181}[gpu]


def test_the_figure_of_choosers_names_the_campaigns_of_an_earlier_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(set_a, "campaigns", lambda _: (24, 25))
    first, last = (rows.read(H200.gpu, "a", number)[-1].texts for number in (24, 25))
    said = []
    for texts in (last, first, {}):
        monkeypatch.setattr(plan, "texts", lambda _, texts=texts: texts)
        said.append(set_a.earlier_text(H200.gpu))
    earlier = "an earlier text of our kernels"
    assert said == [f"campaign a-24 of {earlier}", f"campaign a-25 of {earlier}", earlier]


@every_gpu
def test_a_launch_that_all_configurations_share_is_worth_nothing_to_a_choice(gpu: str) -> None:
    found = {each.name: each for each in ablation.worths(gpu)}
    measured = ablation.measured_of(ablation.costs(gpu)).regrets.mean
    assert found[LAUNCH].regrets == pytest.approx((measured, measured), abs=1e-3)
    assert min(found[EX2].changed) > 0 and found[EX2].most(measured) > 0


@every_gpu
@pytest.mark.parametrize("factor", ablation.FACTORS)
def test_a_longer_launch_changes_a_pick_only_where_it_brings_both_into_the_tie_band(gpu: str, factor: float) -> None:
    """The band is a share of all seconds, and a longer launch widens it."""
    profile, mine = Profile.load(gpu), choices(set_a.problems(gpu))
    other = constants.scaled(profile, LAUNCH, factor)
    first, second = (choosers.by_constants(each) for each in (profile, other))
    longer = other if factor > 1 else profile
    for each in mine:
        seconds = [
            predict(longer, each.posed.problem, by_path(path), config).seconds
            for path, config in {choose(each.posed, each.picks) for choose in (first, second)}
        ]
        assert max(seconds) <= (1 + TIE_BAND) * min(seconds), str(each.posed.problem)


def test_a_constant_that_no_timed_kernel_reads_has_no_marks_and_the_others_keep_theirs() -> None:
    both, alone = Worth("a", (0.02, 0.01), (3, 1)), Worth("b", (0.01, 0.03), (0, 2))
    figure = figure_choosers.worths([("one", 0.01, (alone, both)), ("other", 0.01, (both,))], "")
    rows = [{float(np.asarray(line.get_ydata())[0]) for line in axes.lines[:-1]} for axes in figure.axes]
    assert rows == [{0.0, 1.0}, {1.0}] and ablation.worth_of((both,), "b") is None
    plt.close(figure)


def test_the_figure_of_choosers_draws_the_regrets_of_today() -> None:
    drawn, now = kept.numbers_in(kept.CHOOSERS), kept.numbers_of_choosers()
    assert drawn.keys() == now.keys(), "run `make notebooks`"
    assert all(drawn[name] == pytest.approx(now[name], abs=0.002) for name in now), "run `make notebooks`"


def test_the_figure_of_the_map_draws_the_choices_of_today() -> None:
    assert kept.numbers_in(kept.CHOICE_MAP) == kept.numbers_of_map(), "run `make notebooks`"


@every_mask
def test_faster_exponentials_change_some_tiles_and_cost_no_place_time(causal: bool) -> None:
    now = choice_map.places(H200, causal)
    changes = choice_map.changes(now, choice_map.places(constants.scaled(H200, EX2, 2.0), causal))
    assert any(each.changed for each in changes) and not all(each.changed for each in changes)
    # Of equals the pick is not the fastest, but within the tie band of it.
    assert min(each.saved for each in changes) > -0.02
    same = choice_map.changes(now, now)
    assert not any(each.changed or each.saved for each in same)


def test_a_choice_turns_at_the_factor_that_is_told_and_not_before() -> None:
    problem = choice_map.posed(4096, 128, causal=True)

    def tile(factor: float) -> object:
        profile = constants.scaled(H200, EX2, factor)
        return next(each.config for each in choice_map.places_of(profile, [problem]))

    now, turns = tile(1.0), choice_map.turns(H200, problem, [EX2])
    assert {turn.factor > 1 for turn in turns} == {True, False}
    for turn in turns:
        assert tile(turn.factor) == turn.config != now
        before = [each for each in turning.FACTORS if (each > 1) == (turn.factor > 1)]
        assert all(tile(each) == now for each in before if abs(each - 1) < abs(turn.factor - 1))
