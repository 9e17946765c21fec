"""Data are advice: whatever stands in a profile or in a file of timings, the call works, and what is wrong is named."""

import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import attention
from attention.choose import learned
from attention.choose.choose import choose
from attention.choose.explain.explain import explain_on
from attention.choose.machine import machine_profile
from attention.problem import AttentionProblem
from attention.timed import timings
from microbench import faults, paths
from microbench.cli import check
from microbench.errors import DataError, DataWarning, UnknownGpu
from microbench.machine.cpu import host_slug
from microbench.results import frame
from microbench.results.profile import Profile
from tests.cpu.attention_profiles import forget_choices, host_profile
from tests.cpu.test_timings import LONG_F32, timing

PROBLEM = AttentionProblem(1, 2, 2, 64, 64, 32)
JUNK: list[Any] = [None, 0, -1, 1, 3, 1e-300, 1e300, -1.0, 10**30, 2**63, True]
JUNK += ["", "sm90a", "float128", "\0", "x" * 300]
JUNK += [[], {}, [0], [[]], {"block_q": 0}, {"block_q": 64}, {"speed": 3}, float("nan"), float("inf"), -float("inf")]
JUNK += [[1, 8, 8, 0, 0, 64, 64], [1, 8, 3, 64, 64, 64, 64], [0] * 7, [2**62] * 7, [-1, 2**70], [5, 6]]


@pytest.fixture(autouse=True)
def _anew() -> Iterator[None]:
    def forget() -> None:
        faults.forget()
        learned._kept.clear()
        forget_choices()

    forget()
    yield
    forget()


def put_profile(data: Path, told: Any, name: str | None = None) -> Path:
    file = data / "profiles" / f"{name or host_slug()}.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(told if isinstance(told, str) else json.dumps(told))
    return file


def put_timings(data: Path, *told: Any) -> Path:
    file = data / "attention" / f"{host_slug()}.jsonl"
    file.parent.mkdir(exist_ok=True)
    file.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in told))
    return file


def of_this_cpu() -> dict[str, Any]:
    told: dict[str, Any] = json.loads(host_profile().model_dump_json(exclude_none=True))
    return told | {"gpu": host_slug()}


def lines() -> list[dict[str, Any]]:
    rows = [timing(0.01), timing(0.02, shape=(2, 4, 4, 256, 512, 64, 64)), timing(0.03, "host/forward/torch_math")]
    return [json.loads(row.model_dump_json(exclude_none=True)) | {"gpu": host_slug()} for row in rows]


