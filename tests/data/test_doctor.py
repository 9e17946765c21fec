"""`doctor` on the committed runs: healthy as they are, and each doctored quantity named, none at half its tolerance."""

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from microbench.cli import doctor
from microbench.health.findings import SLOWEST_SM, TIMED_OTHERWISE, findings, slow_sms
from microbench.health.reference import reference_of
from microbench.health.tolerance import spread, tolerance
from microbench.machine.nvml import State
from microbench.point import Point
from microbench.probes import discover
from microbench.results import record
from microbench.results.parts import point_of
from microbench.results.profile import Profile
from microbench.results.profile_constant import ProfileConstant
from microbench.results.record import Record, Run

KINDS = ("h100-sxm-80gb", "h200-sxm-141gb")
FILES = [file for kind in KINDS for file in record.run_files(kind)]
TMA = [
    *("tma_128_byte_rows_across_per_clk_sm", "tma_64_byte_rows_per_clk_sm", "tma_128_byte_rows_per_clk_sm"),
    *("tma_32_byte_rows_across_per_clk_sm", "tma_32_byte_rows_per_clk_sm", "tma_64_byte_rows_across_per_clk_sm"),
]
# What is off in a committed run, and truly so: the first soaks told the median of five seconds' watts, each known to
# 10 %; and of the probes of composites alone one window read 2040 MHz on a board that admits 1980.
OFF = {
    "20261123T130933Z-7d9071": ["wgmma_bf16_zeros_sustained_power_w"],
    "20261125T210102Z-51fe0a": ["clock"],
    # A thread gave up where a stage of boxes had not come at once, or after four tries.
    "20261128T205358Z-f5d626": TMA,
    "20261128T211426Z-bb9060": TMA,
}
IN_MANY_POINTS = ("wgmma_bf16_zeros_sustained_power_w", "clock")  # a quick run has too few to show it
H200 = "20261123T135231Z-d94235"


@cache
def read(file: Path) -> Run:
    return record.read(file)


@cache
def examined(file: Path) -> doctor.Examined:
    return doctor.examine(read(file))


def h200() -> doctor.Examined:
    return examined(next(file for file in FILES if file.stem == H200))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_committed_run_is_healthy_against_its_kind(file: Path) -> None:
    assert [finding.about for finding in examined(file).findings] == OFF.get(file.stem, [])


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_so_are_the_points_and_campaigns_that_a_quick_run_has(file: Path) -> None:
    run = read(file)
    points = {probe.name: set(probe.points(quick=True)) for probe in discover()}
    few = tuple(row for row in run.records if row.campaign < 2 and _in(point_of(row), points.get(row.probe, set())))
    quick = run.environment.model_copy(update={"quick": True, "campaigns": 2})
    found = doctor.examine(run.model_copy(update={"environment": quick, "records": few})).findings
    assert [each.about for each in found] == [about for about in OFF.get(file.stem, []) if about not in IN_MANY_POINTS]


def _in(point: Point, points: set[Point]) -> bool:
    return point in points


def edited(profile: Profile, name: str, factor: float) -> Profile:
    def moved(each: ProfileConstant) -> ProfileConstant:
        ends = {end: getattr(each, end) * factor for end in ("value", "low", "high")}
        return each.model_copy(update=ends) if each.name == name else each

    return profile.model_copy(update={"constants": tuple(map(moved, profile.constants))})


def judged() -> Iterator[ProfileConstant]:
    """What the H200's reference says of one board; sizes and times of the host have the grain that they have.

    A slow SM is named by its number.
    """
    for constant in h200().reference.profile.constants:  # type: ignore[union-attr]
        mine = constant.method != "numba" and constant.governed_by != "host" and constant.unit != "bytes"
        if mine and constant.name in h200().profile and constant.name not in (SLOWEST_SM, *TIMED_OTHERWISE):
            yield constant


