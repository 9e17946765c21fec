"""microbench.results.twins: where the second method's numbers are not the first one's, that is said."""

import pytest

from microbench.probe import Constant, Metric, Probe, Twin
from microbench.results import derive, parts
from microbench.results.curves import at
from microbench.results.record import Record, Run
from tests.cpu.test_derive import a_run, probe_of
from tests.cpu.test_record import row

LATENCY = Metric("latency_cycles", "cycles")
TWIN = Twin(lambda: lambda: None, "void()")
PROBE = probe_of(LATENCY, Constant("near_cycles", "latency_cycles", at(size=1)), archs=("sm90a",), twin=TWIN)
FIRST = {1: 100.0, 2: 200.0, 4: 400.0}


def rows(method: str, by_size: dict[int, float], campaigns: int = 2, **more: object) -> list[Record]:
    return [
        row(value, campaign=c, metric="latency_cycles", method=method, point={"size": size}, **more)  # type: ignore[arg-type]
        for c in range(campaigns)
        for size, value in by_size.items()
    ]


def problems(*records: Record, probe: Probe = PROBE) -> tuple[str, ...]:
    return derive.reduce_runs([on_gpu(*records)], [probe]).problems


def on_gpu(*records: Record, **told: object) -> Run:
    return a_run(*records, arch="sm90a", **told)


def test_methods_within_three_percent_agree() -> None:
    assert problems(*rows("nvrtc", FIRST), *rows("numba", {size: 1.029 * at for size, at in FIRST.items()})) == ()


@pytest.mark.parametrize(("factor", "said"), [(1.05, "+5.0%"), (0.9, "-10.0%")])
def test_methods_that_differ_are_named_with_the_worst_point(factor: float, said: str) -> None:
    second = {1: 100.0, 2: 200.0 * factor, 4: 400.0 * (1 + (factor - 1) * 0.7), 8: 1e6}
    assert problems(*rows("nvrtc", FIRST), *rows("numba", second)) == (
        f"p, latency_cycles: numba gives {said} at size=2, and differs by more than 3% at 2 of 3 points.",
    )


def test_the_median_of_the_campaigns_counts_and_no_refused_number_does() -> None:
    usual, outlier = rows("numba", FIRST, campaigns=3), rows("numba", {2: 500.0}, campaigns=1)
    second = [each for each in usual if (each.campaign, each.point) != (0, {"size": 2})] + outlier
    refused = rows("numba", {8: 5.0}, status="failed", reason="breaks its bound", bound="violated")
    assert problems(*rows("nvrtc", FIRST | {8: 800.0}), *second, *refused) == ()


def test_the_best_run_of_each_method_counts() -> None:
    old = on_gpu(*rows("nvrtc", FIRST), *rows("numba", {1: 200.0}), run_id="a")
    new = on_gpu(*rows("nvrtc", FIRST), *rows("numba", {1: 101.0}), run_id="b", sources_sha256="of-later-sources")
    assert derive.reduce_runs([old, new], [PROBE]).problems == ()
    assert len(derive.reduce_runs([old], [PROBE]).problems) == 1


def test_each_record_is_looked_at_once_however_many_constants_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Record] = []
    point_of = parts.point_of
    monkeypatch.setattr(parts, "point_of", lambda record: seen.append(record) or point_of(record))
    many = [Constant(f"c{size}_{i}_cycles", "latency_cycles", at(size=size)) for size in FIRST for i in range(5)]
    run = on_gpu(*rows("nvrtc", FIRST), *rows("numba", FIRST))
    probe = probe_of(LATENCY, *many, archs=("sm90a",), twin=TWIN)
    assert len(derive.reduce_runs([run], [probe]).profile.constants) == 2 * len(many)
    assert seen == list(run.records)
