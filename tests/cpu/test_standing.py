"""compare A B: SAME, FASTER, SLOWER or AMBIGUOUS, by which way is better and by how far a quantity repeats."""

import pytest

from microbench.cli.compare import pair_rows
from microbench.health.standing import counts, pairs, stands
from microbench.results.profile import Profile
from microbench.results.profile_constant import ProfileConstant


def constant(
    value: float, spread: float = 0.0, name: str = "l1_latency_cycles", unit: str = "cycles"
) -> ProfileConstant:
    ends = {"low": value * (1 - spread), "high": value * (1 + spread)}
    return ProfileConstant(name=name, value=value, unit=unit, n=6, runs=("r",), probe="p", method="nvrtc", **ends)


def profile(*constants: ProfileConstant) -> Profile:
    return Profile(gpu="a", name="A", arch="sm90a", sm_count=132, constants=constants)


BANDWIDTH = {"name": "dram_bandwidth_bytes_per_s", "unit": "B/s"}


@pytest.mark.parametrize(
    ("one", "other", "word"),
    [
        (constant(32.0), constant(32.2), "SAME"),
        (constant(32.0), constant(33.0), "SLOWER"),
        (constant(32.0), constant(31.0), "FASTER"),
        (constant(3e12, **BANDWIDTH), constant(3.2e12, **BANDWIDTH), "FASTER"),
        (constant(3e12, **BANDWIDTH), constant(2.8e12, **BANDWIDTH), "SLOWER"),
        (constant(3e12, **BANDWIDTH), constant(3.06e12, **BANDWIDTH), "SAME"),
        (constant(32.0, 0.1), constant(34.0, 0.1), "AMBIGUOUS"),
        (constant(32.0, 0.1), constant(32.0, 0.1), "AMBIGUOUS"),
    ],
)
def test_how_one_constant_stands_to_another(one: ProfileConstant, other: ProfileConstant, word: str) -> None:
    assert stands(one, other) == word


def test_the_summary_counts_the_worst_word_first_and_leaves_out_a_lone_second_method() -> None:
    here = profile(constant(32.0), constant(4.0, name="ffma_latency_cycles"), constant(1e12, **BANDWIDTH))
    twin = constant(32.0, name="l1_latency_cycles_numba").model_copy(update={"method": "numba"})
    there = profile(constant(40.0), constant(4.0, name="ffma_latency_cycles"), twin)
    assert counts(pairs(here, there)) == {"SLOWER": 1, "SAME": 1, "ONLY HERE": 1}


def test_more_than_a_lower_bound_is_not_faster_for_it() -> None:
    bound = constant(122.0, name="ffma_per_clk_sm", unit="results/clk/SM").model_copy(update={"label": "lower bound"})
    more = constant(127.0, name="ffma_per_clk_sm", unit="results/clk/SM")
    assert (stands(bound, more), stands(more, bound)) == ("AMBIGUOUS", "AMBIGUOUS")


def test_how_two_stand_does_not_depend_on_who_is_named_first() -> None:
    one, other = (
        constant(1.0, name="a_flops_per_s", unit="FLOP/s"),
        constant(0.9704, name="a_flops_per_s", unit="FLOP/s"),
    )
    assert (stands(one, other), stands(other, one)) == ("SLOWER", "FASTER")


def test_a_row_says_how_far_its_values_may_lie_apart_and_who_sees_to_it() -> None:
    launch = constant(3856.0, 0.2, name="event_to_event_empty_kernel_ns", unit="ns").model_copy(
        update={"governed_by": "host"}
    )
    there = launch.model_copy(update={"value": 2984.0, "low": 2832.0, "high": 3616.0})
    of_host, of_chip = pairs(profile(launch, constant(32.0)), profile(there, constant(32.0)))
    assert (of_host.standing, of_chip.standing) == ("SAME", "SAME")
    rows = pair_rows((of_host, of_chip))
    assert "0.774" in rows[0] and "30%, host" in rows[0] and "1%" in rows[1]
