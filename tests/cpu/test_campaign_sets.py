"""The problems of a campaign: set A as typed, and set B as a freeze's commit draws it."""

import pytest

from attention.campaign import draw, set_a
from attention.campaign.posed import CLASSES, parse, posed, read_lengths, written
from attention.choose.candidates import legal
from attention.errors import ProblemError
from attention.problem import AttentionProblem
from microbench.machine.arch import by_name
from tests.cpu.campaign_rows import HOPPER, ONE, OURS

A = set_a.problems()
COMMITS = [f"{number * 7919:040x}" for number in range(12)]


def test_set_a_has_sixty_problems_and_more_of_every_class_no_two_alike():
    assert len({str(each) for each in A}) == len(A) >= 60
    assert {each.kind for each in A} == {*CLASSES}


def test_set_a_spans_what_kernels_are_asked():
    problems = [each.problem for each in A]
    assert {64, 96, 128, 192, 256} < {each.head_dim for each in problems}
    assert max(each.seq_q for each in problems) == 65536 and min(each.seq_kv for each in problems) == 77
    assert {1, 128} <= {each.batch for each in problems} and {each.dtype for each in problems} == {
        "bfloat16",
        "float16",
    }
    assert {each.heads_q // each.heads_kv for each in problems} > {1, 4, 8}
    assert {name for each in A for name in each.features} == {
        "window",
        "softcap",
        "mask",
        "alibi",
        "sinks",
        "packed",
        "ranges",
    }


@pytest.mark.parametrize("each", A, ids=str)
def test_the_hopper_kernel_leaves_a_choice_on_every_problem_of_set_a(each):
    tiles, _ = legal(each.problem, by_name("sm90a"), OURS)
    assert sum(variant.path == HOPPER for variant, _ in tiles) > 1


def test_a_line_poses_its_problem():
    found = parse("features 2 8 4 512 1024 128 bf16 causal window=256 softcap=30 sinks")
    asked = {"causal": True, "window": (256, -1), "softcap": 30.0, "sinks": True, "alignment": "bottom_right"}
    assert found.problem == AttentionProblem(2, 8, 4, 512, 1024, 128, dtype="bfloat16", device="cuda", **asked)
    assert found.features == {"window", "softcap", "sinks"} and found.sizes == ("short", "medium")


def test_packed_sequences_are_as_long_as_their_lengths():
    found = parse("packed 0 8 8 0 0 64 f16 causal lengths=100+3x20")
    assert found.lengths == (100, 20, 20, 20) == read_lengths(written(found.lengths))
    problem = found.problem
    assert (problem.batch, problem.seq_q, problem.tokens_q, problem.tokens_kv) == (4, 100, 160, 160)
    assert found.flops == 2 * 64 * 8 * (100**2 + 3 * 20**2)


def test_a_head_dim_of_values_and_float_masks_are_posed():
    found = parse("features 4 10 10 512 1024 192/128 bf16 bias=f32")
    assert found.problem == AttentionProblem(
        4, 10, 10, 512, 1024, 192, 128, dtype="bfloat16", device="cuda", mask="float", mask_dtype="float32"
    )
    assert found.flops == 2 * 4 * 10 * 512 * 1024 * (192 + 128) and found.features == {"mask"}
    own = parse("features 4 10 10 512 1024 192/128 bf16 bias").problem
    assert (own.mask, own.mask_dtype) == ("float", "") and str(own) != str(found.problem)


def test_used_keys_are_each_slots():
    found = parse("decode 3 8 2 16 1000 64 f16 causal used=2x1000+20")
    assert found.used == (1000, 1000, 20) and found.problem.ranges and found.features == {"ranges"}
    assert found.problem.alignment == "bottom_right" and str(found).endswith(" used=2x1000+20")
    assert found.flops == 2 * 64 * 8 * 16 * 2020


@pytest.mark.parametrize(
    "line",
    [
        "prefil 1 1 1 1 1 64 f16",
        "short 1 1 1 64 64 64 f16 causl",
        "decode 2 1 1 1 64 64 f16 used=64",
        "decode 2 1 1 1 64 64 f16 used=64+65",
        "short 1 1 1 64 64 64 f16 bias=f8",
    ],
)
def test_a_word_that_says_nothing_is_refused(line):
    with pytest.raises(ProblemError):
        parse(line)


def test_twins_differ_in_dtype_or_grouping_alone():
    one, dtype, grouped, longer = (
        posed("prefill", (4, 16, kv, length, length, 128), word, ["causal"])
        for kv, length, word in ((16, 1024, "bf16"), (16, 1024, "f16"), (4, 1024, "bf16"), (16, 2048, "bf16"))
    )
    assert one.twin == dtype.twin == grouped.twin != longer.twin


@pytest.mark.parametrize("commit", COMMITS)
def test_a_draw_holds_what_set_a_does_not(commit):
    drawn = draw.drawn(commit, A)
    new = draw.new_in(drawn, A)
    assert len(new.head_dims) >= 2 and new.pairs and new.sizes and not new.lacks
    assert len({str(each) for each in drawn}) == len(drawn) >= 40 and {each.kind for each in drawn} == {*CLASSES}
    assert not {str(each) for each in drawn} & {str(each) for each in A}
    assert all(variant.refusal(each.problem, by_name("sm90a")) is None for each in drawn for variant in OURS)


def test_a_draw_follows_from_the_commit_alone():
    assert draw.drawn(COMMITS[1], A) == draw.drawn(COMMITS[1], A) != draw.drawn(COMMITS[2], A)
    # In any later tree and on any Python: it is what a freeze of this commit would be judged by.
    first = draw.drawn("0123456789abcdef0123456789abcdef01234567", [ONE])
    assert str(first[0]) == "B=1 Hq=16 Hkv=8 Sq=21888 Skv=601 D=184 float16 full"
    assert str(first[-1]) == "B=16 Hq=4 Hkv=4 Sq=2706 Skv=2706 D=168 float16 full sinks"


def test_what_a_set_lacks_is_named():
    assert draw.new_in(A, A).lacks == "two head dims, a pair of features, a class of (queries, keys)"
    more = [*A, parse("features 1 8 8 300 300 104 f16 softcap=20 sinks"), parse("short 1 8 8 300 300 120 f16")]
    assert draw.new_in(more, A).lacks == "a class of (queries, keys)"


def test_a_set_that_leaves_nothing_new_is_refused():
    every = [*A, *(posed("short", (1, 1, 1, 64, 64, dim), "f16", ()) for dim in draw.HEAD_DIMS)]
    with pytest.raises(ProblemError, match="no new head dims"):
        draw.drawn(COMMITS[0], every)
