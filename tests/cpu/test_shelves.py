"""microbench.shelves: the levels of a noisy ladder."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from microbench.curves import Curves, NoValue
from microbench.probe import Point
from microbench.shelves import cache_latency, cache_size, memory_latency, shelves

KIB = 1024
SIZES = np.array([4 * KIB * 2 ** (i / 4) for i in range(4 * 16 + 1)])
LATENCY_NS = (0.9, 3.1, 11.0, 140.0)
CACHES = (48 * KIB, 1024 * KIB, 16 * KIB * KIB)


def ladder(caches: tuple[float, ...] = CACHES, levels: tuple[float, ...] = LATENCY_NS) -> np.ndarray:
    """The mean latency of a random chase: each cache serves its share of the footprint."""
    shares = [np.minimum(1.0, size / SIZES) for size in caches]
    served = np.diff([np.zeros_like(SIZES), *shares, np.ones_like(SIZES)], axis=0)
    return np.array(levels) @ served


def curves(*rows: np.ndarray) -> Curves:
    return Curves(tuple(Point((("footprint_bytes", float(size)),)) for size in SIZES), np.array(rows))


@given(
    st.integers(32, 128).map(lambda kib: kib * KIB),
    st.integers(10, 16),
    st.integers(8, 32),
    st.integers(0, 2**32 - 1),
)
def test_levels_and_sizes_are_found_under_noise(l1: int, l2_ratio: int, l3_ratio: int, seed: int) -> None:
    sizes = (l1, l1 * l2_ratio, l1 * l2_ratio * l3_ratio)
    if sizes[2] * 2 > SIZES[-1]:
        return
    clean = ladder(sizes)
    noise = np.random.default_rng(seed).uniform(1.0, 1.03, (6, len(SIZES)))
    measured = curves(*(clean * noise))
    first = cache_latency(0, "footprint_bytes")(measured).per_campaign
    assert first == pytest.approx(np.full(6, LATENCY_NS[0]), rel=0.05)
    assert memory_latency("footprint_bytes")(measured).per_campaign.min() > 0.4 * LATENCY_NS[3]
    # A step of the sweep is 19 %; half of a random ring larger than a cache still hits, which moves the crossing up.
    found = cache_size(0, "footprint_bytes")(measured).per_campaign
    assert (found > 0.8 * sizes[0]).all()
    assert (found < 2.2 * sizes[0]).all()


def test_sharp_ends_are_found_within_a_step() -> None:
    sharp = np.select([size >= SIZES for size in CACHES], LATENCY_NS[:3], LATENCY_NS[3])
    for number, size in enumerate(CACHES):
        assert cache_latency(number, "footprint_bytes")(curves(sharp)).per_campaign == pytest.approx(LATENCY_NS[number])
        assert cache_size(number, "footprint_bytes")(curves(sharp)).per_campaign == pytest.approx(size, rel=0.2)


def test_a_sloped_level_is_one_level() -> None:
    sharp = np.select([size >= SIZES for size in CACHES], LATENCY_NS[:3], LATENCY_NS[3])
    sloped = sharp * (SIZES / SIZES[0]) ** 0.1
    assert len(shelves(SIZES, sloped)) == 4


def test_a_cache_that_does_not_show_is_left_out_and_memory_is_not_taken_for_it() -> None:
    two = np.select([CACHES[0] >= SIZES, CACHES[1] >= SIZES], LATENCY_NS[:2], LATENCY_NS[3])
    with pytest.raises(NoValue, match="cannot be told from memory"):
        cache_latency(2, "footprint_bytes")(curves(two))
    assert memory_latency("footprint_bytes")(curves(two)).per_campaign == pytest.approx(LATENCY_NS[3])
    assert cache_size(1, "footprint_bytes")(curves(two)).per_campaign == pytest.approx(CACHES[1], rel=0.2)


def test_a_ladder_of_one_level_says_nothing_of_memory() -> None:
    with pytest.raises(NoValue, match="one level only"):
        memory_latency("footprint_bytes")(curves(np.full(len(SIZES), 1.0)))


def test_one_disturbed_point_makes_no_level() -> None:
    sharp = np.select([size >= SIZES for size in CACHES], LATENCY_NS[:3], LATENCY_NS[3])
    sharp[5] *= 2
    assert len(shelves(SIZES, sharp)) == 4


def test_a_campaign_without_a_value_keeps_its_gap() -> None:
    sharp = np.select([size >= SIZES for size in CACHES], LATENCY_NS[:3], LATENCY_NS[3])
    lost = np.full(len(SIZES), np.nan)
    with np.errstate(all="ignore"):
        found = cache_size(1, "footprint_bytes")(curves(sharp, lost)).per_campaign
    assert np.isfinite(found).tolist() == [True, False]


def test_too_few_points_are_said() -> None:
    with pytest.raises(NoValue, match="four finite points"):
        shelves(SIZES[:3], np.ones(3))
