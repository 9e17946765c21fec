"""Our Blackwell kernel by published constants: the bound of a tile, an interval at 16k, and the misses with numbers."""

import pytest

from attention import cli
from attention.choose.machine import named_machine
from attention.choose.model import predict
from attention.choose.prediction import Prediction
from attention.choose.published.cycles import cycles_of
from attention.choose.published.miss import Miss
from attention.choose.published.ranking import PublishedRanking, ranking
from attention.choose.published.speed import PublishedSpeed
from attention.problem import AttentionProblem
from attention.variant import Config, by_path
from microbench.console.si import digits
from microbench.published import load
from microbench.results.profile import Profile
from tests.cpu.commands import called

KERNEL = "sm100a/forward/tensor_memory"
LONG = "1,16,16,16384,16384"


def published(kind: str) -> Profile:
    profile = named_machine(kind).published
    assert profile is not None
    return profile


def ranked(shape: str, kind: str = "b200", *, causal: bool = False) -> PublishedRanking:
    problem = AttentionProblem.parse_shape(shape, dtype="bfloat16", causal=causal)
    return ranking(published(kind), problem.on("cuda"), ())


def speed(shape: str, kind: str = "b200", *, causal: bool = False) -> PublishedSpeed:
    found = ranked(shape, kind, causal=causal).speed
    assert found is not None
    return found


def of_a_tile(polynomial: int) -> dict[str, float]:
    """Cycles of each term for 128 rows by 128 keys: each SM of a B200 has 256 rows, and 64 tiles of keys."""
    profile = published("b200")
    problem = AttentionProblem.parse_shape("1,148,148,256,8192,128", dtype="bfloat16", causal=False).on("cuda")
    config = Config((("tile_keys", 128), ("polynomial", polynomial), ("dynamic", 0), ("cta_group", 1)))
    found: Prediction = predict(profile, problem, by_path(KERNEL), config)
    cycles = cycles_of(profile, problem, KERNEL, config, found)
    assert cycles is not None and cycles.waves == pytest.approx(1)
    hz = profile["sm_clock_mhz"].value * 1e6
    by_hand = {term.term: term.seconds * hz / (64 * 2) for term in found.terms if term.phase == "tile"}
    assert {each.term: each.cycles for each in cycles.terms if each.phase == "tile"} == pytest.approx(by_hand)
    return by_hand


def test_a_tile_keeps_tensor_cores_and_exponentials_busy_for_the_same_1024_cycles() -> None:
    cycles = of_a_tile(0)
    # SA26 reached 8114 of 8192 FLOP a clock.
    assert cycles["products on tcgen05"] == pytest.approx(1024, rel=0.02)
    assert cycles["exponentials"] == pytest.approx(1024) and cycles["operands from shared memory"] == pytest.approx(768)


@pytest.mark.parametrize(("polynomial", "cycles"), [(4, 896), (6, 832), (8, 768)])
def test_polynomials_take_their_share_of_the_exponentials(polynomial: int, cycles: float) -> None:
    assert of_a_tile(polynomial)["exponentials"] == pytest.approx(cycles)
    assert of_a_tile(polynomial)["products on tcgen05"] == of_a_tile(0)["products on tcgen05"]


@pytest.mark.parametrize("causal", [False, True])
def test_the_interval_at_16k_names_what_its_low_end_rests_on(causal: bool) -> None:
    found = speed(f"{LONG},128", causal=causal)
    assert found.low is not None and found.high is not None and found.band is not None
    assert found.low == pytest.approx(found.band.low * found.high) and found.band.figures >= 20
    assert found.band.like == "this head dim and mask within an octave" and found.band.lowest in str(found)
    assert set(found.band.sources) <= {source.id for source in load().sources}


def test_a_figure_of_a_shape_is_compared_and_a_headline_stands_apart() -> None:
    for causal, names in ((False, ["FlashAttention-4"]), (True, ["FlashAttention-4", "cudnn", "cudnn (PyTorch)"])):
        peers = speed(f"{LONG},128", causal=causal).peers
        assert [peer.kernel for peer in peers if peer.share] == names
        assert all(
            "D=128" in peer.figure and f" {'causal' if causal else 'full'}," in peer.figure for peer in peers[:-1]
        )
        headline = peers[-1]
        assert headline.share is headline.miss is None and "tells no shape" in str(headline)
        assert "1.61 PFLOP/s" in headline.figure and "compared with nothing" in str(headline)


