"""One choice serves a class of lengths: what a class keeps, and how many choices a growing cache asks for."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attention.choose import classes
from attention.choose.classes import broad, representative, rounded
from attention.problem import LARGEST, AttentionProblem

DECODE = AttentionProblem(1, 32, 8, 1, 1, 128, dtype="bfloat16", device="cuda")
lengths = st.integers(1, 200_000)


@given(lengths)
def test_a_size_is_rounded_up_by_less_than_an_eighth(size: int) -> None:
    found = rounded(size)
    assert size <= found < size * 1.125 + 1 and rounded(found) == found and (size > 16 or found == size)


def test_a_growing_cache_has_a_class_for_16_keys_and_beyond_512_four_an_octave() -> None:
    grown = [replace(DECODE, seq_kv=keys) for keys in range(1, 131_073, 7)]
    short, long = set(range(128, 513, 16)), {part * 128 << octave for octave in range(8) for part in (5, 6, 7, 8)}
    assert {representative(each).seq_kv for each in grown} == short | long
    tuned = {128 << octave for octave in range(11)} | {192 << octave for octave in range(10)}
    assert {broad(each).seq_kv for each in grown} == tuned


def test_a_window_of_a_cache_lies_across_tiles() -> None:
    asked = {"window": (127, -1), "alignment": "bottom_right"}
    found = [representative(replace(DECODE, seq_kv=keys, **asked)).seq_kv for keys in (130, 350, 9000)]
    assert found == [192 - 33, 384 - 33, 12288 - 33]


@pytest.mark.parametrize("causal", [False, True])
def test_prompts_have_a_class_for_a_32nd_of_an_octave_and_no_less_than_16_keys_or_64_rows(causal: bool) -> None:
    for begin, squares, of_rows, tuned in ((256, 16, 8, 8), (512, 32, 8, 8), (1024, 32, 16, 8), (8192, 32, 32, 8)):
        prompts = [replace(DECODE, seq_q=n, seq_kv=n, causal=causal) for n in range(begin + 1, 2 * begin + 1)]
        assert len(set(map(representative, prompts))) == squares
        assert len(set(map(broad, prompts))) == tuned
        for others in ({"seq_kv": 40_960}, {"varlen": True, "tokens_q": 65_536, "tokens_kv": 65_536}):
            assert len({representative(replace(each, **others)) for each in prompts}) == of_rows


@given(st.integers(1, 300) | lengths, st.integers(1, 300) | lengths, st.integers(-1, 300), st.booleans(), st.booleans())
def test_what_a_choice_serves_is_within_what_one_timing_serves(
    queries: int, keys: int, left: int, causal: bool, packed: bool
) -> None:
    band = {"causal": causal, "alignment": "bottom_right", "window": (left, -1), "varlen": packed}
    problem = replace(DECODE, seq_q=queries, seq_kv=keys, **band)
    assert broad(representative(problem)) == broad(problem)


@given(
    queries=lengths,
    keys=lengths,
    causal=st.booleans(),
    alignment=st.sampled_from(("top_left", "bottom_right")),
    left=st.integers(-1, 5000),
    packed=st.booleans(),
    batch=st.integers(1, 300),
    device=st.sampled_from(("cpu", "cuda")),
)
def test_the_representative_asks_for_the_same_features_edges_and_squareness(
    queries: int, keys: int, causal: bool, alignment: str, left: int, packed: bool, batch: int, device: str
) -> None:
    band = {"causal": causal, "alignment": alignment, "window": (left, -1), "varlen": packed}
    problem = AttentionProblem(batch, 8, 2, queries, keys, 64, dtype="bfloat16", device=device, **band)
    found = representative(problem)
    assert (found.features, found.edges, found.alignment) == (problem.features, problem.edges, problem.alignment)
    if not problem.edges.open:
        assert (found.seq_q == found.seq_kv) == (problem.seq_q == problem.seq_kv)
    assert found.seq_q >= problem.seq_q and found.batch >= problem.batch  # what counts tiles stays on the safe side
    one = {"batch": 1, "seq_q": 1, "seq_kv": 1, "tokens_q": 1, "tokens_kv": 1}
    assert replace(found, **one) == replace(problem, **one)


@given(
    queries=st.integers(1, 300),
    keys=st.integers(1, 300),
    other=st.integers(0, 40),
    left=st.integers(-1, 300),
    causal=st.booleans(),
    packed=st.booleans(),
)
def test_what_is_kept_for_a_class_is_what_each_of_it_would_get(
    queries: int, keys: int, other: int, left: int, causal: bool, packed: bool
) -> None:
    band = {"causal": causal, "window": (left, -1), "alignment": "bottom_right", "varlen": packed}
    first, second = (
        AttentionProblem(3, 8, 2, queries + more, keys + more, 64, dtype="bfloat16", device="cuda", **band)
        for more in (0, other)
    )
    representative(first)
    found = representative(second)
    classes._of_class.clear()
    assert found == representative(second)


@pytest.mark.parametrize("name", ["batch", "seq_q", "seq_kv", "tokens_q", "tokens_kv"])
@pytest.mark.parametrize("size", [LARGEST, 2_000_000_000])
def test_the_largest_size_of_a_problem_is_not_rounded_beyond_it(name: str, size: int) -> None:
    packed = {"varlen": True} if name.startswith("tokens") else {}
    found = representative(replace(DECODE, **{"seq_q": 1000, "seq_kv": 1000, name: size}, **packed))
    assert getattr(found, name) in (2_013_265_920, LARGEST) and representative(found) == found


def test_a_problem_is_in_the_class_that_it_stands_for() -> None:
    prompt = replace(DECODE, seq_q=3000, seq_kv=3000, causal=True)
    assert representative(representative(prompt)) == representative(prompt)


def test_a_block_of_queries_is_no_step_of_decoding() -> None:
    short = AttentionProblem(32, 16, 16, 128, 128, 64, dtype="bfloat16", device="cuda")
    assert (representative(short).seq_q, representative(short).seq_kv) == (128, 128)
    token = AttentionProblem(32, 16, 16, 1, 129, 64, dtype="bfloat16", device="cuda")
    assert representative(token).seq_kv == 144
