"""What all CUDA kernels of the forward are told of a problem."""

import math
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attention.kernels.common.family import SERVED, dealt, dealt_tiles, fill, of_any_length, refuses, section_of
from attention.kernels.launch.strided import Launch as StridedLaunch
from attention.kernels.sm80.forward.software_pipelined import variant as pipelined
from attention.kernels.sm80.forward.split_keys import variant as split
from attention.kernels.sm90a.forward.warp_specialised import variant as hopper
from attention.kernels.sm90a.forward.warp_specialised.arguments import Launch as HopperLaunch
from attention.problem import AttentionProblem
from attention.variant import Config, by_path
from attention.verify.build_matrix import legal
from microbench.machine.arch import by_name

LAUNCHES = (HopperLaunch, StridedLaunch)
PLAIN = AttentionProblem(2, 8, 2, 300, 500, 128, dtype="bfloat16", device="cuda")
HOPPER = by_path("sm90a/forward/warp_specialised").configs()[0]
PACKED = replace(PLAIN, varlen=True, tokens_q=350, tokens_kv=900, causal=True, alignment="bottom_right")


@pytest.mark.parametrize("kind", LAUNCHES, ids=lambda each: each.__module__.split(".")[2])
def test_a_launch_says_what_follows_from_a_problem(kind) -> None:
    launch = kind()
    assert fill(launch, PLAIN, (2, 8, 300, 128), (2, 2, 500, 128), 128) == 3 * 16 == launch.tiles
    assert (launch.batch, launch.heads, launch.heads_per_kv, launch.queries, launch.keys) == (2, 8, 4, 300, 500)
    assert (launch.row_tiles, launch.head_dim, launch.section, launch.moves, launch.softcap) == (3, 128, 16, 0, 0.0)
    assert launch.scale_log2 == pytest.approx(128**-0.5 / math.log(2))


def test_edges_are_those_of_the_band_and_packed_ones_move_with_each_sequence() -> None:
    launch = HopperLaunch()
    fill(launch, replace(PLAIN, causal=True, alignment="bottom_right"), (2, 8, 300, 128), (2, 2, 500, 128), 128)
    assert (launch.right, launch.moves) == (200, 1)
    fill(launch, PACKED, (1, 8, 350, 128), (1, 2, 900, 128), 128)
    assert (launch.right, launch.moves, launch.queries, launch.keys) == (0, 1, 350, 900)
    fill(launch, replace(PLAIN, window=(64, 16)), (2, 8, 300, 128), (2, 2, 500, 128), 128)
    assert (launch.left, launch.right) == (-64, 16)


def test_scores_are_scaled_after_the_cap() -> None:
    launch = HopperLaunch()
    fill(launch, replace(PLAIN, softcap=50.0), (2, 8, 300, 128), (2, 2, 500, 128), 128)
    assert launch.scale_log2 == pytest.approx(50 / math.log(2)) and launch.softcap == pytest.approx(128**-0.5 / 50)


def test_a_slope_is_counted_in_raw_scores() -> None:
    launch = HopperLaunch()
    fill(launch, replace(PLAIN, alibi=True), (2, 8, 300, 128), (2, 2, 500, 128), 128)
    assert launch.alibi_scale == pytest.approx(128**0.5)


def test_packed_sequences_are_no_longer_than_all_of_their_rows() -> None:
    """A longest length may be any bound: tiles beyond all rows would be walked for nothing, or wrap."""
    launch, hopper, longest = HopperLaunch(), by_name("sm90a"), 2**31 - 1
    problem = replace(PACKED, batch=2, seq_q=longest, seq_kv=longest)
    assert fill(launch, problem, (1, 8, 350, 128), (1, 2, 900, 128), 128) == 3 * 2 * 8 == launch.tiles
    assert refuses(problem, hopper) is None
    assert "tiles" in str(refuses(replace(PLAIN, batch=2**16, seq_q=2**20), hopper))


def test_tiles_of_very_unlike_sequences_are_dealt_by_their_own_lengths() -> None:
    """One of 8192 rows among 511 of 256: a grid for the longest of each would be empty in 97 % of its tiles."""
    tokens = 511 * 256 + 8192
    uneven = replace(PACKED, batch=512, seq_q=8192, seq_kv=8192, tokens_q=tokens, tokens_kv=tokens)
    launch = HopperLaunch()
    assert dealt(uneven) and fill(launch, uneven, (1, 8, tokens, 128), (1, 2, tokens, 128), 128) == launch.tiles
    rows = 511 * 2 + 64
    assert launch.row_tiles * 8 == launch.tiles and rows <= launch.row_tiles < 1.5 * rows and launch.section == 8
    assert ("DEALT", 1) in by_path("sm90a/forward/warp_specialised").steps(uneven, HOPPER)[0].defines