@pytest.mark.parametrize("direction", [1, -1])
def test_every_quantity_that_is_off_by_twice_its_tolerance_is_named_and_by_half_of_it_is_not(direction: int) -> None:
    """2 % of cycles, 4 % of ns, 6 % of a bandwidth, 10 % where power limits."""
    reference = h200().reference
    assert reference is not None
    constants = list(judged())
    assert {tolerance(each) for each in constants} == {0.01, 0.02, 0.03, 0.05} and len(constants) > 60
    for constant in constants:
        whole = reference.profile.model_copy(update={"constants": tuple(constants)})
        allowed = max(tolerance(constant), spread(constant))
        for share, expected in ((2.0, [constant.name]), (0.5, [])):
            found = findings(edited(whole, constant.name, 1 + direction * share * allowed), reference, {})
            assert [each.about for each in found] == expected


def test_a_clock_at_1600_mhz_is_named() -> None:
    run = read(h200().run.path)
    slow = tuple(row.model_copy(update={"clock_mhz": 1600.0}) if row.clock_mhz else row for row in run.records)
    first = doctor.examine(run.model_copy(update={"records": slow})).findings[0]
    assert str(first) == "clock: it ran at 1600 MHz, where its driver admits 1980."


def test_a_constant_that_is_missing_is_named() -> None:
    run = read(h200().run.path)
    without = tuple(row for row in run.records if row.probe != "l2_bandwidth")
    found = {each.about for each in doctor.examine(run.model_copy(update={"records": without})).findings}
    assert {"l2_bandwidth_bytes_per_s", "l2_bandwidth_bytes_per_clk_sm"} <= found


def test_one_sm_that_is_slow_by_5_percent_is_named_by_its_number() -> None:
    run = read(h200().run.path)
    even = [256.0 + number % 3 for number in range(132)]
    slow = [value * (1.05 if number == 77 else 1.0) for number, value in enumerate(even)]

    measured = next(row for row in run.records if row.status == "ok")

    def maps(*each: list[float]) -> Run:
        told = {"probe": "sm_speed", "metric": "slowest_sm_ratio", "value": 1.0, "point": {}}
        rows = tuple(measured.model_copy(update=told | {"values": tuple(one)}) for one in each)
        return run.model_copy(update={"records": rows})

    assert [each.about for each in slow_sms(maps(slow, slow))] == ["SM 77"]
    assert not list(slow_sms(maps(even, even))) and not list(slow_sms(run))


def test_a_run_of_another_board_is_named() -> None:
    found = doctor.examine(read(h200().run.path), uuid_sha256="0" * 16).findings
    assert str(found[0]) == f"board: the run is of board {h200().run.environment.board}, and this one is 00000000."


def test_a_kind_that_nobody_measured_is_held_against_its_architecture_and_its_data_sheet() -> None:
    run = read(h200().run.path)
    told = run.environment.model_copy(update={"gpu": "h100-pcie-80gb", "sm_count": 114, "dram_bytes_per_s": 9e12})
    reference = reference_of(told)
    assert not reference.same_kind and reference.profile.arch == "sm90a"
    found = [each.about for each in doctor.examine(run.model_copy(update={"environment": told})).findings]
    assert "dram_bandwidth_bytes_per_s" in found and not any(name.startswith("l2_") for name in found)


def test_what_the_board_says_of_itself_is_added() -> None:
    found = doctor.examine(h200().run, State(ecc=True, temperature_c=91.0)).findings
    assert [each.about for each in found] == ["temperature"]


def test_maps_of_other_lengths_and_sms_without_a_time_are_no_fault_of_the_others() -> None:
    run = read(h200().run.path)
    measured = next(row for row in run.records if row.status == "ok")

    def row(*values: float | None) -> object:
        told = {"probe": "sm_speed", "metric": "slowest_sm_ratio", "value": 1.0, "point": {}, "values": values}
        return measured.model_copy(update=told)

    def about(*rows: object) -> list[str]:
        return [each.about for each in slow_sms(run.model_copy(update={"records": rows}))]

    assert about(row(None, 1.0, 1.0, 1.0), row(1.0, 1.0, 1.2)) == ["SM 2"] and about(row(None, None)) == []
    assert about(row(*[1.0] * 9, *[1.2] * 5)) == ["SM 9", "SM 10", "SM 11", "SMs"]


