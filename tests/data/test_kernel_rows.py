"""The table of our kernels says what is on file of each: what was compiled, and what ran where."""

from typing import Any

import pytest

from attention.timed.identity import text_sha256
from attention.verify.kernel import KernelResult
from attention.verify.sanitizer import SanitizerResult
from microbench.verify import results
from smscope import kernel_rows

KERNEL = "sm70/forward/quad_pair"
TEXT = text_sha256(KERNEL)


def ran(
    gpu: str,
    arch: str,
    right: int,
    day: int = 1,
    quick: bool = False,
    complaint: str = "",
    kernel: str = KERNEL,
    **fields: Any,
) -> KernelResult:
    checked = SanitizerResult(tool="memcheck", problems=2, right=2, complaint=complaint)
    return KernelResult(
        gpu=gpu,
        name=gpu,
        arch=arch,
        verified_utc=f"2026-01-0{day}",
        quick=quick,
        nvrtc="12.9",
        kernel=kernel,
        torch="2",
        right=right,
        **({"seed": 0, "problems": 100, "text_sha256": text_sha256(kernel)} | fields),
        features={},
        cubins=(),
        worst_ratio=0,
        worst_block_ratio=0,
        worst_lse_ratio=0,
        failures=(),
        sanitizer=(checked,),
    )


def row_of(monkeypatch: pytest.MonkeyPatch, *found: KernelResult, kernel: str = KERNEL) -> list[str]:
    monkeypatch.setattr(results, "committed", lambda kind: found)
    (line,) = (line for line in kernel_rows.table().splitlines() if kernel in line)
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_another_generations_gpu_runs_the_source_and_no_speed_is_claimed(monkeypatch: pytest.MonkeyPatch) -> None:
    on_hopper, on_volta = ran("h200", "sm90a", 100), ran("v100", "sm70", 99, complaint="out of bounds")
    row = row_of(monkeypatch, on_hopper, on_volta)
    assert row[1:] == [
        *("sm70", "no spill, no note", "yes", "100 problems on h200, memcheck clean on 2"),
        *("99 of 100 problems on v100, memcheck complains on 2", "no"),
    ]


def test_an_ada_gpu_is_of_the_generation_of_ampere_and_a_hopper_gpu_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    of_ampere = "sm80/forward/software_pipelined"
    on_ada, on_hopper = (ran(*each, 100, kernel=of_ampere) for each in (("l4", "sm89"), ("h200", "sm90a")))
    row = row_of(monkeypatch, on_ada, on_hopper, kernel=of_ampere)
    assert ("on h200" in row[4], "on l4" in row[5]) == (True, True)


def test_a_run_that_was_cut_short_leaves_the_fullest_one_standing(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = [ran("h200", "sm90a", 100, seed=seed, commit="a" * 40) for seed in (0, 1)]
    cut = ran("h200", "sm90a", 100, day=2, commit="b" * 40)
    assert row_of(monkeypatch, *whole, cut)[4].startswith("200 problems on h200, ")


def test_a_run_of_an_earlier_text_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [ran("h200", "sm90a", 100, seed=seed, text_sha256=text) for seed, text in enumerate((TEXT, "e" * 64))]
    assert row_of(monkeypatch, *found)[4].startswith("200 problems on h200 (an earlier text), ")
    assert row_of(monkeypatch, found[0])[4].startswith("100 problems on h200, ")


def test_a_run_of_todays_text_stands_before_a_fuller_one_of_an_earlier_text(monkeypatch: pytest.MonkeyPatch) -> None:
    earlier = [ran("h200", "sm90a", 100, seed=seed, commit="a" * 40, text_sha256="e" * 64) for seed in (0, 1)]
    todays = ran("h200", "sm90a", 100, day=2, commit="b" * 40)
    assert row_of(monkeypatch, *earlier, todays)[4].startswith("100 problems on h200, ")


def test_a_few_problems_of_the_same_seed_under_the_sanitizer_take_none_away(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, few = (
        ran("h200", "sm90a", 100, commit="a" * 40),
        ran("h200", "sm90a", 20, day=2, problems=20, commit="a" * 40),
    )
    assert row_of(monkeypatch, whole, few)[4].startswith("100 problems on h200, ")


def test_the_last_full_run_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    later_and_quick = ran("v100", "sm70", 7, day=3, quick=True)
    row = row_of(monkeypatch, ran("v100", "sm70", 98), later_and_quick, ran("v100", "sm70", 99, day=2))
    assert row[5].startswith("99 of 100 problems on v100")


def test_what_a_tool_said_of_an_earlier_text_says_so_beside_problems_of_todays(monkeypatch: pytest.MonkeyPatch) -> None:
    before = ran("h200", "sm90a", 100, commit="a" * 40, text_sha256="0" * 64)
    today = ran("h200", "sm90a", 100, day=2, commit="b" * 40).model_copy(update={"sanitizer": ()})
    assert row_of(monkeypatch, before, today)[4] == "100 problems on h200, memcheck clean on 2 (an earlier text)"
    assert row_of(monkeypatch, before)[4] == "100 problems on h200 (an earlier text), memcheck clean on 2"
