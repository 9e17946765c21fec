"""What the comparison's files say, and that its figure is drawn from them."""

import matplotlib.pyplot as plt
import pytest
from PIL import Image
from typer.testing import CliRunner

from attention import cli
from attention.compare import figure, results, run
from attention.compare.results import AMPERE, HOPPER, Result
from attention.timed import timings
from attention.timed.timing import Timing
from attention.variant import Config
from tests.cpu.attention_profiles import hopper_profile, saved
from tests.cpu.timing_rows import made_up

GPU = "h100-test"
TILE = {"tile_keys": 128, "warpgroups": 2, "stages": 2}


def timing(variant: str, microseconds: float, **changes: object) -> Timing:
    seconds = microseconds * 1e-6
    fields = {"gpu": GPU, "shape": (4, 16, 16, 4096, 4096, 128, 128), "dtype": "bfloat16", "run": "2", "grid": True}
    return made_up(seconds, variant, **(fields | {"low": 0.99 * seconds, "high": 1.01 * seconds} | changes))


def cell(**changes: object) -> list[Timing]:
    return [
        timing("peer/torch_flash", 1500, **changes),
        timing("peer/flash_attn_4", 900, packages={"flash_attn_4": "4.0"}, **changes),
        timing(AMPERE, 1300, **changes),
        timing(HOPPER, 800, picked=True, config=TILE, **changes),
    ]


def packed() -> list[Timing]:
    return cell(shape=(2, 4, 4, 3000, 3000, 64, 64), lengths=(3000, 1096), grid=False)


def write(rows: list[Timing], kind: str = "") -> None:
    for row in rows:
        timings.write(row, kind)


def test_the_last_run_alone_is_read_by_cell(data) -> None:
    write([timing(HOPPER, 1, run="1"), timing(HOPPER, 1, run=None), *cell(), *packed()])
    first, second = results.last_run(GPU)
    assert [len(first.timings), len(second.timings)] == [4, 4] and first.cell.grid and not second.cell.grid
    assert first.ratio(HOPPER) == pytest.approx(900 / 800) and first.ratio(AMPERE) == pytest.approx(900 / 1300)


def test_a_packed_cell_counts_each_sequence_with_its_own_length() -> None:
    (result,) = results.by_cell(packed())
    assert result.tflops(result.timings[0]) == pytest.approx(4 * 4 * 64 * (3000**2 + 1096**2) / 1500e-6 / 1e12)


def test_of_several_configurations_the_picked_one_counts_and_the_fastest_is_known(data) -> None:
    wide = TILE | {"tile_keys": 160}
    write([*cell(run="1"), timing(HOPPER, 700, run="1", config=wide), *cell()])
    (result,) = results.every_configuration(GPU)
    picked, fastest = result.of(HOPPER), result.fastest(HOPPER)
    assert picked is not None and picked.config == TILE and fastest is not None and fastest.config == wide
    assert result.configured(HOPPER, Config(tuple(wide.items()))) == fastest


def test_nothing_on_file_is_no_result(data) -> None:
    assert results.last_run(GPU) == results.every_configuration(GPU) == results.ladder(GPU) == ()
    assert figure.write(GPU) is None


def rung(microseconds: float, run: str, **ideas: int) -> Timing:
    return timing(HOPPER, microseconds, run=run, config=TILE | {"turns": 0, "overlap": 0, "lazy": 0} | ideas)


LADDER = [
    rung(1000, "2"),
    rung(900, "2", turns=1),
    rung(600, "2", turns=1, overlap=1),
    rung(500, "2", turns=1, overlap=1, lazy=1),
    rung(480, "2", turns=1, overlap=1, lazy=1, q_in_registers=1),
    rung(550, "2", overlap=1, lazy=1, q_in_registers=1),
]


def test_a_ladder_is_read_upwards_and_its_whole_without_each_idea(data) -> None:
    write([rung(9, "1"), *LADDER], "ladder")
    (climb,) = results.ladder(GPU)
    assert [step.ideas for step in climb.rungs] == [(), ("turns",), ("overlap",), ("lazy",), ("q_in_registers",)]
    assert climb.tile == Config(tuple(TILE.items()))
    assert climb.gain("overlap") == pytest.approx(1.5) and climb.gain("") is None and climb.gain("else") is None
    assert climb.lost_without("turns") == pytest.approx(550 / 480)
    assert climb.lost_without("q_in_registers") == pytest.approx(500 / 480) and climb.lost_without("overlap") is None


