"""Figures in prose are generated from data/, and stay as data/ has them."""

import math
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from attention.timed import timings
from attention.verify.kernel import KernelResult
from microbench.errors import DataError, InputError, UnknownGpu
from microbench.report import readme
from microbench.verify import results, tables
from smscope import readme as ours
from smscope.readme import generated

END = "<!-- /generated -->\n"
TEXT = f"before\n<!-- generated: a -->\nold\n{END}between\n<!-- generated: b -->\n{END}after\n"


@pytest.mark.parametrize("file", readme.pages(), ids=lambda file: str(file.relative_to(file.parents[2])))
def test_the_blocks_of_a_page_are_current(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert text.count("<!-- generated:") == text.count("<!-- /generated -->") == len(readme.blocks(text))
    assert readme.stale(text, generated) == (), "run `python -m smscope.readme`"


def test_the_pages_hold_generated_blocks() -> None:
    assert any(readme.blocks(file.read_text(encoding="utf-8")) for file in readme.pages())


def test_only_the_named_block_is_filled() -> None:
    filled = readme.fill(TEXT, "a", "new\\1")
    assert filled == TEXT.replace("old", "new\\1") and readme.fill(filled, "a", "old") == TEXT
    assert readme.blocks(TEXT) == ("a", "b")


def test_a_missing_or_unknown_block_is_named() -> None:
    with pytest.raises(InputError, match="No block is called 'c'"):
        readme.fill(TEXT, "c", "")
    with pytest.raises(InputError, match="Nothing generates a block called 'a'"):
        readme.stale(TEXT)
    with pytest.raises(UnknownGpu, match="no-such-gpu"):
        readme.generated("results-no-such-gpu")


def test_an_edited_block_is_stale_until_it_is_refreshed() -> None:
    text = "<!-- generated: published-files -->\ntyped by hand\n<!-- /generated -->\n"
    assert readme.stale(text) == ("published-files",)
    fresh = readme.refreshed(text)
    assert readme.stale(fresh) == () and "measurements.csv" in fresh


def test_every_generator_gives_a_table() -> None:
    for name in ("architectures", "published-coverage", "published-sources", "published-bands", "published-rejected"):
        lines = generated(name).splitlines()
        assert len(lines) > 2 and all(line.startswith("| ") and line.endswith(" |") for line in lines)


def test_the_comparison_has_the_ratios_of_the_last_run_of_the_grid() -> None:
    rows, _ = timings.read("h200-sxm-141gb")
    last = max(row.run for row in rows if row.run and row.grid)
    ours, peers = {}, {}
    for row in rows:
        if row.run == last and row.grid:
            if row.variant == "sm90a/forward/warp_specialised" and row.picked:
                ours[row.shape, row.causal] = row.seconds
            elif row.variant.startswith("peer/"):
                peers[row.shape, row.causal] = min(row.seconds, peers.get((row.shape, row.causal), math.inf))
    ratios = [peers[cell] / seconds for cell, seconds in ours.items()]
    text = generated("comparison-h200-sxm-141gb")
    assert sorted(re.findall(r"\d \(([\d.]+)\)", text)) == sorted(f"{ratio:.3f}" for ratio in ratios)
    assert f"**{math.prod(ratios) ** (1 / 18):.3f}** over these 18 cells" in text
    with pytest.raises(DataError, match="No comparison with peers is on file for h100"):
        generated("comparison-h100-pcie")


def test_the_first_page_is_short() -> None:
    page = readme.pages()[0].read_text(encoding="utf-8")
    assert page.startswith("# smscope") and len(page.split()) < 3150 and len(page.splitlines()) < 180


def test_a_new_probe_or_kernel_changes_no_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its table is a file of its own, and no page counts them."""
    pages = [file.read_text(encoding="utf-8") for file in readme.pages()]
    plain = tables.read_all

    def with_one_more(kind: type[tables.BuildRow]) -> tuple[tables.BuildRow, ...]:
        found = plain(kind)
        return (*found, *(row.model_copy(update={"kernel": "new"}) for row in found if row.kernel == found[0].kernel))

    monkeypatch.setattr(tables, "read_all", with_one_more)
    assert [readme.refreshed(page, generated) for page in pages] == pages


def test_a_machine_that_sent_results_is_named_and_a_broken_probe_too(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = tables.read_all

    def broken(kind: type[tables.BuildRow]) -> tuple[tables.BuildRow, ...]:
        found = plain(kind)
        first = found[0].model_copy(update={"arch": "sm75", "kept": 0})
        return (first, *found[1:]) if kind is tables.BuildRow else found

    monkeypatch.setattr(ours, "read_all", broken)
    sent = SimpleNamespace(gpu="rtx-2080-ti-11gb", arch="sm75")
    monkeypatch.setattr(results, "committed", lambda kind: (sent,) if kind is KernelResult else ())
    turing = next(line for line in ours.architectures().splitlines() if "Turing" in line)
    assert turing.split(" | ")[2:] == [
        f"not {plain(tables.BuildRow)[0].kernel}, attention too",
        "yes",
        "run on rtx-2080-ti-11gb |",
    ]
