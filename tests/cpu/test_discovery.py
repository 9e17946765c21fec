"""microbench.probes: a probe exists where its two files lie, and nowhere else."""

from pathlib import Path

import pytest

from microbench.errors import InputError, UnknownProbe
from microbench.machine.arch import Machine, by_name
from microbench.probes import HERE, discover, named
from tests.cpu import fake_probes

SUITE = discover()


def test_two_files_in_a_folder_are_a_probe(tmp_path: Path) -> None:
    probe = named("steady", fake_probes.write(tmp_path, "steady"))
    assert (probe.name, probe.family) == ("steady", "fake") and probe.source == tmp_path / "fake" / "steady.cu"
    assert probe.source.is_file()


def test_an_unknown_name_is_answered_with_near_ones(tmp_path: Path) -> None:
    with pytest.raises(UnknownProbe, match="'stedy'; did you mean steady"):
        named("stedy", fake_probes.write(tmp_path, "steady"))


def test_a_name_near_no_probe_is_sent_to_the_list() -> None:
    with pytest.raises(UnknownProbe, match=r"'zzzz'; `smscope list` shows them\.$"):
        named("zzzz")


def test_two_probes_of_one_name_are_refused(tmp_path: Path) -> None:
    fake_probes.write(tmp_path, "steady")
    other = tmp_path / "other"
    other.mkdir()
    (other / "steady.py").write_text((tmp_path / "fake" / "steady.py").read_text())
    with pytest.raises(InputError, match="Two probes are called 'steady'"):
        discover(tmp_path)


@pytest.mark.parametrize(
    ("text", "said"), [("1 / 0", "fake/odd.py does not load: ZeroDivisionError"), ("PROBE = 1", "binds no PROBE")]
)
def test_a_file_that_is_no_probe_is_named(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "fake").mkdir()
    (tmp_path / "fake" / "odd.py").write_text(text)
    with pytest.raises(InputError, match=said):
        discover(tmp_path)


def test_a_folder_without_probes_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No probe lies under"):
        discover(tmp_path)


@pytest.mark.parametrize("probe", SUITE, ids=lambda probe: probe.name)
class TestEveryProbeOfTheSuite:
    """What each probe must keep to, so that a new one needs no test of its own."""

    def test_asks_one_question(self, probe) -> None:  # type: ignore[no-untyped-def]
        assert probe.asks.endswith("?") and probe.archs

    def test_names_its_units(self, probe) -> None:  # type: ignore[no-untyped-def]
        suffixes = (
            "_cycles",
            "_ns",
            "_per_s",
            "_per_clk_sm",
            "_per_clk",
            "_bytes",
            "_mhz",
            "_per_way",
            "_ratio",
            "_w",
            "_c",
        )
        assert [m.name for m in probe.metrics if not m.name.endswith(suffixes)] == []

    def test_reduces_only_metrics_that_it_measures(self, probe) -> None:  # type: ignore[no-untyped-def]
        names = [constant.name for constant in probe.constants]
        assert len(set(names)) == len(names)
        assert {constant.metric for constant in probe.constants} <= {metric.name for metric in probe.metrics}

    def test_has_its_kernel_beside_it(self, probe) -> None:  # type: ignore[no-untyped-def]
        if probe.archs != ("host",):
            assert probe.source.is_file() and probe.builds is not None

    def test_has_fewer_points_when_quick(self, probe) -> None:  # type: ignore[no-untyped-def]
        every, quick = set(probe.points()), set(probe.points(quick=True))
        assert (quick or probe.campaigns == 1) and (
            quick <= every or all(axis.quick for axis in probe.axes if axis.quick is not None)
        )


def test_every_gpu_probe_bounds_every_metric_at_every_point() -> None:
    """A GPU's physics is known where a virtual CPU's is not."""
    h100 = Machine("h100-test", "H100", by_name("sm90a"), 132, 1.98e9, 3.352e12, 80 << 30, 50 << 20)
    for probe in (probe for probe in SUITE if probe.runs_on(h100.arch)):
        for point in (point for point in probe.points() if not (probe.skip and probe.skip(h100, point))):
            for metric in probe.metrics:
                assert metric.bound.at(h100, point) != (None, None), f"{metric.name} of {probe.name} at {point}"


def test_constants_of_different_probes_have_different_names() -> None:
    """Within the host's probes and within the GPUs': a profile holds one of each name."""
    for lane in ("host", "gpu"):
        names = [c.name for p in SUITE if (p.archs == ("host",)) == (lane == "host") for c in p.constants]
        assert sorted(set(names)) == sorted(names)


def test_no_probe_file_is_left_out() -> None:
    files = {file.stem for file in HERE.glob("*/*.py") if not file.name.startswith("_")}
    assert files == {probe.name for probe in SUITE}
