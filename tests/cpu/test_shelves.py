"""microbench.results.shelves: the levels of a noisy ladder."""

from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from microbench.machine import cpu as host_cpu
from microbench.machine.arch import Machine, by_name
from microbench.point import Curves, NoValue, Point
from microbench.probes.host.host_memory_latency import PROBE, too_large
from microbench.results.shelves import cache_latency, cache_size, memory_latency, shelves

KIB = 1024
SIZES = np.array([4 * KIB * 2 ** (i / 4) for i in range(4 * 16 + 1)])
LATENCY_NS = (0.9, 3.1, 11.0, 140.0)
CACHES = (48 * KIB, 1024 * KIB, 16 * KIB * KIB)
SHARP = np.select([size >= SIZES for size in CACHES], LATENCY_NS[:3], LATENCY_NS[3])


def numbers(text: str) -> np.ndarray:
    """Numbers between blanks."""
    return np.array(text.split(), dtype=np.float64)


# Ladders of a shared virtual machine (AMD EPYC family 26 model 2; L1 48 KiB, L2 1 MiB, L3 32 MiB), ns at KiB, two
# campaigns each. Strangers use its last cache, so the end of it and the memory beyond are noisy.
REAL_KIB = numbers("""
    4 16 23 32 45 64 91 128 181 256 362 512 724 1024 1448 2048 2896 4096 5793 8192 11585 16384 23170 32768 46341 65536
    131072
    """)
REAL_NS = {
    "half_of_the_memory_end_rises": (
        numbers("""
            0.966 0.958 0.957 0.958 0.961 3.34 3.34 3.36 3.34 3.34 3.32 3.81 4.69 8.79 10.7 12.6 12.5 13.7 12.9 13.2
            13.5 16.2 110 101 132 134 146
            """),
        numbers("""
            0.975 0.973 0.969 0.969 0.97 3.37 3.37 3.37 3.36 3.35 3.39 3.83 4.43 7.77 9.88 10.8 11.8 12.4 12.9 13.1
            15.6 84 49.9 73.7 128 137 146
            """),
    ),
    "a_disturbed_last_cache": (
        numbers("""
            0.974 0.977 0.984 0.98 0.976 3.4 3.39 3.39 3.39 3.39 3.38 3.82 4.27 7.22 10.2 11.3 11 11.8 13.5 16.5 12.9
            19.2 69.7 113 149 144 150
            """),
        numbers("""
            0.96 0.965 0.968 0.97 0.97 3.39 3.37 3.38 3.37 3.37 3.37 3.82 5.8 7.49 10.4 10.9 11.5 130 25.5 12.9 13.2
            111 57.2 95.5 145 146 162
            """),
    ),
    "still_rising": (
        numbers("""
            0.968 0.972 0.971 0.969 0.969 3.4 3.41 3.41 3.41 3.4 3.4 3.4 3.43 5.95 10.5 11.1 11.3 12.2 12.6 13.3 83.5
            134 126 120 133 145 153
            """),
        numbers("""
            0.961 0.961 0.959 0.968 0.969 3.4 3.4 3.4 3.38 3.39 3.4 3.39 3.42 4.97 9.52 11.2 11.4 12.4 12.8 13.2 13.4
            14.5 31.1 51 69.2 132 145
            """),
    ),
}
# The same machine at four points to the octave, the median of six campaigns.
FULL_KIB = numbers("""
    4 8 16 19 23 27 32 38 45 54 64 76 91 108 128 152 181 215 256 304 362 431 512 609 724 861 1024 1218 1448 1722 2048
    2435 2896 3444 4096 4871 5793 6889 8192 9742 11585 13777 16384 19484 23170 27554 32768 38968 46341 55109 65536
    93184 131072
    """)
FULL_NS = numbers("""
    0.971 0.968 0.97 0.966 0.97 0.969 0.965 0.961 0.969 3.41 3.39 3.39 3.39 3.39 3.38 3.4 3.4 3.4 3.4 3.4 3.39 3.6
    3.84 4.05 4.45 5.29 6.54 8.22 9.13 9.87 10.5 10.9 11.6 11.9 12.5 12.7 12.8 13.1 13.5 13.8 14 15.6 21.3 45.2 56.1
    65.2 88.3 102 105 120 128 140 149
    """)


def ladder(caches: tuple[float, ...] = CACHES, levels: tuple[float, ...] = LATENCY_NS) -> np.ndarray:
    """The mean latency of a random chase: each cache serves its share of the footprint."""
    shares = [np.minimum(1.0, size / SIZES) for size in caches]
    served = np.diff([np.zeros_like(SIZES), *shares, np.ones_like(SIZES)], axis=0)
    return np.array(levels) @ served


def curves(*rows: np.ndarray, sizes: Iterable[float] = tuple(SIZES)) -> Curves:
    return Curves(tuple(Point((("footprint_bytes", float(size)),)) for size in sizes), np.array(rows))