@pytest.mark.parametrize("gone", range(1, 6))
def test_a_ladder_without_one_of_its_timings_goes_on_over_the_gap(data, gone) -> None:
    write([row for row in LADDER if row is not LADDER[gone]], "ladder")
    (climb,) = results.ladder(GPU)
    added = [idea for step in climb.rungs for idea in step.ideas]
    assert climb.rungs[0].ideas == ()
    assert set(added) == {"lazy", "overlap", "turns", "q_in_registers"} - ({"q_in_registers"} if gone == 4 else set())
    assert len(climb.rungs) == (5 if gone == 5 else 4)


def heights(axes: plt.Axes) -> list[float]:
    return [bar.get_height() for bar in axes.patches]


def speeds(result: Result) -> list[float]:
    return [result.tflops(row) for row in result.timings]


def test_the_figure_has_a_bar_for_every_timing_and_the_ratio_above_ours() -> None:
    found = results.by_cell([*cell(), *cell(causal=True), *packed()])
    drawn = figure.beside_peers(found, "a GPU")
    assert len(drawn.axes) == 3
    for axes, result in zip(drawn.axes, found, strict=True):
        assert sorted(heights(axes)) == pytest.approx(sorted(speeds(result)))
        assert [text.get_text() for text in axes.texts] == [f"{900 / 800:.2f}"]
    (legend,) = drawn.legends
    labels = [text.get_text() for text in legend.get_texts()]
    assert labels == ["ours, Hopper", "ours, Ampere's instructions", "FlashAttention-4 (4.0)", "FlashAttention-2"]
    assert "a GPU" in drawn.get_suptitle()


def test_a_candidate_that_does_not_take_a_cell_leaves_a_gap_and_strangers_are_drawn() -> None:
    drawn = figure.beside_peers(results.by_cell([*cell()[1:], timing("peer/new", 850), *cell(causal=True)]), "")
    assert [len(heights(axes)) for axes in drawn.axes] == [4, 4]
    assert "new" in [text.get_text() for text in drawn.legends[0].get_texts()]


def test_the_summary_gives_mean_and_worst_of_both_kinds_of_cells() -> None:
    rows = [*cell(), timing("peer/flash_attn_4", 450, causal=True), timing(HOPPER, 800, causal=True), *packed()]
    said = figure.summary(results.by_cell(rows), HOPPER)
    assert f"{(900 / 800 * 450 / 800) ** 0.5:.3f} on the grid (2 cells, worst {450 / 800:.3f})" in said
    assert f"{900 / 800:.3f} off the grid (1 cells" in said


def test_bench_beside_peers_draws_what_it_timed(data, monkeypatch) -> None:
    saved(data, hopper_profile())

    def compare(**_: object) -> list[run.Outcome]:
        write(cell())
        (result,) = results.by_cell(cell())
        return [run.Outcome(result.cell, row.variant, row) for row in result.timings]

    monkeypatch.setattr(run, "compare", compare)
    ran = CliRunner().invoke(cli.app, ["bench", "--peers"])
    path = data / "figures" / f"attention-{GPU}.png"
    assert ran.exit_code == 0 and path.name in ran.stderr and "1.13" not in ran.stdout
    with Image.open(path) as picture:
        assert min(picture.size) > 300


BEYOND = {"shape": (2, 4, 4, 3000, 3000, 64, 64), "lengths": (3000, 1096), "grid": False}


def test_a_run_that_stops_behind_the_grid_gives_its_cells_alone(data) -> None:
    write([*cell(run="1"), *cell(run="1", **BEYOND)])
    write([*cell(run="2")])
    assert [(each.cell.grid, {row.run for row in each.timings}) for each in results.last_run(GPU)] == [
        (True, {"2"}),
        (False, {"1"}),
    ]


def test_a_run_beyond_the_grid_alone_leaves_the_grid_to_the_runs_before(data) -> None:
    write([*cell(run="1"), *cell(run="1", **BEYOND)])
    write([*cell(run="2"), *cell(run="3", **BEYOND)])
    assert [(each.cell.grid, {row.run for row in each.timings}) for each in results.last_run(GPU)] == [
        (True, {"2"}),
        (False, {"3"}),
    ]
