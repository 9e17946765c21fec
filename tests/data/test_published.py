"""data/published: every row validates, nothing in it is impossible, and our gates stop what is known to be wrong."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

from microbench import paths
from microbench.errors import DataError
from microbench.probes import discover
from microbench.published import load
from microbench.published.facts import Fact, Flag, Rejected
from microbench.published.plausible import problems
from microbench.published.verdict import accept, compare
from tests.data.profiles import constant, profile

TABLES, PROBES = load(), discover()
REJECTED = {gate: [row for row in TABLES.rejected if row.gate == gate] for gate in ("acceptance", "comparison")}
ARCH_OF = {"h100-sxm-80gb": "sm90a", "a100-sxm4-40gb": "sm80", "b200-sxm-180gb": "sm100a"}


def ids(rows: list[Rejected]) -> list[str]:
    return [f"{row.gpu}-{row.quantity}" for row in rows]


def test_every_table_loads_and_holds_rows() -> None:
    assert all(len(table) > 0 for table in vars(TABLES).values())


def test_no_trusted_fact_is_impossible() -> None:
    assert problems(TABLES, PROBES) == ()


def test_an_impossible_fact_is_named() -> None:
    fact = next(f for f in TABLES.facts if f.gpu == "H100 PCIe 80GB" and f.quantity == "bandwidth_dram_read_gbs")
    damaged = replace(
        TABLES, facts=(replace(fact, value=15800.0), replace(fact, gpu="H900"), replace(fact, source="X"))
    )
    text = " ".join(problems(damaged, PROBES))
    assert "15800" in text and "at most 2.039e+12 B/s" in text
    assert "H900 has no row in gpus.csv" in text and "X has no row" in text


def test_a_disowned_fact_is_not_trusted() -> None:
    fact = Fact("H100 NVL", "latency_l1_hit_cycles", "cycles", "MT4G", "exact", value=38.0)
    assert fact.trusted and not replace(fact, flags=("low-trust",)).trusted
    assert replace(fact, flags=("timer-overhead",)).trusted


def test_the_readme_explains_every_flag() -> None:
    text = (paths.SHIPPED / "published" / "README.md").read_text()
    assert [flag for flag in get_args(Flag) if f"`{flag}`" not in text] == []


def test_slugs_name_boards_once() -> None:
    slugs = [gpu.slug for gpu in TABLES.gpus if gpu.slug]
    specs = {spec.gpu for spec in TABLES.specs}
    assert len(slugs) == len(set(slugs))
    assert {gpu.spec for gpu in TABLES.gpus if gpu.spec} <= specs


def test_every_rule_and_band_speaks_of_published_facts() -> None:
    known = {row.quantity for row in (*TABLES.facts, *TABLES.rejected)}
    known |= {f"documented_{rate.operation}" for rate in TABLES.rates} | {"documented_smem_banks"}
    # Boards whose latency or size nobody publishes yet keep their rule, so that a new row is compared at once.
    assert {rule.quantity for rule in TABLES.quantities} <= known | {"latency_dram_ns", "size_l2_segment_bytes"}


def test_a_recalled_specification_is_not_read() -> None:
    spec = next(spec for spec in TABLES.specs if spec.gpu == "GH200")
    assert spec.read("boost_clock_mhz") == 1980 and spec.sm_count == 132
    assert spec.read("sm_count") is None and spec.read("mem_bw_gbs") is None


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        (',cycles,"', ',furlongs,"', "line 2, unit"),
        (",exact,\n", ",certain,\n", "line 2, confidence"),
        (",exact,\n", ",exact,shaky\n", "line 2, flags"),
        (",28,,cycles", ",fast,,cycles", "line 2, value"),
        (",28,,cycles", ",nan,,cycles", "line 2, value"),
        (",28,,cycles", ",28,1/2,cycles", "line 2, row"),
        ("gpu,quantity", "gpu,colour,quantity", "line 2"),
        ("V100 PCIe,", "V100 PCIe,V100 PCIe,", "line 2"),
    ],
)
def test_a_bad_row_is_named_by_file_line_and_column(tmp_path: Path, old: str, new: str, complaint: str) -> None:
    folder = tmp_path / "published"
    shutil.copytree(paths.SHIPPED / "published", folder)
    file = folder / "measurements.csv"
    lines = file.read_text().splitlines(keepends=True)[:2]
    text = "".join(lines).replace(old, new, 1)
    assert text != "".join(lines)
    file.write_text(text)
    with pytest.raises(DataError, match=rf"measurements\.csv, {complaint}"):
        load(folder)


def test_a_missing_table_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"Cannot read measurements\.csv"):
        load(tmp_path)


@pytest.mark.parametrize("row", REJECTED["acceptance"], ids=ids(REJECTED["acceptance"]))
def test_a_band_rejects_the_wrong_number(row: Rejected) -> None:
    wrong = profile(constant(row.quantity, row.value, unit=row.unit), gpu=row.gpu, arch=ARCH_OF[row.gpu])
    verdicts = {found.constant: found.verdict for found in accept(wrong)}
    assert verdicts[row.quantity] == "outside"


@pytest.mark.parametrize("row", REJECTED["comparison"], ids=ids(REJECTED["comparison"]))
def test_better_rows_reject_the_wrong_number(row: Rejected) -> None:
    wrong = profile(constant(row.quantity, row.value, unit=row.unit), gpu=row.gpu, arch=ARCH_OF[row.gpu])
    assert compare(wrong)[0].verdict == "disagrees"
