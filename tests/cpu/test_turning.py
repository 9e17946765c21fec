"""Which constants would change a pick: told with the least factor that does, and no other."""

from dataclasses import replace

from attention.choose.candidates import Candidate
from attention.choose.choose import choose
from attention.choose.constants import scaled
from attention.choose.explain.explain import explain_on
from attention.choose.turning import FACTORS, told, turns, used
from attention.problem import AttentionProblem
from microbench.results.profile import Profile

H200 = Profile.load("h200-sxm-141gb")
PROBLEM = AttentionProblem(4, 16, 16, 4096, 4096, 128, dtype="bfloat16", device="cuda")


def pick(profile: Profile) -> Candidate:
    return choose(profile, PROBLEM, only="smscope").pick


def names() -> tuple[str, ...]:
    prediction = pick(H200).prediction
    assert prediction is not None
    return used(prediction)


def test_a_pick_turns_at_the_factor_that_is_told_and_at_no_smaller_one():
    now, found = pick(H200), turns(H200, names(), pick)
    assert found
    for each in found:
        other = pick(scaled(H200, each.constant, each.factor))
        assert (other.variant, other.config) == (each.variant, each.config) != (now.variant, now.config)
        smaller = [one for one in FACTORS if (one > 1) == (each.factor > 1) and abs(one - 1) < abs(each.factor - 1)]
        assert all(pick(scaled(H200, each.constant, one)).config == now.config for one in smaller)


def test_the_sentence_names_what_turns_it_and_counts_the_others():
    found = turns(H200, names(), pick)
    said = told(found, names())
    assert all(each.constant in said and f"{each.factor:.2f}" in said for each in found)
    assert f"none of the other {len(names()) - len({each.constant for each in found})} does" in said
    assert "none of the 3 constants" in told((), ("one", "two", "three"))


def test_explain_says_it_of_a_gpu_and_of_no_cpu():
    on_gpu = explain_on(H200, PROBLEM)
    assert any("would be picked with" in note or "alone changes the pick" in note for note in on_gpu.notes)
    host = Profile.load("host-amd-epyc-f25m17-2c")
    assert not any("would be picked with" in note for note in explain_on(host, replace(PROBLEM, device="cpu")).notes)