def said_by(call: Any) -> tuple[Any, list[str]]:
    """What a call returns, and the data that it said it left out."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        returned = call()
    assert {each.category for each in caught} <= {DataWarning}
    return returned, [str(each.message) for each in caught]


def everything() -> None:
    """A call, and what explains one: neither fails, and the pick may serve."""
    query = torch.randn(1, 2, 64, 32, generator=torch.Generator().manual_seed(0))
    forget_choices()
    want = torch.nn.functional.scaled_dot_product_attention(query, query, query)
    torch.testing.assert_close(attention.sdpa(query, query, query), want, atol=1e-4, rtol=1e-4)
    explanation = explain_on(machine_profile("cpu").profile, PROBLEM)
    everyone = choose(Profile(gpu="none", name="none", arch="host", sm_count=1), PROBLEM).candidates
    able = {(each.variant, each.config) for each in everyone}
    assert (explanation.choice.pick.variant, explanation.choice.pick.config) in able
    str(explanation)


@st.composite
def corrupted(draw: st.DrawFn, told: Any) -> Any:
    """One place of it, at any depth, is other, gone or twice as deep."""
    if isinstance(told, dict) and told and draw(st.integers(0, 4)):
        key = draw(st.sampled_from(sorted(told)))
        if draw(st.integers(0, 5)) == 0:
            return {name: value for name, value in told.items() if name != key}
        return told | {key: draw(corrupted(told[key]))}
    if isinstance(told, list) and told and draw(st.integers(0, 4)):
        at = draw(st.integers(0, len(told) - 1))
        return [*told[:at], draw(corrupted(told[at])), *told[at + 1 :]]
    return draw(st.sampled_from(JUNK) | st.floats() | st.integers())


IN_A_FOLDER = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@IN_A_FOLDER
@given(drawn=st.data())
def test_no_line_of_timings_breaks_a_call(data: Path, drawn: st.DataObject) -> None:
    put_profile(data, of_this_cpu())
    rows = lines()
    at = drawn.draw(st.integers(0, len(rows) - 1))
    bad: Any = drawn.draw(corrupted(rows[at]))
    put_timings(data, *rows[:at], bad, *rows[at + 1 :])
    faults.forget()
    learned._kept.clear()
    _, said = said_by(everything)
    assert len(said) <= 1
    learned.of_machine(machine_profile("cpu").profile)
    assert timings.read(host_slug())[0]  # the other lines


@IN_A_FOLDER
@given(drawn=st.data())
@example(drawn=None)
def test_no_field_of_a_profile_breaks_a_call(data: Path, drawn: st.DataObject | None) -> None:
    told: Any = "{" if drawn is None else drawn.draw(corrupted(of_this_cpu()))
    put_profile(data, told)
    put_timings(data, *lines())
    faults.forget()
    machine_profile.cache_clear()
    learned._kept.clear()
    said_by(everything)


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"shape": [1, 8, 8, 0, 0, 64, 64]}, "seq_q"),
        ({"dtype": "float128"}, "float128"),
        ({"config": {"block_q": 64, "block_kv": 64, "speed": 3}}, "speed"),
        ({"config": {"block_q": 64, "block_kv": 63}}, "block_kv=63"),
        ({"seconds": 1e-300, "low": 1e-300}, "1e-300"),
        ({"seconds": -1.0}, "seconds"),
        ({"seconds": float("inf")}, "seconds"),
        ({"low": 5.0}, "low"),
        ({"n": 0}, "n: 0"),
        ({"gpu": "another"}, "another"),
        ({"seconds": 1e-7, "low": 1e-7, "shape": [64, 64, 64, 8192, 8192, 64, 64]}, "efficiency"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_a_bad_timing_is_named_by_file_and_line_once(data: Path, changed: dict[str, Any], named: str) -> None:
    put_profile(data, of_this_cpu())
    rows = lines()
    file = put_timings(data, rows[0], rows[1] | changed, rows[2])
    (first, said) = said_by(lambda: learned.of_machine(machine_profile("cpu").profile))
    assert len(said) == 1 and f"{file.name}: line 2: " in said[0] and named in said[0]
    assert first.of_class[LONG_F32].timings == 1
    put_timings(data, *rows, rows[1] | changed)
    assert said_by(lambda: learned.of_machine(machine_profile("cpu").profile))[1] == []


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"value": -1.0}, "value is -1"),
        ({"value": 0.0}, "value is 0"),
        ({"value": float("inf")}, "value"),
        ({"high": float("nan")}, "high"),
        ({"low": 1e13, "high": 1e14}, "does not hold"),
        ({"bound_upper": 1e3, "bound_why": "the bus"}, "the bus"),
        ({"speed": 1}, "speed"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_a_bad_constant_is_named_and_left_out_alone(data: Path, changed: dict[str, Any], named: str) -> None:
    told = of_this_cpu()
    told["constants"][2] |= changed
    lost, file = told["constants"][2]["name"], put_profile(data, told)
    found, said = said_by(lambda: machine_profile("cpu").profile)
    assert len(said) == 1 and f"{file.name}: constants.2" in said[0] and named in said[0]
    assert {each["name"] for each in told["constants"]} - {each.name for each in found.constants} == {lost}
    with pytest.raises(DataError, match=r"constants\.2|no readable profile"):
        check.check(host_slug())


def test_an_unreadable_profile_of_another_gpu_is_named_and_left_out(data: Path) -> None:
    put_profile(data, of_this_cpu() | {"gpu": "host-other"}, "host-other")
    put_profile(data, "{", "h100-test")
    put_profile(data, of_this_cpu() | {"gpu": "host-wild", "sm_count": 0}, "host-wild")
    found, said = said_by(lambda: machine_profile("cpu"))
    assert "host-other" in str(found.caution) and len(said) == 2
    assert "h100-test.json: it is no readable profile" in said[0] and "sm_count" in said[1]
    with pytest.raises(UnknownGpu, match="Nothing of the profile of h100-test is sound"):
        Profile.advice("h100-test")


def test_a_profile_in_hand_with_a_constant_of_zero_is_no_reason_to_fail() -> None:
    assert choose(host_profile(dram_bandwidth_bytes_per_s=0.0, exp_f32_per_s=-3.0), PROBLEM).pick


def test_nothing_measured_is_said_in_one_sentence(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "MOVED", None)
    with pytest.raises(DataError, match=r"^Nothing is measured yet; type `make bench`\.$"):
        frame.load_runs()
    with monkeypatch.context() as installed:
        installed.setattr(paths, "CHECKOUT", None)
        with pytest.raises(
            DataError, match=r"; the runs on file lie in data/ of a checkout, at which SMSCOPE_DATA=.* points\.$"
        ):
            frame.load_runs()
    (data / "runs" / "host-one").mkdir(parents=True)
    (data / "runs" / "host-one" / "r.jsonl").write_text("")
    with pytest.raises(UnknownGpu, match=r"'h100' .known: host-one"):
        frame.load_runs("h100")
