"""A told speed counts the scores that are seen: of a rectangle no half, and of a square the field's convention."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from attention.choose.explain.explain import explain_on
from attention.choose.explain.explanation import Explanation
from attention.compare import bench_table
from attention.problem import AttentionProblem
from attention.seen import flops_seen
from microbench.console.si import written
from tests.cpu.attention_profiles import hopper_profile

PEAK = 900e12  # of the profile

SHAPES: list[dict[str, Any]] = [
    {"seq_q": 5, "seq_kv": 12, "causal": True},
    {"seq_q": 12, "seq_kv": 5, "causal": True},
    {"seq_q": 5, "seq_kv": 12, "causal": True, "alignment": "bottom_right"},
    {"seq_q": 12, "seq_kv": 5, "causal": True, "alignment": "bottom_right"},
    {"seq_q": 1, "seq_kv": 12, "causal": True, "alignment": "bottom_right"},
    {"seq_q": 5, "seq_kv": 12, "causal": True, "window": (3, -1)},
    {"seq_q": 12, "seq_kv": 12, "window": (3, 2)},
    {"seq_q": 5, "seq_kv": 12},
]


def problem(**asked: Any) -> AttentionProblem:
    return AttentionProblem(2, 4, 2, head_dim=16, head_dim_v=8, dtype="bfloat16", device="cuda", **asked)


@pytest.mark.parametrize("asked", SHAPES, ids=lambda asked: " ".join(map(str, asked.values())))
def test_flops_are_those_of_the_scores_that_a_count_one_by_one_finds(asked: dict[str, Any]) -> None:
    posed = problem(**asked)
    band, distance = posed.band(), np.arange(posed.seq_kv) - np.arange(posed.seq_q)[:, None]
    seen = np.ones_like(distance, bool)
    seen &= True if band.left is None else distance >= band.left
    seen &= True if band.right is None else distance <= band.right
    assert flops_seen(posed) == 2 * (16 + 8) * 2 * 4 * seen.sum()


def test_a_causal_square_keeps_the_half_that_is_published() -> None:
    posed = problem(seq_q=64, seq_kv=64, causal=True)
    assert flops_seen(posed) == posed.flops == 2 * (16 + 8) * 2 * 4 * 64 * 64 / 2


def told(explained: Explanation) -> float:
    """The FLOP/s of a headline."""
    number, unit = explained.headline().partition("(")[2].rpartition(" (")[2].partition(")")[0].split()
    return float(number) * {"GFLOP/s": 1e9, "TFLOP/s": 1e12, "PFLOP/s": 1e15}[unit]


@pytest.mark.parametrize(("rows", "keys"), [(4096, 8192), (4096, 65536), (8192, 4096)])
def test_explain_tells_no_speed_above_the_peak_of_the_gpu(rows: int, keys: int, data: Any) -> None:
    posed = AttentionProblem(1, 32, 32, rows, keys, 128, dtype="bfloat16", causal=True)
    explained = explain_on(hopper_profile(), posed, only="smscope")
    prediction = explained.choice.pick.prediction
    assert prediction is not None and 0.1 * PEAK < told(explained) < PEAK
    assert told(explained) == pytest.approx(flops_seen(posed) / prediction.seconds, rel=0.01)


def test_bench_tells_the_same_of_what_it_timed() -> None:
    posed = problem(seq_q=5, seq_kv=12, causal=True)
    timing = SimpleNamespace(
        problem=posed, passes="backward", seconds=1e-6, low=1e-6, high=1e-6, predicted_seconds=None
    )
    each: Any = SimpleNamespace(timing=timing, problem=posed, name="a", picked=False, failure=None)
    timing.model_dump = lambda **_: {}
    each.candidate = SimpleNamespace(variant="a")
    speed = bench_table.row(each, [each])["tflops"]
    assert speed == pytest.approx(2.5 * flops_seen(posed) / 1e-6 / 1e12)
    assert written(2.5 * flops_seen(posed) / 1e-6, "FLOP/s") in bench_table.cells(each, [each])