@pytest.mark.parametrize("causal", [False, True])
def test_a_peers_figure_is_a_share_of_the_highest_that_nothing_has_borne_out(causal: bool) -> None:
    found = speed(f"{LONG},128", causal=causal)
    assert str(found).startswith("Predicted, by a model that no such GPU bears out: ") and found.band is not None
    shares = [peer.share for peer in found.peers if peer.share]
    assert shares and all(found.band.low <= share <= 1 for share in shares)
    for peer in found.peers:
        assert "times theirs" not in str(peer)
        if peer.share:
            assert f"theirs was measured, and is {digits(peer.share)} of the highest" in str(peer)
            assert "ours has not run" in str(peer)


def test_a_head_dim_that_nobody_published_has_no_figure_of_another_one_beside_it() -> None:
    found = speed(f"{LONG},96")
    assert [peer.share for peer in found.peers] == [None]  # the headline
    assert found.band is not None and "at any head dim" in found.band.like


def test_cudnns_full_figures_of_128_at_16k_have_a_prediction_on_their_own_board() -> None:
    (peer,) = speed(f"{LONG},128", "gb200").peers
    assert peer.kernel == "cudnn" and "16384 tokens on GB200: 1.77 PFLOP/s" in peer.figure
    assert peer.miss is not None and "No source gives the clock of this board under attention" in str(peer)


def misses() -> dict[str, Miss]:
    asked = (("64", "b200"), ("128", "b200"), ("128", "gb200"), ("192", "gb200"), ("256", "gb200"))
    every = {}
    for dims, kind in asked:
        for causal in (False, True):
            shape = f"{LONG},192,128" if dims == "192" else f"{LONG},{dims}"
            every |= {str(peer): peer.miss for peer in speed(shape, kind, causal=causal).peers if peer.miss}
    return every


def test_each_miss_says_what_would_have_to_change_by_how_much() -> None:
    found = misses()
    assert len(found) >= 8 and len({str(miss) for miss in found.values()}) == len(found)
    for said, miss in found.items():
        assert miss.ratio > 1.25 and f"{miss.needed_mhz:.0f} MHz" in said and f"{miss.open_cycles:.0f} cycles" in said
        # Either alone explains the whole of it.
        assert miss.needed_mhz * miss.ratio == pytest.approx(miss.ours.clock_mhz)
        assert (miss.ours.tile + miss.open_cycles) / miss.ours.tile == pytest.approx(miss.ratio)
        assert miss.ours.hidden.term in said


def test_a_miss_names_the_clock_that_a_source_gives_and_calls_the_rest_unknown() -> None:
    (fact,) = (fact for fact in load().facts if fact.quantity == "clock_sm_attention_mhz")
    of_b200 = [(said, miss) for said, miss in misses().items() if "on B200" in said]
    assert of_b200 and (fact.gpu, fact.value, fact.source) == ("B200", 1580, "FIB2899")
    for said, miss in of_b200:
        assert miss.power_mhz == fact.value and "falls to 1580 MHz (FIB2899)" in said
        assert ("no source says where" in said) == (miss.ratio > miss.ours.clock_mhz / fact.value)


def test_without_a_constant_the_speed_is_unpredicted_and_names_it() -> None:
    found = speed(f"{LONG},128", "b300")
    assert found.low is None and "or l2_bandwidth_bytes_per_s of b300" in str(found)
    assert found.high is not None and "at most 2.35 PFLOP/s" in str(found)
    assert [(peer.share, "on GB300" in peer.figure) for peer in found.peers] == [(None, True)]


def test_a_board_whose_sms_nobody_counted_is_unpredicted_and_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = called(capsys, cli.main, "explain", "--gpu", "a40", "--shape", f"{LONG},128")
    why = "unpredicted, because no document that was read counts the SMs of a40"
    assert code == 0 and why in " ".join(out.split())


def test_without_a_published_forward_or_a_configuration_there_is_no_interval() -> None:
    assert ranked(f"{LONG},128", "t4").speed is None
    full = AttentionProblem.parse_shape(f"{LONG},128", dtype="float32", causal=False)
    assert ranking(published("b200"), full.on("cuda"), ()).speed is None
