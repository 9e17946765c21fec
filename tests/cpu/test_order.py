"""Constants that contradict one another are left out of a profile, each pair with a sentence."""

from microbench.results.order import in_order
from microbench.results.profile_constant import ProfileConstant
from tests.data.profiles import constant

RIGHT = {"l1_latency_cycles": 32.0, "l2_latency_cycles": 280.0, "dram_latency_cycles": 690.0}


def measured(values: dict[str, float]) -> list[ProfileConstant]:
    return [constant(name, value) for name, value in values.items()]


def test_levels_in_their_order_stay() -> None:
    assert in_order(measured(RIGHT)) == (measured(RIGHT), [])


def test_a_ring_that_never_leaves_the_l1_gives_no_latency_of_dram() -> None:
    kept, said = in_order(measured({"l1_latency_cycles": 32.0, "dram_latency_cycles": 32.0}))
    assert kept == [] and "the first must be less; both are left out" in said[0]


def test_two_levels_that_changed_places_leave_the_third_and_a_twin_alone() -> None:
    kept, said = in_order(measured(RIGHT | {"l2_latency_cycles": 700.0, "l1_latency_cycles_numba": 33.0}))
    assert [each.name for each in kept] == ["l1_latency_cycles", "l1_latency_cycles_numba"] and len(said) == 1


def test_an_interval_may_be_as_long_as_a_latency_and_no_longer() -> None:
    names = ("wgmma_bf16_interval_cycles", "wgmma_bf16_latency_cycles")
    for interval, kept in ((128.0, 2), (129.0, 0)):
        assert len(in_order(measured(dict(zip(names, (interval, 128.0), strict=True))))[0]) == kept
