"""Campaigns of one clock stand together, and those of another beside them; a second run adds its campaigns."""

import pytest

from microbench.machine.clock import is_off
from microbench.probe import Axis, Bound, Constant, Metric, Probe
from microbench.results import derive
from microbench.results.curves import at
from microbench.results.profile_constant import ProfileConstant
from microbench.results.record import Record, Run
from tests.cpu.test_derive import a_run
from tests.cpu.test_record import row

NOMINAL_HZ = 1.98e9
UNITS = {"latency_cycles": "cycles", "latency_ns": "ns", "rate_per_s": "1/s"}


def probe(metric: str, **more: object) -> Probe:
    told = Metric(metric, UNITS[metric], Bound("?"), **more)  # type: ignore[arg-type]
    name = Constant(metric, metric, at())
    return Probe("?", ("sm90a",), (told,), lambda *_: [], (Axis("size", (1,)),), constants=(name,), name="p")


def rows(metric: str, *values_at: tuple[float, float], cubin: str = "a" * 8) -> list[Record]:
    """A campaign each: its value, and the MHz it ran at."""
    told = {"metric": metric, "unit": UNITS[metric], "method": "nvrtc", "point": {"size": 1}, "cubin_sha256": cubin}
    return [row(value, campaign=c, clock_mhz=mhz, **told) for c, (value, mhz) in enumerate(values_at)]


def on_gpu(*records: Record, **told: object) -> Run:
    return a_run(*records, **{"arch": "sm90a", "clock_hz": NOMINAL_HZ, "uuid_sha256": "1" * 16} | told)


def constant(of: Probe, *runs: Run) -> ProfileConstant:
    (found,) = derive.reduce_runs(runs, [of]).profile.constants
    return found


DRAM = [(687.7, 1980.0), (687.8, 1980.1), (687.9, 1979.0), (687.8, 1981.0), (692.0, 1995.0), (692.1, 1995.0)]


def test_cycles_that_depend_on_the_clock_are_of_the_clock_with_most_campaigns() -> None:
    """DRAM of an H100: the median of all was 689.8, which no campaign had measured."""
    found = constant(probe("latency_cycles"), on_gpu(*rows("latency_cycles", *DRAM)))
    assert (found.value, found.n, found.clocks_mhz) == (pytest.approx(687.8), 4, (1979.0, 1981.0))
    (beside,) = found.beside
    assert (beside.clock_mhz, beside.value, beside.n) == (1995.0, pytest.approx(692.05), 2)
    assert found.flags == ("few campaigns: 4",)


def test_of_two_clocks_with_as_many_campaigns_the_higher_counts() -> None:
    found = constant(probe("latency_ns"), on_gpu(*rows("latency_ns", *[(347.0, 1980.0), (346.0, 1995.0)] * 3)))
    assert (found.value, found.n) == (346.0, 3) and found.beside[0].clock_mhz == 1980.0


def test_cycles_inside_the_sm_are_the_same_at_every_clock_and_stand_together() -> None:
    clocks = [(32.0, 1980.0), (32.01, 1995.0), (32.0, 1890.0), (32.0, 1965.0), (32.0, 2040.0), (32.0, 1950.0)]
    found = constant(probe("latency_cycles"), on_gpu(*rows("latency_cycles", *clocks)))
    assert (found.n, found.beside, found.clocks_mhz) == (6, (), (1890.0, 2040.0))


def test_a_time_is_of_one_clock_even_where_two_agree() -> None:
    found = constant(probe("latency_ns"), on_gpu(*rows("latency_ns", *[(100.0, 1980.0)] * 4, *[(100.0, 1965.0)] * 2)))
    assert found.n == 4 and found.beside[0].value == 100.0


def test_where_power_sets_the_clock_it_is_a_part_of_the_result() -> None:
    burst = [(8.5e14, 1600.0), (8.6e14, 1620.0), (8.4e14, 1590.0), (8.5e14, 1605.0), (8.5e14, 1635.0), (8.5e14, 1560.0)]
    found = constant(probe("rate_per_s", governed_by="power"), on_gpu(*rows("rate_per_s", *burst)))
    assert (found.n, found.beside, found.clocks_mhz, found.flags) == (6, (), (1560.0, 1635.0), ("off-clock",))


def test_what_nvml_said_of_a_clock_decides_nothing() -> None:
    """It says power-cap for a second after the load has gone, and nothing while tensor cores pull the clock down."""
    told = [
        each.model_copy(update={"flags": ("throttled:power-cap",) * (i < 4), "status": "throttled" if i < 4 else "ok"})
        for i, each in enumerate(rows("latency_ns", *[(100.0, 1980.0)] * 6))
    ]
    found = constant(probe("latency_ns"), on_gpu(*told))
    assert (found.n, found.flags) == (6, ())


@pytest.mark.parametrize(("mhz", "off"), [(1950.0, True), (1951.0, False), (1995.0, False), (2000.0, True)])
def test_a_clock_is_off_beyond_the_nominal_ones_band(mhz: float, off: bool) -> None:
    assert is_off(mhz, NOMINAL_HZ) is off and not is_off(None, NOMINAL_HZ) and not is_off(mhz, None)


def test_a_second_run_of_a_board_adds_its_campaigns() -> None:
    one, two = (on_gpu(*rows("latency_cycles", *[(v, 1980.0)] * 6), run_id=r) for r, v in (("a", 32.0), ("b", 32.02)))
    found = constant(probe("latency_cycles"), one, two)
    assert (found.n, found.runs, found.value, found.boards) == (12, ("a", "b"), pytest.approx(32.01), ())


def test_several_boards_of_a_kind_are_one_value_and_each_its_own() -> None:
    values = {"a" * 16: 650.0, "b" * 16: 660.0}
    runs = [on_gpu(*rows("latency_cycles", *[(v, 1980.0)] * 6), run_id=u[0], uuid_sha256=u) for u, v in values.items()]
    found = constant(probe("latency_cycles"), *runs)
    assert (found.n, found.value) == (12, 655.0)
    assert [(each.board, each.value, each.n) for each in found.boards] == [("a" * 8, 650.0, 6), ("b" * 8, 660.0, 6)]


def test_a_run_of_other_code_is_another_instrument() -> None:
    """The first FFMA loop gave 122.3 a clock, for it had 3 instructions of its own beside 64; the next one 126.9."""
    old = on_gpu(*rows("latency_cycles", *[(122.3, 1980.0)] * 6), run_id="a")
    new = on_gpu(*rows("latency_cycles", *[(126.9, 1980.0)] * 6, cubin="b" * 8), run_id="b", only=("p",))
    found = constant(probe("latency_cycles"), old, new)
    assert (found.value, found.n, found.runs) == (126.9, 6, ("b",))


def test_a_row_that_ran_faster_than_its_campaign_is_no_part_of_a_time() -> None:
    """After a load that hit the power cap an H100 ran some points at 2055 MHz."""
    from microbench.results.curves import over

    of = probe("latency_ns")
    of = Probe(**{**vars(of), "constants": (Constant("latency_ns", "latency_ns", over("size", 1, 3)),)})
    points = [
        each.model_copy(update={"point": {"size": size}, "clock_mhz": mhz, "value": value})
        for each in rows("latency_ns", *[(0.0, 0.0)] * 6)
        for size, mhz, value in ((1, 1980.0, 100.0), (2, 1980.0, 100.0), (3, 2055.0, 70.0))
    ]
    assert constant(of, on_gpu(*points)).clocks_mhz == (1980.0, 1980.0)
