"""A profile as a table: the numbers are written shortly and truly, and the page is whole or not there."""

import base64
import io
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from microbench import report
from microbench.console import si
from microbench.errors import DataError
from microbench.report import html, ladder
from microbench.report.html import Picture
from tests.data.profiles import constant, profile, shipped

H100 = profile(
    constant("l1_latency_cycles", 32.1, 0.003, bound_lower=16.0, bound_why="one pipeline"),
    constant("dram_bandwidth_bytes_per_s", 3.05e12, 0.002, unit="B/s", bound_upper=3.352e12, label="lower bound"),
    constant("l1_size_bytes", 237568, 0.0, unit="bytes"),
    constant("dram_latency_ns", 354.4, unit="ns"),
)


def test_one_thing_is_not_many() -> None:
    assert [si.counted(count, "timing") for count in (0, 1, 2)] == ["0 timings", "1 timing", "2 timings"]


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (3.05e12, "B/s", "3.05 TB/s"),
        (32.1, "cycles", "32.1 cycles"),
        (237568, "bytes", "232 KiB"),
        (512, "bytes", "512 B"),
        (1300, "ns", "1.30 µs"),
        (354.4, "ns", "354 ns"),
        (999.96, "ns", "1.00 µs"),
        (2600, "FLOP/clk/SM", "2600 FLOP/clk/SM"),
        (0, "B/s", "0 B/s"),
    ],
)
def test_a_number_is_written_with_three_digits_and_a_prefix(value: float, unit: str, text: str) -> None:
    assert si.written(value, unit) == text


@given(st.floats(1e-8, 1e17), st.sampled_from(["B/s", "bytes", "s", "FLOP/s"]))
def test_what_is_written_reads_back(value: float, unit: str) -> None:
    by = si.scale(value, unit)
    assert float(si.digits(value / by.divisor)) * by.divisor == pytest.approx(value, rel=0.006, abs=1e-9 * by.divisor)


def test_a_row_holds_value_interval_bound_publication_and_verdict() -> None:
    l1, dram, size, latency = report.rows(H100)
    assert (l1.value, l1.interval, l1.unit, l1.bound) == ("32.1", "[32.0, 32.2] of 6", "cycles", "≥ 16.0")
    assert l1.verdict == "agrees" and (l1.published, l1.source) == ("32.0 to 32.2", "HPMLL, H800 PCIe and 2 more")
    assert (dram.value, dram.interval, dram.unit, dram.bound) == ("≥ 3.05", "[3.04, 3.06] of 6", "TB/s", "≤ 3.35")
    assert (size.value, size.interval, size.unit, size.bound) == ("232", "[232, 232] of 6", "KiB", "unknown")
    assert latency.published == "" and latency.verdict == "no published value"


def drawn(what: object, width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width)
    with console.capture() as capture:
        console.print(what)
    return capture.get()


def test_the_terminal_table_shows_every_cell() -> None:
    text = drawn(report.table(H100), 200)
    assert all(cell in text for row in report.rows(H100) for cell in row.cells)
    assert all(heading in text for heading in report.HEADINGS)


def test_a_narrow_terminal_gets_whole_names_and_numbers() -> None:
    text = drawn(report.table(H100))
    assert all(len(line) <= 80 for line in text.splitlines())
    for row in report.rows(H100):
        assert all(cell in text for cell in (row.quantity, row.value, row.interval, row.unit, row.bound, row.verdict))


def test_a_pipe_in_a_cell_does_not_break_a_table() -> None:
    assert report.markdown(("a",), (("x|y",),)).splitlines()[-1] == r"| x\|y |"


def test_the_page_names_machine_bounds_bands_and_disagreements() -> None:
    page = report.page(H100)
    assert page.startswith("# H100-SXM-80GB\n") and "132 SMs, 1.98 GHz" in page
    assert "one pipeline" in page and "## Acceptance" in page and "`dram_bandwidth_bytes_per_s` against" in page
    assert "## Acceptance" not in report.page(profile(constant("x", 1.0), gpu="host", arch="host"))


def test_the_page_is_one_file_that_holds_its_pictures(tmp_path: Path) -> None:
    svg = b"<svg xmlns='http://www.w3.org/2000/svg'/>"
    file = html.write(H100, [Picture('a "quoted" <figure>', svg)], tmp_path / "new")
    text = file.read_text()
    assert file.name == "h100-sxm-80gb.html"
    assert "<h1>H100-SXM-80GB</h1>" in text and "<td>l1_latency_cycles</td>" in text
    assert "a &quot;quoted&quot; &lt;figure&gt;" in text
    sources = re.findall(r'(?:src|href)="([^"]*)"', text)
    assert [base64.b64decode(source.removeprefix("data:image/svg+xml;base64,")) for source in sources] == [svg]
    assert sorted(p.name for p in (tmp_path / "new").iterdir()) == ["h100-sxm-80gb.html"]


def test_the_page_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(DataError, match=r"Could not write .*h100-sxm-80gb\.html"):
        html.write(H100, [], tmp_path / "taken")


def test_a_machine_of_which_nothing_is_published_has_no_empty_columns() -> None:
    cpu = profile(constant("fma_f32_per_s", 1e11, unit="FMA/s"), gpu="host-test", arch="host")
    text = drawn(report.table(cpu)) + report.results(cpu)
    assert "published" not in text and "verdict" not in text


def test_a_constant_in_doubt_is_marked_and_named_on_the_page() -> None:
    doubted = profile(constant("x_cycles", 4.0, flags=("busy",)), gpu="host-test", arch="host")
    assert report.rows(doubted)[0].interval.endswith(" ?")
    assert "- In doubt: x_cycles: measured while the machine was busy." in report.page(doubted)
    assert "In doubt" not in report.page(H100)


@pytest.mark.parametrize("gpu", ["h100-sxm-80gb", "host-amd-epyc-f26m2-2c"])
def test_the_ladder_of_a_terminal_has_a_bar_an_octave_and_says_where_caches_end(gpu: str) -> None:
    derived, run = shipped(gpu)
    lines = drawn(ladder.chart(run.records, derived)).splitlines()
    bars = [line.count("█") for line in lines]
    assert len(lines) == (18 if gpu.startswith("h100") else 17) and max(map(len, lines)) <= 80
    assert bars == sorted(bars) and bars[0] >= 1 and bars[-1] == ladder.BAR_COLUMNS
    text = "\n".join(lines)
    assert "L1, to " in text and "L2, to " in text and lines[-1].rstrip().endswith("DRAM")
    busy = tuple(c.model_copy(update={"flags": ("busy",)}) for c in derived.constants)
    doubted = derived.model_copy(update={"constants": busy})
    assert set(ladder.labels([4096, 1 << 30], doubted)) == {""} and ladder.chart([], derived) is None
