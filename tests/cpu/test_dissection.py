"""The four dissections ask the same questions, and each of their figures has its source and its clock."""

import re
from pathlib import Path

import pytest

from microbench import published
from microbench.paths import PACKAGE
from notebooks.ladders import dissection, dissection_tables, figure_dissection
from notebooks.ladders.dissection import GENERATIONS, MEASURED, Generation
from notebooks.ladders.dissection_costs import costs

FOLDER = PACKAGE.parent / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("1[0-9]_*.py"))
V100, A100, H200, B200 = GENERATIONS
every_generation = pytest.mark.parametrize("generation", GENERATIONS, ids=lambda each: each.name)


def headings(notebook: Path) -> list[str]:
    return re.findall(r"^# (## .+)$", notebook.read_text(encoding="utf-8"), re.MULTILINE)


def test_the_notebooks_have_the_same_headings_in_the_same_order() -> None:
    assert len(NOTEBOOKS) == len(GENERATIONS)
    assert len({tuple(headings(notebook)) for notebook in NOTEBOOKS}) == 1
    assert len(headings(NOTEBOOKS[0])) == 5


@every_generation
def test_every_figure_has_a_source_that_is_listed_or_ours(generation: Generation) -> None:
    listed = {source.id for source in published.load().sources}
    figures = [level.cycles for level in dissection.levels(generation) if level.cycles]
    figures += [path.quoted for path in dissection.feeds(generation)]
    figures += [found for cost in costs(generation) for found in (cost.latency, cost.rate) if found]
    said = {source for figure in figures for source in figure.source.split(", ")}
    assert said <= listed | ({MEASURED} if generation.measured else set())


def test_only_the_h200_is_measured() -> None:
    assert [generation for generation in GENERATIONS if generation.measured] == [H200]


def clock_mhz(generation: Generation, name: str) -> float:
    return dissection.counted_at(generation, generation.profile[name]) / 1e6


def test_cycles_become_ns_at_the_clock_they_were_counted_at() -> None:
    assert clock_mhz(V100, "l1_latency_cycles") == 1380  # J18's PCIe board
    assert clock_mhz(V100, "dram_latency_cycles") == 1530  # its SXM2 board
    assert clock_mhz(B200, "dram_latency_cycles") == 1590  # B200N locked it, as its row in sources.csv says
    assert clock_mhz(H200, "l2_latency_cycles") == 1980
    (l2,) = (level for level in dissection.levels(H200) if level.name == "L2")
    assert l2.ns == pytest.approx(H200.profile.value("l2_latency_ns"), rel=0.01)


def test_a_level_that_no_source_gives_is_absent() -> None:
    (far,) = (level for level in dissection.levels(V100) if level.name == "L2, far half")
    assert far.cycles is None and far.ns is None
    assert "| L2, far half | absent |" in dissection_tables.memory(V100).data


def test_the_far_half_of_the_l2_lies_between_the_near_one_and_dram() -> None:
    for generation in (A100, H200):
        ns = {level.name: level.ns or 0.0 for level in dissection.levels(generation)}
        assert ns["L2"] < ns["L2, far half"] < ns["DRAM"]


def test_the_rows_that_a_byte_serves_are_the_m_of_the_instruction() -> None:
    assert [generation.rows for generation in GENERATIONS] == [8, 16, 64, 128]


@every_generation
def test_a_path_asks_for_more_rows_the_further_it_reaches(generation: Generation) -> None:
    asked = [path.asks for path in dissection.feeds(generation)]
    assert len(asked) == 3 and asked == sorted(asked)
    # An SM reads 128 bytes a clock at most, and the least of what was measured is a V100's 87.5 % of that.
    assert 1 <= asked[0] / (generation.flops_per_clk / 128) < 1.15


def test_an_instruction_of_another_architecture_is_not_here() -> None:
    here = {generation: {cost.label for cost in costs(generation) if cost.here} for generation in GENERATIONS}
    assert all(generation.product in here[generation] for generation in GENERATIONS)
    assert [generation for generation in GENERATIONS if "wgmma.m64n256k16" in here[generation]] == [H200]


def test_the_exponentials_of_128_dims_take_as_long_as_the_products_on_blackwell_first() -> None:
    shares = [dissection.softmax_share(generation, 128) for generation in GENERATIONS]
    assert shares == sorted(shares)
    assert max(shares[:-1]) < 0.55 and shares[-1] == pytest.approx(1, abs=0.02)


def test_an_experiment_is_quoted_as_it_was_printed() -> None:
    quoted = dissection_tables.experiment("mma_sync_cycles", "s8", lines=2).splitlines()
    assert quoted[0].startswith("cycles that one m16n8 product holds")
    assert len(quoted) == 3 and all(line.startswith("s8 k32") for line in quoted[1:])


def test_a_cost_in_a_chain_is_marked_as_none_of_a_first_result() -> None:
    assert [cost.label for cost in costs(V100) if cost.chained] == ["mma.m8n8k4"]
    (line,) = [row for row in str(dissection_tables.instructions(V100).data).splitlines() if "mma.m8n8k4" in row]
    assert "8.656 each in a chain | 1CAT" in line
    (axes,) = figure_dissection.instructions(V100).axes
    hollow = [line.get_ydata()[0] for line in axes.lines if line.get_markerfacecolor() == "white"]
    assert hollow == [[cost.label for cost in costs(V100)].index("mma.m8n8k4")]
