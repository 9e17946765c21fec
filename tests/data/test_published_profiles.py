"""The profiles of published constants: derived from the tables, every constant with a source, nothing impossible."""

from dataclasses import replace

import pytest

from microbench import paths
from microbench.errors import DataError
from microbench.probes import discover
from microbench.published import Published, load
from microbench.published.boards import known
from microbench.published.facts import Fact, Unit
from microbench.published.kinds import kind_of, of_kind
from microbench.published.profiles import derive, text
from microbench.results.order import in_order
from microbench.results.profile import Profile
from microbench.results.profile_constant import ProfileConstant

TABLES, PROBES = load(), discover()
KINDS = {kind.kind: kind for kind in TABLES.kinds}
DRAM, SMEM, SMEM_CYCLES = "dram_bandwidth_bytes_per_s", "smem_bandwidth_bytes_per_clk_sm", "smem_latency_cycles"


def derived(kind: str, *more: Fact, tables: Published = TABLES) -> Profile:
    return derive(KINDS[kind], replace(tables, facts=(*tables.facts, *more)), PROBES).profile


def figure(gpu: str, quantity: str, value: float, unit: Unit, source: str = "MT4G") -> Fact:
    return Fact(gpu, quantity, unit, source, "exact", value=value)


def test_the_eleven_kinds_have_one() -> None:
    assert set(KINDS) == {"v100", "t4", "a100", "l4", "l40s", "rtx-4090", "rtx-5090", "b200", "gb200", "b300", "gb300"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_profile_on_file_is_what_the_tables_give(kind: str) -> None:
    file = paths.SHIPPED / "published" / "profiles" / f"{kind}.json"
    assert file.read_text() == text(derived(kind))  # `make profile` writes it again


@pytest.mark.parametrize("kind", KINDS)
def test_every_constant_is_labelled_and_has_its_sources(kind: str) -> None:
    known_sources = {source.id for source in TABLES.sources}
    profile = of_kind(KINDS[kind])
    assert profile is not None and profile.constants
    for constant in profile.constants:
        assert (constant.label, constant.fault, constant.runs) == ("published", None, ())
        assert constant.sources and known_sources.issuperset(constant.sources) and constant.basis


@pytest.mark.parametrize("kind", KINDS)
def test_no_constants_contradict_one_another(kind: str) -> None:
    latencies = [each for each in derived(kind).constants if "at most this" not in (each.basis or "")]
    assert in_order(latencies)[1] == []


def test_two_that_contradict_one_another_both_go() -> None:
    found = derive(KINDS["b300"], TABLES, PROBES)  # 42 cycles (QRC), and 39.4 with one more instruction (MDEW)
    assert "l1_latency_cycles is 42 and l1_index_latency_cycles 39.4" in " ".join(found.refused)
    assert not {"l1_latency_cycles", "l1_index_latency_cycles"} & {each.name for each in found.profile.constants}


def test_every_board_and_source_of_a_kind_is_in_the_tables() -> None:
    for kind in TABLES.kinds:
        assert all(TABLES.gpu(board) for board in kind.boards)
        assert len({TABLES.gpu(board).compute_capability for board in kind.boards}) == 1  # type: ignore[union-attr]
        assert {source.id for source in TABLES.sources}.issuperset(kind.sources)


@pytest.mark.parametrize(
    ("kind", "planted", "constant"),
    [
        ("a100", figure("A100 SXM4 80GB", "bandwidth_dram_read_gbs", 5000, "GB/s"), DRAM),
        ("v100", figure("V100 PCIe", "bandwidth_smem_bytes_per_clk_sm", 256, "B/clk/SM"), SMEM),
        ("rtx-5090", figure("RTX 5090", "mma_throughput_m16n8k16_f32_bf16_flop_per_clk_sm", 1000, "FLOP/clk/SM"),
         "mma_bf16_burst_flops_per_s"),
    ],
)  # fmt: skip
def test_an_implausible_figure_is_refused(kind: str, planted: Fact, constant: str) -> None:
    found = derive(KINDS[kind], replace(TABLES, facts=(planted, *TABLES.facts)), PROBES)
    (said,) = found.refused
    assert planted.quantity in said and "breaks its bound" in said
    assert found.profile[constant] == derived(kind)[constant]


def test_a_plausible_figure_of_the_kind_goes_before_the_architectures() -> None:
    before = derived("l40s")[SMEM]
    assert before.basis == "RTX 4090, another board of sm89" and before.sources == ("L24",)
    after = derived("l40s", figure("L40S", "bandwidth_smem_bytes_per_clk_sm", 120, "B/clk/SM"))[SMEM]
    assert (after.value, after.basis, after.sources) == (120, "L40S", ("MT4G",))


def test_the_architecture_goes_before_its_documents_and_these_before_the_data_sheet() -> None:
    assert derived("l4")["mufu_ex2_per_clk_sm"].basis == "documented for compute capability 8.9"
    measured = figure("L40", "instr_throughput_mufu_ex2_per_clk_sm", 15.5, "inst/clk/SM")
    assert derived("l4", measured)["mufu_ex2_per_clk_sm"].value == 15.5
    assert (derived("l4")[DRAM].basis or "").startswith("data sheet of L4; a ceiling")
    assert derived("l4", figure("L4", "bandwidth_dram_read_gbs", 260, "GB/s"))[DRAM].value == 260e9


def test_a_bandwidth_of_another_board_of_the_kind_gives_way_to_the_boards_own() -> None:
    assert (derived("v100")[DRAM].basis or "").startswith("V100 PCIe, another board")
    assert derived("v100", figure("V100 SXM2 16GB", "bandwidth_dram_read_gbs", 800, "GB/s"))[DRAM].value == 800e9


def test_a_chip_tells_nothing_of_another_chips_memory() -> None:
    assert "l2_latency_cycles" in derived("l40s")  # of an L40, whose chip it shares
    assert not {"l2_latency_cycles", "dram_latency_cycles"} & {each.name for each in derived("l4").constants}


def test_a_geforce_tells_nothing_of_the_tensor_rate_of_another_line() -> None:
    rate = "mma_throughput_m16n8k16_f32_bf16_flop_per_clk_sm"
    products, geforce = "mma_bf16_burst_flops_per_s", figure("RTX 4090", rate, 500, "FLOP/clk/SM")
    assert derived("l40s", geforce)[products] == derived("l40s")[products]
    assert derived("rtx-4090", geforce)[products].value < derived("rtx-4090")[products].value
    assert derived("l40s", figure("L40", rate, 1000, "FLOP/clk/SM"))[products].basis != derived("l40s")[products].basis


def test_a_longer_chain_is_the_last_resort() -> None:
    step = derived("rtx-4090")[SMEM_CYCLES]
    assert step.value == 30.1 and (step.basis or "").endswith("so at most this")
    clean = figure("RTX 4090", "latency_smem_cycles", 23, "cycles")
    assert derived("rtx-4090", clean)[SMEM_CYCLES].value == 23


def test_the_highest_rate_and_the_middle_latency_win_and_the_spread_is_kept() -> None:
    rates = [figure("T4", "bandwidth_smem_bytes_per_clk_sm", value, "B/clk/SM") for value in (50, 63, 60)]
    found = derived("t4", *rates)[SMEM]
    assert (found.value, found.low, found.high, found.n) == (63, 50, 63, 3)
    cycles = [figure("T4", "latency_smem_cycles", value, "cycles") for value in (21, 25)]
    found = derived("t4", *cycles)[SMEM_CYCLES]
    assert (found.value, found.low, found.high, found.n) == (21, 19, 25, 3)
    assert found.sources == ("MT4G", "J19")


def test_what_a_row_disowns_or_times_with_its_timer_does_not_count() -> None:
    flagged = [replace(figure("RTX 5090", "latency_smem_cycles", 30, "cycles"), flags=(flag,)) for flag in
               ("low-trust", "timer-overhead", "disputed")]  # fmt: skip
    assert SMEM_CYCLES not in derived("rtx-5090", *flagged)


@pytest.mark.parametrize(("kind", "absent"), [("rtx-5090", SMEM_CYCLES), ("b300", "l2_bandwidth_bytes_per_s")])
def test_what_no_source_gives_is_absent(kind: str, absent: str) -> None:
    assert absent not in derived(kind)
    assert all(derived(kind, tables=replace(TABLES, facts=())).constants)  # documents and data sheets remain


def test_a_chips_l2_is_as_fast_a_clock_on_its_other_board() -> None:
    b200, gb200, l2 = derived("b200"), derived("gb200"), "l2_bandwidth_bytes_per_s"
    assert b200[l2].basis == "B200"  # per second, as it was read
    assert "a rate per clock" in (gb200[l2].basis or "") and gb200[l2].sources == ("B200N",)


def test_a_board_whose_sms_no_document_counts_has_no_profile() -> None:
    kind = replace(KINDS["a100"], kind="a40", boards=("A40",))
    with pytest.raises(DataError, match="no number of SMs of A40"):
        derive(kind, TABLES, PROBES)


def test_a_rate_of_the_chip_is_that_of_an_sm_at_the_data_sheets_clock() -> None:
    profile = derived("b200")
    per_second = profile.value("tcgen05_bf16_flops_per_clk_sm") * profile.sm_count * profile.value("sm_clock_mhz") * 1e6
    assert profile.value("tcgen05_bf16_burst_flops_per_s") == pytest.approx(per_second, rel=1e-5)


@pytest.mark.parametrize(
    ("asked", "kind"),
    [("v100", "v100"), ("V100 SXM2 32GB", "v100"), ("a100-pcie-40gb", "a100"), ("b200", "b200"), ("gb200", "gb200"),
     ("gb300", "gb300"), ("a40", None), ("sm89", None), ("titan v", None)],
)  # fmt: skip
def test_a_name_means_a_kind_where_all_its_boards_are_of_it(asked: str, kind: str | None) -> None:
    found = kind_of(known(asked))
    assert (found.kind if found else None) == kind


def test_measured_profiles_hold_no_published_constant() -> None:
    for file in (paths.SHIPPED / "profiles").glob("*.json"):
        profile = Profile.model_validate_json(file.read_bytes())
        assert all(isinstance(each, ProfileConstant) and each.label != "published" for each in profile.constants)


@pytest.mark.parametrize(("kind", "printed_percent"), [("t4", 68.8), ("v100", 83.3)])
def test_a_bandwidth_labelled_gib_is_the_share_that_its_table_prints(kind: str, printed_percent: float) -> None:
    board = {"t4": "T4", "v100": "V100 PCIe"}[kind]
    (fact,) = [fact for fact in load().facts if (fact.gpu, fact.quantity) == (board, "bandwidth_dram_gbs")]
    spec, rule = load().spec(board), next(row for row in load().quantities if row.quantity == fact.quantity)
    peak = spec.number("mem_bw_gbs") if spec else None
    assert peak and fact.value is not None and rule.factor == 1e9
    assert 100 * fact.value / peak == pytest.approx(printed_percent, abs=0.06)


@pytest.mark.parametrize(("kind", "share"), [("t4", 3662 / 4070 * 64), ("v100", 12080 / 13800 * 128)])
def test_shared_memory_labelled_gib_is_a_share_of_its_width(kind: str, share: float) -> None:
    profile = of_kind(KINDS[kind])
    assert profile is not None
    high = next(each.high for each in profile.constants if each.name == "smem_bandwidth_bytes_per_clk_sm")
    assert high == pytest.approx(share, rel=1e-3)
