"""Our configurations beside FlashAttention-4's own table: its rows, its tile, and what tells ours apart."""

import pytest

from attention.choose.foreseen import judged, ranks
from attention.choose.model import predict
from attention.choose.published.ranking import ranking
from attention.choose.published.table import TheirChoice, their_choice
from attention.problem import AttentionProblem
from attention.variant import Config, by_path
from microbench.published import load
from tests.cpu.test_published_speed import KERNEL, LONG, published, ranked

KEYS, REST = (("tile_keys", 128),), (("dynamic", 0), ("cta_group", 1))


def theirs(head_dim: int, *, causal: bool, kind: str = "b200") -> TheirChoice | None:
    problem = AttentionProblem(1, 16, 16, 4096, 4096, head_dim, causal=causal, dtype="bfloat16").on("cuda")
    return their_choice(published(kind), problem)


@pytest.mark.parametrize(
    ("kind", "head_dim", "causal", "row"),
    [
        ("b200", 64, False, (1, 4, 200, 64, 48)),
        ("b200", 64, True, (1, 4, 200, 64, 48)),
        ("b200", 96, False, (1, 4, 192, 80, 48)),
        ("b200", 128, False, (2, 6, 176, 88, 72)),
        ("b200", 128, True, (1, 4, 192, 72, 56)),
        ("b200", 192, False, (2, 6, 184, 80, 64)),
        ("b200", 192, True, (1, 2, 192, 72, 56)),
        ("b200", 256, False, (2, None, 256, 160, 32)),
        ("b200", 256, True, (2, None, 256, 160, 32)),
        ("gb200", 128, False, (2, 6, 176, 88, 72)),
        ("b300", 128, False, (2, 0, 176, 80, 80)),
        ("b300", 128, True, (1, 0, 176, 64, 96)),
        ("b300", 192, False, (2, 0, 176, 64, 96)),
        ("b300", 192, True, (1, 0, 176, 72, 88)),
    ],
)
def test_each_row_of_their_table_is_on_file(kind: str, head_dim: int, causal: bool, row: tuple[int, ...]) -> None:
    found = theirs(head_dim, causal=causal, kind=kind)
    assert found is not None
    assert (found.ctas, found.polynomial, found.softmax, found.correction, found.other) == row
    if head_dim < 256:  # two softmax warpgroups and one that corrects share an SM's registers with the others
        assert 2 * found.softmax + found.correction + found.other <= 512


def test_where_their_table_has_no_row_nothing_stands_beside_ours() -> None:
    assert theirs(80, causal=False) is None and theirs(64, causal=False, kind="b300") is None


def test_our_tile_is_theirs_and_one_of_ours_takes_their_share() -> None:
    on_file = {fact.quantity: fact.value for fact in load().facts if fact.source == "FA4SRC" and fact.gpu == "B200"}
    tile = by_path(KERNEL).tile
    assert tile is not None
    for causal in (False, True):
        found = ranked(f"{LONG},128", causal=causal)
        problem = AttentionProblem.parse_shape(f"{LONG},128", dtype="bfloat16", causal=causal).on("cuda")
        ours = tile(problem, found.candidates[0].config)
        sides = tuple(on_file[f"fa4_fwd_hd128_tile_{side}"] for side in ("rows", "keys"))
        assert (ours.rows, ours.columns) == sides
        assert found.theirs is not None and any(found.theirs.same_share(each.config) for each in found.candidates)


def test_the_least_share_that_hides_a_turn_behind_the_other_ones_products_is_theirs() -> None:
    found = ranked(f"{LONG},128")
    alone = [each for each in found.candidates if (each.config["cta_group"], each.config["dynamic"]) == (1, 0)]
    assert [each.config["polynomial"] for each in alone] == [6, 8, 4, 0]
    seconds = [each.prediction.seconds for each in alone if each.prediction]
    assert seconds[0] == seconds[1] < seconds[2] < seconds[3]
    assert [each.prediction.bound_by for each in alone if each.prediction] == [
        *2 * ["products on tcgen05"],
        *2 * ["turns by their exponentials"],
    ]
    assert found.theirs is not None and found.theirs.same_share(alone[0].config)  # 6 of 32, full
    # A pair's products take longer to come back: it hides a turn with one share more.
    pairs = [each.config["polynomial"] for each in found.candidates if each.config["cta_group"] == 2]
    assert pairs == [8, 6, 4, 0]


def test_more_polynomials_than_we_have_would_cost_more_than_they_save() -> None:
    tile, profile = by_path(KERNEL).tile, published("b200")
    assert tile is not None
    problem = AttentionProblem.parse_shape(f"{LONG},64", dtype="bfloat16", causal=False).on("cuda")
    shares = tuple(range(0, 33, 2))
    times = [
        predict(profile, problem, by_path(KERNEL), Config((*KEYS, ("polynomial", each), *REST))).seconds
        for each in shares
    ]
    best = shares[times.index(min(times))]
    assert 8 < best < 32 and times[-1] > times[shares.index(best)]
    # Behind longer products nothing is to be gained by any.
    wide = AttentionProblem.parse_shape(f"{LONG},192,128", dtype="bfloat16", causal=False).on("cuda")
    found = ranking(profile, wide, ()).candidates
    assert found[0].config["polynomial"] == 0


def test_a_published_comparison_stands_beside_our_pairs_with_the_miss_and_its_reason() -> None:
    found = ranked(f"{LONG},128")
    assert found.pair is not None and found.pair.fact.source == "FA4P2741" and found.pair.theirs == 1.205
    assert found.pair.pair == pytest.approx(found.pair.single)  # both behind the products
    assert found.pair.open_cycles == pytest.approx(0.205 * found.pair.single)
    assert "no source gives it" in str(found.pair) and "1.105 to 1.560" in str(found.pair)
    assert ranked(f"{LONG},64").pair is None and ranked(f"{LONG},128", causal=True).pair is None


@pytest.mark.parametrize("shape", [f"{LONG},64", f"{LONG},128", f"{LONG},192,128", "1,8,8,16384,16384,256"])
def test_a_pair_whose_waits_no_source_prices_follows_every_single_block(shape: str) -> None:
    found = ranked(shape)
    singles = [each for each in found.candidates if each.config["cta_group"] == 1]
    pairs = found.candidates[len(singles) :]
    assert pairs and {each.config["cta_group"] for each in pairs} == {2} and found.candidates[0] == singles[0]
    assert all(each.unpriced for each in pairs) and not any(each.unpriced for each in singles)
    # So it is by intervals, too: the fast end of the best pair is inside the best single block's.
    assert found.speed is not None and found.speed.band is not None
    fast, single = (of[0].prediction.seconds for of in (pairs, singles) if of[0].prediction)
    assert fast > single * found.speed.band.low and fast < single / found.speed.band.low


def test_what_the_model_cannot_tell_apart_is_tied() -> None:
    every = ranked(f"{LONG},128").candidates
    found = tuple(each for each in every if each.config["cta_group"] == 1)  # of pairs none has a counter
    assert ranks(found) == ("1=", "1=", "3=", "3=", "5=", "5=", "7=", "7=")
    assert judged(found[0]) == judged(found[1]) and found[0].config["dynamic"] != found[1].config["dynamic"]


def test_at_head_dim_64_the_most_polynomials_lead_by_time() -> None:
    narrow = ranked(f"{LONG},64").candidates
    assert narrow[0].config["polynomial"] == 8 and narrow[0].prediction and narrow[-1].prediction
    assert narrow[0].prediction.bound_by == "exponentials"
    assert narrow[0].prediction.seconds < narrow[-1].prediction.seconds
