"""Blackwell by published constants: cycles of a tile by unit, which configuration leads, and how fast it may be."""

import pytest

from attention.choose.machine import named_machine
from attention.choose.model import Prediction, predict
from attention.choose.published_ranking import PublishedRanking, ranking
from attention.problem import AttentionProblem
from attention.variant import Config, by_path
from microbench.published import load
from microbench.results.profile import Profile

KERNEL = "sm100a/forward/tensor_memory"
LONG = "1,16,16,16384,16384"


def published(kind: str) -> Profile:
    profile = named_machine(kind).published
    assert profile is not None
    return profile


def ranked(shape: str, kind: str = "b200", *, causal: bool = False) -> PublishedRanking:
    problem = AttentionProblem.parse_shape(shape, dtype="bfloat16", causal=causal)
    return ranking(published(kind), problem.on("cuda"), ())


def of_a_tile(polynomial: int) -> dict[str, float]:
    """Cycles of each term for 128 rows by 128 keys: each SM of a B200 has 256 rows, and 64 tiles of keys."""
    profile = published("b200")
    problem = AttentionProblem.parse_shape("1,148,148,256,8192,128", dtype="bfloat16", causal=False).on("cuda")
    config = Config((("tile_keys", 128), ("polynomial", polynomial), ("dynamic", 0), ("cta_group", 1)))
    found: Prediction = predict(profile, problem, by_path(KERNEL), config)
    hz = profile["sm_clock_mhz"].value * 1e6
    return {term.term: term.seconds * hz / (64 * 2) for term in found.terms if term.phase == "tile"}


def test_a_tile_keeps_tensor_cores_and_exponentials_busy_for_the_same_1024_cycles() -> None:
    cycles = of_a_tile(0)
    # SA26 reached 8114 of 8192 FLOP a clock.
    assert cycles["products on tcgen05"] == pytest.approx(1024, rel=0.02)
    assert cycles["exponentials"] == pytest.approx(1024) and cycles["operands from shared memory"] == pytest.approx(768)


@pytest.mark.parametrize(("polynomial", "cycles"), [(4, 896), (8, 768)])
def test_polynomials_take_their_share_of_the_exponentials(polynomial: int, cycles: float) -> None:
    assert of_a_tile(polynomial)["exponentials"] == pytest.approx(cycles)
    assert of_a_tile(polynomial)["products on tcgen05"] == of_a_tile(0)["products on tcgen05"]


def test_our_tile_is_that_of_flash_attention_4_and_polynomials_lead_where_exponentials_are_the_limit() -> None:
    theirs = {fact.quantity: fact.value for fact in load().facts if fact.source == "FA4SRC" and fact.gpu == "B200"}
    wide, narrow = ranked(f"{LONG},128").candidates, ranked(f"{LONG},64").candidates
    tile = by_path(KERNEL).tile
    assert tile is not None
    of_ours = tile(AttentionProblem.parse_shape(f"{LONG},128", dtype="bfloat16").on("cuda"), wide[0].config)
    assert (of_ours.rows, of_ours.columns) == tuple(theirs[f"fa4_fwd_hd128_tile_{side}"] for side in ("rows", "keys"))
    # At head dim 128 all of them tie behind the products, FlashAttention-4's share among them; at 64 the most lead.
    shares = {each.config["polynomial"] / 32 for each in wide}
    assert theirs["fa4_fwd_hd128_causal_polynomial_share"] in shares
    assert len({each.prediction.seconds for each in wide if each.prediction}) == 1
    assert narrow[0].config["polynomial"] == 8 and narrow[0].prediction and wide[0].prediction
    assert wide[0].prediction.bound_by == "products on tcgen05" and narrow[0].prediction.bound_by == "exponentials"


@pytest.mark.parametrize("causal", [False, True])
def test_the_interval_holds_what_others_published_at_16k_and_says_why_its_end_misses(causal: bool) -> None:
    found = ranked(f"{LONG},128", causal=causal).speed
    assert found is not None and found.low < found.high
    names = [peer.kernel for peer in found.peers]
    assert names == ["FlashAttention-4", *(("cudnn", "cudnn (PyTorch)") if causal else ())]
    for peer in found.peers:
        assert found.low <= peer.flops_per_s <= found.high and peer.ratio == found.high / peer.flops_per_s
        assert bool(peer.why) == (abs(peer.ratio - 1) > 0.25) and "within our interval" in str(peer)
    assert "1.41 PFLOP/s, LEARNCUDA" in str(found)


def test_without_a_published_product_or_a_prediction_there_is_no_interval() -> None:
    assert ranked(f"{LONG},128", "b300").speed is None  # no L2 bandwidth is published
    assert ranked(f"{LONG},128", "t4").speed is None
    half = AttentionProblem.parse_shape(f"{LONG},128", dtype="float32", causal=False)
    assert ranking(published("b200"), half.on("cuda"), ()).speed is None
