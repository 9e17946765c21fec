"""A kernel that others of ours outdo: where a choice leaves it out, and where it is asked for all the same."""

from dataclasses import replace

import pytest

from attention.campaign import choosers
from attention.campaign.plan import jobs
from attention.campaign.posed import parse
from attention.choose.candidates import legal
from attention.choose.choose import choose
from attention.problem import AttentionProblem
from attention.variant import by_path, shipped
from microbench.machine.arch import by_name
from microbench.results.profile import Profile

H200 = Profile.load("h200-sxm-141gb")
SPLIT = by_path("sm80/forward/split_keys")
SHORT = AttentionProblem(2, 8, 8, 200, 200, 256, dtype="float16", device="cuda", causal=True)


def served(problem: AttentionProblem, arch: str = "sm90a", **asked: object) -> bool:
    allowed, refused = legal(problem, by_name(arch), shipped("forward"), **asked)  # type: ignore[arg-type]
    here = any(variant is SPLIT for variant, _ in allowed)
    assert here or any(each.variant == SPLIT.path and each.reason for each in refused)
    return here


@pytest.mark.parametrize(
    ("change", "expected"),
    [({}, False), ({"seq_q": 64}, True), ({"seq_kv": 2048}, True), ({"seq_kv": 2047}, False), ({"seq_q": 65}, False)],
)
def test_many_queries_of_few_keys_are_left_to_others_beside_warpgroups(change: dict[str, int], expected: bool) -> None:
    problem = replace(SHORT, causal=False, **change)
    assert served(problem) is expected and served(problem, "sm80")


def test_a_call_that_names_it_is_served_by_it() -> None:
    assert served(SHORT, only="split_keys")
    left_out = next(each for each in choose(H200, SHORT).refused if each.variant == SPLIT.path and each.config is None)
    assert left_out.reason == "is slower than others of ours with more than 64 queries and less than 2048 keys"


def test_where_no_other_kernel_of_ours_serves_it_does() -> None:
    others = tuple(each for each in shipped("forward") if each.owner == "torch")
    assert any(variant is SPLIT for variant, _ in legal(SHORT, by_name("sm90a"), (*others, SPLIT))[0])


def test_campaigns_time_it_and_no_chooser_picks_it() -> None:
    posed = parse("short 2 8 8 200 200 256 f16 causal")
    (job,) = jobs([posed], H200)
    picks = [(variant.path, config) for variant, config in job.tiles]
    assert any(path == SPLIT.path for path, _ in picks)
    for profile in (H200, H200.model_copy(update={"arch": "sm80"})):
        assert choosers.by_constants(profile)(posed, picks)[0] != SPLIT.path
    alone = [pick for pick in picks if pick[0] == SPLIT.path]
    assert choosers.by_constants(H200)(posed, alone)[0] == SPLIT.path
