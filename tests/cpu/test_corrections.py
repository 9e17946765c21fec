"""What timings say of a prediction: near problems more than far ones, and a word beside them."""

from hypothesis import given
from hypothesis import strategies as st

from attention.choose.corrections import OWN_WORD, Corrections, Observation, corrections
from attention.problem import AttentionProblem
from attention.variant import Config, by_path

OURS, TORCH = by_path("sm90a/forward/warp_specialised"), by_path("sm80/forward/torch_flash")
SIZES = st.sampled_from([2**octave for octave in range(8, 16)])
RATIOS = st.floats(0.2, 1.5)


def problem(queries: int, keys: int, batch: int = 1, head_dim: int = 128) -> AttentionProblem:
    return AttentionProblem(batch, 16, 16, queries, keys, head_dim, dtype="bfloat16", device="cuda")


def of(path: str, *seen: tuple[AttentionProblem, float]) -> Corrections:
    return corrections(Observation(by_path(path), Config(), each, ratio) for each, ratio in seen)


SEEN = st.lists(st.tuples(st.builds(problem, SIZES, SIZES, st.sampled_from((1, 4, 64))), RATIOS), min_size=1)


@given(SEEN, st.builds(problem, SIZES, SIZES))
def test_an_efficiency_lies_between_what_was_seen_and_of_ours_the_models_own_word(
    seen: list[tuple[AttentionProblem, float]], asked: AttentionProblem
) -> None:
    ratios = [ratio for _, ratio in seen]
    for variant, words in ((OURS, (1.0,)), (TORCH, ())):
        found = of(variant.path, *seen).nearest(variant, Config(), asked)
        assert found is not None
        assert min((*ratios, *words)) * 0.9999 <= found.value <= max((*ratios, *words)) * 1.0001


@given(SIZES, SIZES, RATIOS, RATIOS)
def test_the_nearer_of_two_problems_says_more(near: int, far: int, one: float, other: float) -> None:
    """By queries, keys or heads alike."""
    steps = (problem(4096, 4096 * 2), problem(4096 * 2, 4096), problem(4096, 4096, batch=2))
    here = problem(4096, 4096)
    values = [of(OURS.path, (here, one), (each, other)).nearest(OURS, Config(), here) for each in steps]
    assert values[0] is not None and values == [values[0]] * 3
    alone = of(OURS.path, (here, one)).nearest(OURS, Config(), here)
    swapped = of(OURS.path, (here, other), (steps[0], one)).nearest(OURS, Config(), here)
    assert alone is not None and swapped is not None
    if abs(one - other) > 0.01 and min(abs(one - 1), abs(other - 1)) > 0.01:
        assert (values[0].value < swapped.value) == (one < other)


def test_ours_keeps_the_models_word_and_torchs_is_taken_at_its_timings() -> None:
    here = problem(4096, 4096)
    ours, torchs = (of(each.path, (here, 0.5)).nearest(each, Config(), here) for each in (OURS, TORCH))
    assert ours is not None and torchs is not None
    assert abs(ours.value - 0.5 ** (1 / (1 + OWN_WORD))) < 1e-5 and torchs.value == 0.5


def test_a_configuration_is_told_by_what_it_differs_from_the_others_of_the_same_problem() -> None:
    """One that was timed where all were slow is no slower than the others for that."""
    decode = by_path("sm80/forward/split_keys")
    fast, slow, other = (Config((("key_splits", each),)) for each in (8, 16, 4))
    seen = [Observation(decode, fast, problem(1, 1024), 0.9), Observation(decode, slow, problem(1, 1024), 0.8)]
    seen += [Observation(decode, slow, problem(1, 65536), 0.6), Observation(decode, other, problem(1, 65536), 0.6)]
    found = corrections(seen)
    of_fast, of_slow, of_other = (found.nearest(decode, each, problem(1, 1024)) for each in (fast, slow, other))
    assert of_fast is not None and of_slow is not None and of_other is not None
    assert of_slow.value < of_other.value < of_fast.value


def test_what_was_never_timed_goes_by_what_all_others_showed() -> None:
    decode, here = by_path("sm80/forward/split_keys"), problem(1, 4096)
    found = corrections([Observation(decode, Config((("key_splits", 8),)), here, 0.5)])
    timed, untimed = (found.nearest(decode, Config((("key_splits", each),)), here) for each in (8, 2))
    assert timed is not None and untimed is not None
    assert untimed.value == timed.value and (untimed.near, untimed.timings) == (False, 0)
    assert found.nearest(decode, Config((("key_splits", 2),)), problem(1, 4096, head_dim=64)) is None


def test_a_head_dim_of_torchs_that_was_never_timed_goes_by_the_median_of_all() -> None:
    seen = [(problem(4096, keys), ratio) for keys, ratio in ((256, 0.4), (1024, 0.5), (4096, 0.9))]
    found = of(TORCH.path, *seen).nearest(TORCH, Config(), problem(4096, 4096, head_dim=64))
    assert found is not None and found.value == 0.5 and not found.near
