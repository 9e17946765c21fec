"""ptxas' latency model, read off real cubins: the committed table, and figures known from elsewhere."""

import pytest

from microbench.compile import nvrtc
from microbench.verify import latencies, tables
from microbench.verify.tables import LatencyRow


@pytest.mark.timeout(300)
def test_the_committed_latencies_are_current() -> None:
    made, committed = latencies.golden(), tables.read(LatencyRow)
    if {row.nvrtc for row in made} == {row.nvrtc for row in committed}:
        assert tables.path(LatencyRow).read_text() == tables.text(LatencyRow, made), "run `check --latencies --write`"
    else:
        assert [(row.instruction, row.arch) for row in made] == [(row.instruction, row.arch) for row in committed]


@pytest.mark.parametrize("instruction", ["FFMA", "FADD", "IMAD", "SHF"])
def test_the_core_pipes_take_four_cycles_everywhere(instruction: str) -> None:
    found = {(row.cycles, row.scoreboard) for row in tables.read(LatencyRow) if row.instruction == instruction}
    assert found == {("4", "no")}


# Read off other kernels, by another decoder, before this table existed.
KNOWN = {
    "m8n8k4 f16": {"sm70": "8"},
    "m16n8k8 f16": {"sm80": "16", "sm90a": "16", "sm100a": "20", "sm120a": "29"},
    "m16n8k16 f16": {"sm80": "24", "sm90a": "24", "sm100a": "20", "sm120a": "29"},
    "HFMA2": {"sm70": "6", "sm86": "4", "sm89": "4", "sm90a": "6 10", "sm100a": "4", "sm120a": "4"},
    "DFMA": {"sm90a": "8"},
}


@pytest.mark.parametrize(("instruction", "arch"), [(name, arch) for name, cycles in KNOWN.items() for arch in cycles])
def test_a_known_latency_is_found_again(instruction: str, arch: str) -> None:
    rows = {(row.instruction, row.arch): row for row in tables.read(LatencyRow)}
    assert rows[instruction, arch].cycles == KNOWN[instruction][arch]
    # Volta's quad pairs: the last HMMA.884 of each mma raises a scoreboard, the others do not.
    assert rows[instruction, arch].scoreboard == ("in part" if instruction == "m8n8k4 f16" else "no")


def test_what_runs_at_its_own_pace_is_waited_for_by_scoreboard() -> None:
    rows = {(row.instruction, row.arch): row.scoreboard for row in tables.read(LatencyRow)}
    assert {mark for (name, _), mark in rows.items() if name in ("MUFU.EX2", "SHFL", "m8n8k4 f64")} == {"yes"}
    assert rows["DFMA", "sm70"] == rows["DFMA", "sm120a"] == "yes"


def test_the_committed_latencies_are_of_the_requested_compiler() -> None:
    assert all(nvrtc.matches(row.nvrtc, nvrtc.DEFAULT) for row in tables.read(LatencyRow))
