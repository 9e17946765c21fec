"""What a page says is asked and missed is what the campaigns and verdicts on file give."""

import re

import pytest

from attention.campaign import freeze, rows
from attention.campaign.floors import Ratio, standings
from attention.campaign.freeze import Verdict
from microbench.machine import stamp
from smscope import missed, using

GPUS = ("h100-sxm-80gb", "h200-sxm-141gb")
PAGE = (stamp.ROOT / "docs" / "measured.md").read_text(encoding="utf-8")


def on_page(gpu: str) -> str:
    return PAGE.partition(f"<!-- generated: asked-{gpu} -->")[2].partition("<!-- /generated -->")[0]


@pytest.mark.parametrize("gpu", GPUS)
def test_a_floor_that_is_missed_is_on_the_page_and_no_other(gpu: str) -> None:
    lines = [line for number in rows.campaigns(gpu, "floors") for line in rows.read(gpu, "floors", number)]
    below = [(str(each.posed), f"{ratio.value:.3f}") for each in standings(lines) for ratio in each.missed]
    listed = on_page(gpu).partition("The floors that are missed:")[2]
    said = [line.strip("| ").split(" | ") for line in listed.splitlines() if line.startswith("| B=")]
    assert [(line[0], line[-1]) for line in said] == below
    assert bool(lines) != ("The set of floors was not timed" in on_page(gpu))


@pytest.mark.parametrize("gpu", GPUS)
def test_the_functions_stand_there_as_the_verdict_on_the_last_set_of_use_has_them(gpu: str) -> None:
    last = rows.read(gpu, "use", rows.campaigns(gpu, "use")[-1])
    verdict, frozen = using.judged(gpu, of_freeze=last[-1].freeze)
    said = [each for each in missed.of_functions(gpu) if frozen[:12] in each.what]
    assert len(said) == len(verdict.standings) > 0
    for each, standing in zip(said, verdict.standings, strict=True):
        assert each.met == standing.met and f"{standing.least:.3f}" in each.given
        assert " | ".join(each.cells) in on_page(gpu)


@pytest.mark.parametrize("gpu", GPUS)
def test_a_limit_of_the_model_is_missed_where_the_last_verdict_has_its_fault(gpu: str) -> None:
    verdict = missed.last_verdict(gpu)
    assert verdict is not None and freeze.named(verdict.freeze).gpu == gpu
    faults = [line for line in verdict.lines if line.startswith("all kernels: fault")]
    asked = list(missed.of_model(gpu))
    wrong = [each for each in asked if not each.met]
    assert len(asked) == 8 and bool(wrong) == bool(faults) and len(wrong) <= len(faults)
    for each in faults:
        number = re.search(r"[\d.]+(?=%| times)", each)
        assert number is not None
        assert "not shown" in each or any(number[0] in line.given for line in wrong), each
    assert all(" | ".join(each.cells) in on_page(gpu) for each in asked)


def test_every_kind_of_fault_has_a_line_on_the_page() -> None:
    """A limit without one would be a miss that nobody reads."""
    known = ("mean regret", "worst regret", "mean error", "a prediction off by", "error of", "measured constants and")
    begin = "all kernels: fault: "
    for line in (line for each in freeze.verdicts() for line in each.lines if line.startswith(begin)):
        assert line.removeprefix(begin).startswith((*known, "not shown to be better than")), line


@pytest.mark.parametrize(
    ("ratios", "given", "met"),
    [
        ((1.0, 1.2), "2 of 2, the least 1.000", True),
        ((0.96, 1.2), "1 of 2, the least 0.960", False),
        ((0.96, None), "0 of 1, the least 0.960, not timed on 1", False),
        ((1.0, None), "1 of 1, the least 1.000, not timed on 1", None),
        ((None,), "not timed on 1", None),
    ],
)
def test_a_floor_is_met_missed_or_open(ratios: tuple[float | None, ...], given: str, met: bool | None) -> None:
    found = missed.floor("a", [Ratio("torch", each, least=1.0) for each in ratios])
    assert (found.given, found.met) == (given, met)


def test_a_peer_that_refuses_leaves_a_floor_as_it_is() -> None:
    found = missed.floor("a", [Ratio("torch", 1.1, least=1.0), Ratio("torch", None, least=1.0, refused=True)])
    assert (found.given, found.met) == ("1 of 1, the least 1.100, refused on 1", True)


def test_of_a_gpu_of_which_nothing_is_on_file_nothing_is_asked() -> None:
    assert missed.block("rtx-2080-ti-11gb").startswith("0 lines of 0 missed.")


def test_the_verdict_on_the_latest_campaigns_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    first, *_ = freeze.freezes()
    old, new = (Verdict(freeze=first.commit, commit=None, campaigns=(n, n + 1), hashes={}, lines=()) for n in (9, 10))
    monkeypatch.setattr(freeze, "verdicts", lambda: (new, old))
    assert missed.last_verdict(first.gpu) == new