@pytest.mark.parametrize("longest", [256, 512, 600])
def test_sequences_of_like_lengths_have_the_tiles_of_the_longest_and_their_builds_no_word_more(longest: int) -> None:
    even = replace(PACKED, batch=100, seq_q=longest, seq_kv=longest, tokens_q=25600, tokens_kv=25600)
    assert not dealt(even) and not dealt(replace(even, varlen=False))
    assert "DEALT" not in dict(by_path("sm90a/forward/warp_specialised").steps(even, HOPPER)[0].defines)


@given(st.lists(st.integers(0, 3000), min_size=1, max_size=60), st.sampled_from([32, 64, 128, 192, 256]))
def test_each_sequence_has_room_for_its_rows_between_its_first_tile_and_the_next_ones(
    lengths: list[int], rows: int
) -> None:
    starts = [sum(lengths[:count]) for count in range(len(lengths) + 1)]
    first = [sequence + start // rows for sequence, start in enumerate(starts)]  # as work.cuh has it
    assert all(
        -(-length // rows) <= after - before <= length // rows + 2
        for length, before, after in zip(lengths, first, first[1:], strict=False)
    )
    problem = replace(PLAIN, batch=len(lengths), varlen=True, tokens_q=sum(lengths), tokens_kv=1)
    assert first[-1] <= dealt_tiles(problem, rows)


@given(st.integers(1, 64), st.integers(1, 64), st.sampled_from([1, 2, 8]), st.integers(1, 1 << 17))
def test_sections_hold_ten_to_forty_two_heads_and_leave_few_over(batch: int, kv: int, group: int, keys: int) -> None:
    problem = replace(PLAIN, batch=batch, heads_q=kv * group, heads_kv=kv, seq_kv=keys)
    heads, section = batch * kv * group, section_of(problem)
    assert min(heads, 10) <= section <= min(heads, 42)
    assert -heads % section <= section / 2 or heads < 84  # the last one is at least half full


def test_what_was_measured_is_cut_as_it_was_measured() -> None:
    short, long = ((512, 64), (256, 128), (128, 256)), ((64, 128), (32, 256))
    cut = {(heads, 1024, width): 32 for heads, width in short} | {(heads, 4096, width): 16 for heads, width in long}
    cut |= {(16, 16384, 128): 16, (8, 16384, 256): 8}
    for (heads, keys, width), section in cut.items():
        problem = AttentionProblem(1, heads, heads, keys, keys, width, dtype="bfloat16", device="cuda", causal=True)
        assert section_of(problem) == section, (heads, keys, width)


UNLIKE_SERVED = ("sm80/forward/software_pipelined", "sm90a/forward/warp_specialised")


@pytest.mark.parametrize("path", UNLIKE_SERVED)
@pytest.mark.parametrize(("head_dim", "held"), [(8, 16), (40, 48), (72, 80), (80, 80), (104, 112), (249, 256)])
def test_a_head_dim_is_held_at_the_next_multiple_of_16(path: str, head_dim: int, held: int) -> None:
    variant, problem = by_path(path), replace(PLAIN, head_dim=head_dim, head_dim_v=head_dim, scale=None)
    (build,) = variant.steps(problem, variant.configs()[0])
    assert dict(build.defines)["HEAD_DIM"] == held == variant.pads(head_dim) and "VALUE_DIM" not in dict(build.defines)
    padded = [note for note in variant.notes(problem) if note.endswith(f"is padded to {held} in shared memory")]
    assert len(padded) == int(held != head_dim)


@pytest.mark.parametrize("path", UNLIKE_SERVED)
def test_value_dims_of_any_multiple_of_16_are_served_and_counted(path: str) -> None:
    variant = by_path(path)
    arch = by_name(variant.archs[0])
    for dims in ((192, 128), (64, 256), (128, 64), (120, 128), (16, 240)):
        problem = replace(PLAIN, head_dim=dims[0], head_dim_v=dims[1], seq_q=4096, seq_kv=4096, scale=None)
        config = legal(variant, problem, arch)[0]
        (build,) = variant.steps(problem, config)
        assert dict(build.defines)["VALUE_DIM"] == dims[1]
        assert variant.tile is not None
        tile = variant.tile(problem, config)
        flops = next(each.amount for each in tile.demands if each.term.startswith("products"))
        assert flops == 2 * tile.rows * tile.columns * (-(-dims[0] // 16) * 16 + dims[1])
    for value_dim in (72, 264, 528):
        unlike = replace(PLAIN, head_dim=64, head_dim_v=value_dim, scale=None)
        assert f"multiples of 16 up to 512, not {value_dim}" in str(variant.refusal(unlike, arch))


def test_blackwell_serves_the_value_dims_of_hopper_and_holds_them_at_the_next_multiple_of_32() -> None:
    hopper, blackwell = by_path(UNLIKE_SERVED[1]), by_path("sm100a/forward/tensor_memory")
    arch = by_name("sm100a")
    for value_dim in (*range(8, 257, 8), 264, 528):
        problem = replace(PLAIN, head_dim=68, head_dim_v=value_dim, scale=None)
        refused = blackwell.refusal(problem, arch)
        assert refused == hopper.refusal(problem, by_name("sm90a"))
        assert (refused is None) == (value_dim % 16 == 0 and value_dim <= 256)
        if refused:
            continue
        config = legal(blackwell, problem, arch)[0]
        assert dict(blackwell.steps(problem, config)[0].defines)["VALUE_DIM"] == value_dim
        assert blackwell.tile is not None
        tile = blackwell.tile(problem, config)
        flops = next(each.amount for each in tile.demands if each.term.startswith("products"))
        assert flops == 2 * tile.rows * tile.columns * (96 + -(-value_dim // 32) * 32)


def test_blackwell_has_every_feature_of_hopper() -> None:
    hopper, blackwell = by_path(UNLIKE_SERVED[1]), by_path("sm100a/forward/tensor_memory")
    assert blackwell.features == hopper.features == SERVED


@pytest.mark.parametrize(
    "path",
    [
        "sm70/forward/quad_pair",
        "sm75/forward/register_staged",
        "sm80/forward/software_pipelined",
        "sm90a/forward/warp_specialised",
    ],
)
def test_what_is_settled_is_no_axis_has_a_reason_and_may_be_named(path) -> None:
    variant = by_path(path)
    config, axes = variant.configs()[-1], dict(variant.space)
    problem = replace(PLAIN, mask="bool")  # two blocks may share it
    (build,) = variant.steps(problem, config)
    for each in variant.settled:
        assert each.name not in axes and each.why
        (other,) = variant.steps(problem, Config((*config.values, (each.name, 7))))
        mine, its = ([name for name, _ in all_of.defines if name != each.name.upper()] for all_of in (build, other))
        if each.name == "shared_keys":  # blocks that share K and V share no mask, whose word is missing then
            mine = [name for name in mine if name != "SEEDED"]
        assert mine == its and other != build


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"causal": True, "alignment": "bottom_right"},
        {"window": (3, 5), "alignment": "bottom_right"},
        {"window": (100, -1), "alibi": True},
        {"mask": "float", "mask_dtype": "float32", "ranges": True},
        {"mask": "bool", "causal": True},
        {"varlen": True, "tokens_q": 600, "tokens_kv": 2000, "softcap": 30.0},
    ],
    ids=str,
)
@pytest.mark.parametrize(("heads", "queries", "keys"), [((3, 3), 1, 70), ((8, 2), 33, 33), ((8, 8), 400, 9000)])
def test_lengths_that_stand_for_all_have_the_tiles_of_each(asked, heads, queries, keys) -> None:
    problem = AttentionProblem(2, *heads, queries, keys, 80, 96, dtype="bfloat16", device="cuda", **asked)
    alike, arch = of_any_length(problem), by_name("sm90a")
    for rules in (pipelined, hopper):
        for point in rules.VARIANT.configs():
            # Which heads share rows follows from lengths, and from it a build, but no limit on its tile (packed.py).
            config = Config((*point.values, ("pack_gqa", 0))) if rules is hopper else point
            assert rules._why_not(alike, config, arch) == rules._why_not(problem, config, arch)
            assert rules.shape_of(alike, config) == rules.shape_of(problem, config)
    some_keys = split._of_any_keys(problem)
    for tile in product((4, 8), (16, 32, 64, 128), (0, 2, 3)):
        assert split._why_not(some_keys, *tile, arch) == split._why_not(problem, *tile, arch)
        assert split._residents(some_keys, *tile, 4) == split._residents(problem, *tile, 4)