@settings(deadline=None)  # the first example imports SciPy
@given(
    st.integers(32, 128).map(lambda kib: kib * KIB), st.integers(10, 16), st.integers(8, 32), st.integers(0, 2**32 - 1)
)
def test_levels_and_sizes_are_found_under_noise(l1: int, l2_ratio: int, l3_ratio: int, seed: int) -> None:
    sizes = (l1, l1 * l2_ratio, l1 * l2_ratio * l3_ratio)
    assume(sizes[2] * 8 <= SIZES[-1])  # as far as the probe's sweep goes
    clean = ladder(sizes)
    measured = curves(*(clean * np.random.default_rng(seed).uniform(1.0, 1.03, (6, len(SIZES)))))
    first = cache_latency(0, "footprint_bytes")(measured).per_campaign
    assert first == pytest.approx(np.full(6, LATENCY_NS[0]), rel=0.05)
    assert memory_latency("footprint_bytes")(measured).per_campaign.min() > 0.4 * LATENCY_NS[3]
    # A step of the sweep is 19 %; half of a random ring larger than a cache still hits, which moves the crossing up.
    found = cache_size(0, "footprint_bytes")(measured).per_campaign
    assert (found > 0.8 * sizes[0]).all() and (found < 2.2 * sizes[0]).all()


def test_sharp_ends_are_found_within_a_step() -> None:
    for number, size in enumerate(CACHES):
        assert cache_latency(number, "footprint_bytes")(curves(SHARP)).per_campaign == pytest.approx(LATENCY_NS[number])
        assert cache_size(number, "footprint_bytes")(curves(SHARP)).per_campaign == pytest.approx(size, rel=0.2)


def test_a_sloped_level_is_one_level() -> None:
    assert len(shelves(SIZES, SHARP * (SIZES / SIZES[0]) ** 0.1)) == 4


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
    assert len(shelves(SIZES, np.where(np.arange(len(SIZES)) == 5, 2, 1) * SHARP)) == 4


def test_a_campaign_without_a_value_keeps_its_gap() -> None:
    with np.errstate(all="ignore"):
        found = cache_size(1, "footprint_bytes")(curves(SHARP, np.full(len(SIZES), np.nan))).per_campaign
    assert np.isfinite(found).tolist() == [True, False]


def test_too_few_points_are_said() -> None:
    with pytest.raises(NoValue, match="four finite points"):
        shelves(SIZES[:3], np.ones(3))


@pytest.mark.parametrize("name", REAL_NS)
def test_a_noisy_memory_end_gives_the_memory_or_nothing_and_never_a_cache(name: str) -> None:
    measured = curves(*REAL_NS[name], sizes=KIB * REAL_KIB)
    last_ns = REAL_NS[name][0][-1]
    try:
        assert memory_latency("footprint_bytes")(measured).per_campaign == pytest.approx(last_ns, rel=0.12)
    except NoValue as why:
        assert name == "still_rising"
        assert "still rises" in str(why)
    assert cache_latency(2, "footprint_bytes")(measured).per_campaign == pytest.approx(12.5, rel=0.1)


def test_a_full_ladder_with_a_noisy_memory_end_has_all_four_levels() -> None:
    measured = curves(FULL_NS, sizes=KIB * FULL_KIB)
    assert memory_latency("footprint_bytes")(measured).per_campaign == pytest.approx(FULL_NS[-1], rel=0.12)
    assert cache_latency(2, "footprint_bytes")(measured).per_campaign == pytest.approx(12.5, rel=0.1)
    assert 8 * KIB**2 < cache_size(2, "footprint_bytes")(measured).per_campaign[0] < 32 * KIB**2


def test_a_last_level_that_the_curve_leaves_is_a_cache() -> None:
    rising = np.select([size >= SIZES for size in CACHES], LATENCY_NS[:3], LATENCY_NS[2] * 4 * SIZES / SIZES[-1])
    rising = np.maximum.accumulate(np.where(CACHES[2] < SIZES, np.maximum(rising, LATENCY_NS[2]), rising))
    with pytest.raises(NoValue, match="still rises where it ends"):
        memory_latency("footprint_bytes")(curves(rising))
    assert cache_latency(2, "footprint_bytes")(curves(rising)).per_campaign == pytest.approx(LATENCY_NS[2])
    # The line above crosses twice the level at half of the largest footprint.
    assert cache_size(2, "footprint_bytes")(curves(rising)).per_campaign == pytest.approx(SIZES[-1] / 2, rel=0.01)


def test_memory_counts_only_the_last_octave() -> None:
    sharp = np.select([size >= SIZES for size in CACHES[:2]], LATENCY_NS[:2], LATENCY_NS[3])
    near = (CACHES[1] < SIZES) & (SIZES[-1] / 2 > SIZES)
    assert memory_latency("footprint_bytes")(curves(np.where(near, 0.9 * sharp, sharp))).per_campaign == LATENCY_NS[3]


@pytest.mark.parametrize("quick", [False, True])
def test_the_ladder_has_five_points_that_are_memory(quick: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_cpu, "caches", lambda: host_cpu.Caches(48 * KIB, KIB**2, 32 * KIB**2))
    runs = [point["footprint_bytes"] for point in PROBE.points(quick) if not too_large(machine(2**34), point)]
    assert runs[-1] == 256 * KIB**2 and len([size for size in runs if size >= 64 * KIB**2]) == 5


def test_a_memory_too_small_to_leave_the_last_cache_gives_no_ladder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_cpu, "caches", lambda: host_cpu.Caches(48 * KIB, KIB**2, 96 * KIB**2))
    assert all(too_large(machine(2**29), point) for point in PROBE.points())


def machine(dram_bytes: int) -> Machine:
    """A host with this memory."""
    return Machine("host-x", "x", by_name("host"), 2, None, None, dram_bytes, None)