QUICK = "20261123T135856Z-08a799"


def told(run: Run, **environment: object) -> list[str]:
    changed = run.model_copy(update={"environment": run.environment.model_copy(update=environment)})
    return [str(finding) for finding in doctor.examine(changed).findings]


def quick(keep: Callable[[Record], bool] = lambda _: True, **fields: Callable[[Record], object]) -> Run:
    """The committed quick run with these rows, and of each these fields made anew."""
    run = read(next(file for file in FILES if file.stem == QUICK))
    rows = (
        row.model_copy(update={name: made(row) for name, made in fields.items()}) for row in run.records if keep(row)
    )
    return run.model_copy(update={"records": tuple(rows)})


def of(probe: str, factor: float) -> Callable[[Record], object]:
    return lambda row: row.value * factor if row.value is not None and row.probe == probe else row.value


def test_dram_at_a_third_of_its_bus_is_found_on_a_kind_without_a_reference() -> None:
    slow = quick(value=of("dram_bandwidth", 0.22))
    found = told(slow, gpu="h100-pcie-80gb", dram_bytes_per_s=3.35e12)
    assert any(each.startswith("dram_bandwidth_bytes_per_s: 29% of its bus'") for each in found)


def test_a_constant_that_a_quick_run_lost_with_some_points_of_a_probe_is_missed() -> None:
    found = told(quick(lambda row: row.probe != "memory_latency" or row.point["footprint_bytes"] == 4096))
    assert "memory_latency: none of its 6 constants could be measured; `smscope run` says why." in found


def test_a_kind_without_a_reference_is_held_against_its_clock_and_its_bus_and_is_not_called_healthy() -> None:
    volta = {"gpu": "tesla-v100-sxm2-16gb", "arch": "sm70", "sm_count": 80, "clock_hz": 1.53e9}
    run = quick(clock_mhz=lambda row: 600.0)
    found = told(run, **volta, dram_bytes_per_s=898e9)
    assert any("600 MHz" in each for each in found) and any("which no board reads" in each for each in found)
    told_of = quick().environment.model_copy(update=volta | {"dram_bytes_per_s": 4.8e12})
    well = doctor.examine(quick().model_copy(update={"environment": told_of}))
    assert not well.findings and "Healthy" not in " ".join(doctor._lines(well))


def test_what_rows_say_of_heat_and_of_slowdown_and_lines_that_cannot_be_read_are_findings() -> None:
    held = quick(flags=lambda row: ("throttled:hw-slowdown",) if row.probe == "l1_size" else row.flags)
    assert any(each.startswith("clock: NVML said throttled:hw-slowdown") for each in told(held))
    hot = read(h200().run.path)
    soaked = tuple(
        row.model_copy(update={"value": 96.0}) if row.metric == "temperature_c" else row for row in hot.records
    )
    assert "temperature: 96 °C under load; look at its cooling." in told(hot.model_copy(update={"records": soaked}))
    assert any(
        each.startswith("file: 1 of its lines") for each in told(quick().model_copy(update={"problems": ("line 7",)}))
    )


def test_one_probe_at_1600_mhz_is_named() -> None:
    slow = quick(clock_mhz=lambda row: 1600.0 if row.probe == "dram_bandwidth" else row.clock_mhz)
    assert any(each.startswith("clock: dram_") and "1600 MHz" in each for each in told(slow))


def test_what_falls_below_documents_or_breaks_its_bound_is_named_whatever_its_tolerance() -> None:
    below = told(quick(value=of("smem_bandwidth", 0.965)))
    assert any(each.startswith("smem_bandwidth_bytes_per_clk_sm: ") for each in below)
    above = told(quick(value=of("smem_bandwidth", 1.05)))
    assert any("breaks its bound" in each for each in above)


def test_an_interrupted_run_lacks_nothing() -> None:
    cut = read(h200().run.path)
    few = cut.model_copy(update={"records": cut.records[:100], "finished": False})
    assert not [each for each in doctor.examine(few).findings if "could not be measured" in each.text]
