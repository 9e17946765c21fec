"""The committed comparison on an H200: of this tree's kernels, and at least as fast as was promised."""

import math
from collections import defaultdict

import pytest

from attention import learned, timings
from attention.choose import choose
from attention.classes import representative
from attention.corrections import FEW_QUERIES
from attention.cuda.kernels import cubin_of
from attention.identity import same_code
from attention.problem import AttentionProblem
from attention.timing import Timing
from attention.variant import Config, by_path
from microbench import paths
from microbench.arch import by_name
from microbench.profile import Profile

GPU = "h200-sxm-141gb"
ROWS, PROBLEMS = timings.read(GPU)
LAST = max(row.run for row in ROWS if row.run)
WHOLE = [row for row in ROWS if row.run == LAST]
FINAL = [row for row in WHOLE if row.shape[3] > FEW_QUERIES]
FEW = [row for row in WHOLE if row.shape[3] <= FEW_QUERIES]


def cells_of(rows: list[Timing]) -> dict[tuple[AttentionProblem, tuple[int, ...]], list[Timing]]:
    """Rows of the same problem together."""
    cells: dict[tuple[AttentionProblem, tuple[int, ...]], list[Timing]] = defaultdict(list)
    for row in rows:
        cells[row.problem, row.lengths].append(row)
    return cells


def ratios(variant: str, peers: tuple[str, ...] = ()) -> dict[bool, list[float]]:
    """Best peer's time over ours, of the configuration that was picked; by whether the cell is on the grid."""
    found: dict[bool, list[float]] = {True: [], False: []}
    for rows in cells_of(FINAL).values():
        ours = [row.seconds for row in rows if row.variant == variant]
        others = [
            row.seconds for row in rows if row.variant.startswith("peer/") and (not peers or row.variant in peers)
        ]
        if ours and others:
            found[rows[0].grid].append(min(others) / min(ours))
    return found


def mean(values: list[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


def test_every_line_can_be_read() -> None:
    assert PROBLEMS == ()


def test_the_last_run_met_flash_attention_4_and_cudnn() -> None:
    assert {"peer/flash_attn_4", "peer/torch_cudnn", "peer/torch_flash"} <= {row.variant for row in FINAL}


def test_the_hopper_kernel_keeps_its_floors_beside_the_best_peer() -> None:
    found = ratios("sm90a/forward/warp_specialised")
    assert len(found[True]) == 18 and len(found[False]) == 10
    assert mean(found[True]) >= 0.90 and min(found[True]) >= 0.80
    assert mean(found[False]) >= 0.90 and min(found[False]) >= 0.75


def test_the_hopper_kernel_is_ahead_of_every_peer_in_every_cell() -> None:
    found = ratios("sm90a/forward/warp_specialised")
    assert min(found[True] + found[False]) > 1.0


def test_the_ampere_kernel_is_ahead_of_flash_attention_2_on_the_same_gpu() -> None:
    found = ratios("sm80/forward/software_pipelined", ("peer/torch_flash",))
    assert found[True] and mean(found[True] + found[False]) >= 1.0


def lost_by(rows: list[Timing]) -> list[float]:
    """The time of the picked kernel over the fastest of ours and of torch's, by cell."""
    profile = Profile.load(GPU)
    efficiencies = learned.of_machine(profile)
    lost = []
    for cell in cells_of(rows).values():
        seconds: dict[str, float] = {}
        for row in cell:
            name = row.variant.replace("peer/", "")
            seconds[name] = min(row.seconds, seconds.get(name, math.inf))
        seconds.pop("flash_attn_4", None)
        pick = choose(profile, representative(cell[0].problem), efficiencies=efficiencies).pick.variant
        lost.append(seconds[pick if pick in seconds else pick.rpartition("/")[2]] / min(seconds.values()))
    return lost


def test_the_chooser_takes_what_was_among_the_fastest_of_ours_and_of_torchs() -> None:
    lost = lost_by(FINAL)
    assert len(lost) == 28 and max(lost) <= 1.05


def test_the_chooser_loses_little_where_queries_are_few() -> None:
    lost = lost_by(FEW)
    assert len(lost) == 58 and max(lost) <= 1.40 and mean(lost) <= 1.05


def test_every_result_kept_the_rule_of_error() -> None:
    assert all(row.error <= row.allowed_error for row in WHOLE)


def test_what_was_timed_is_what_the_tree_holds() -> None:
    own = [row for row in FINAL if not row.variant.startswith("peer/")]
    assert len({row.variant for row in own}) == 2 and all(row.dirty is False for row in own)
    assert all(same_code(row.source_sha256, row.variant) for row in own)


OWN = [row for row in WHOLE if row.cubin_sha256]
LIST = paths.SHIPPED / "verification" / f"{GPU}-nvrtc-13.0.88.cubins"
BY_NVRTC_13 = {line.split()[0] for line in LIST.read_text().splitlines() if not line.startswith("#")}


@pytest.mark.parametrize("row", OWN[::5], ids=lambda row: f"{row.variant} {row.problem}")
def test_the_cubin_that_ran_is_the_one_that_the_tree_compiles_to(row: Timing) -> None:
    variant = by_path(row.variant)
    assert variant.build is not None
    cubin = cubin_of(variant.folder, variant.build(row.problem, Config(tuple(row.config.items()))), by_name("sm90a"))
    assert row.cubin_sha256 in (cubin.sha256, *BY_NVRTC_13)


def test_few_cubins_were_compiled_by_another_nvrtc() -> None:
    assert len(BY_NVRTC_13) == 5 and len({row.cubin_sha256 for row in OWN} - BY_NVRTC_13) > 40
