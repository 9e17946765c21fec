"""The committed comparison on an H100: of this tree's kernels, and at least as fast as was promised."""

import math
from collections import defaultdict

import pytest

from attention import timings
from attention.choose import choose
from attention.cuda.kernels import cubin_of
from attention.identity import same_code
from attention.problem import AttentionProblem
from attention.timings import Timing
from attention.variant import Config, by_path
from microbench.arch import by_name
from microbench.profile import Profile

GPU = "h100-sxm-80gb"
ROWS, PROBLEMS = timings.read(GPU)
LAST = max(row.run for row in ROWS if row.run)
FINAL = [row for row in ROWS if row.run == LAST]


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


def test_the_chooser_takes_what_was_among_the_fastest_of_ours_and_of_torchs() -> None:
    profile = Profile.load(GPU)
    efficiencies = timings.of_machine(profile)
    lost = []
    for rows in cells_of(FINAL).values():
        seconds = {row.variant.replace("peer/", ""): row.seconds for row in rows if "flash_attn_4" not in row.variant}
        pick = choose(profile, rows[0].problem, efficiencies=efficiencies).pick.variant
        ours = pick if pick in seconds else pick.rpartition("/")[2]
        lost.append(seconds[ours] / min(seconds.values()))
    assert len(lost) == 28 and max(lost) <= 1.05


def test_every_result_kept_the_rule_of_error() -> None:
    assert all(row.error <= row.allowed_error for row in FINAL)


def test_what_was_timed_is_what_the_tree_holds() -> None:
    own = [row for row in FINAL if not row.variant.startswith("peer/")]
    assert len({row.variant for row in own}) == 2 and all(row.dirty is False for row in own)
    assert all(same_code(row.source_sha256, row.variant) for row in own)


OWN = [row for row in FINAL if row.cubin_sha256]


@pytest.mark.parametrize("row", OWN[::5], ids=lambda row: f"{row.variant} {row.problem}")
def test_the_cubin_that_ran_is_the_one_that_the_tree_compiles_to(row: Timing) -> None:
    variant = by_path(row.variant)
    assert variant.build is not None
    cubin = cubin_of(variant.folder, variant.build(row.problem, Config(tuple(row.config.items()))), by_name("sm90a"))
    assert cubin.sha256 == row.cubin_sha256
