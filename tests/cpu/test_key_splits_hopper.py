"""Keys of few tiles of rows on several of Hopper's persistent blocks: where that is legal, and what it takes."""

from dataclasses import replace

import pytest

from attention.choose.model import predict
from attention.choose.warpgroups.dealt import dealt
from attention.errors import LaunchError
from attention.kernels.common.key_splits import MOST_TILES
from attention.problem import AttentionProblem
from attention.variant import Config, by_path
from microbench.machine.arch import by_name
from microbench.results.profile import Profile

SPLIT, WHOLE = by_path("sm90a/forward/split_keys"), by_path("sm90a/forward/warp_specialised")
ARCH = by_name("sm90a")
FEW = AttentionProblem(1, 4, 4, 1024, 8192, 128, dtype="bfloat16", device="cuda")  # 32 tiles of 128 rows
WHOLE_TILE = Config((("tile_keys", 176), ("warpgroups", 2), ("stages", 2), ("q_in_registers", 0)))
H200 = Profile.load("h200-sxm-141gb")


def config(key_splits: int, tile_keys: int = 176, warpgroups: int = 2) -> Config:
    return Config((("tile_keys", tile_keys), ("warpgroups", warpgroups), ("key_splits", key_splits)))


def legal(problem: AttentionProblem, *, warpgroups: int = 2) -> dict[int, set[int]]:
    """Blocks that may share the keys of a tile, by its keys."""
    assert SPLIT.illegal is not None
    found: dict[int, set[int]] = {}
    for each in SPLIT.configs():
        if each["warpgroups"] == warpgroups and SPLIT.illegal(problem, each, ARCH) is None:
            found.setdefault(each["tile_keys"], set()).add(each["key_splits"])
    return found


def test_parts_are_legal_that_fill_the_gpu_with_the_largest_tile_and_an_even_one() -> None:
    assert legal(FEW) == {tile_keys: {2, 3, 4, 5, 6, 8} for tile_keys in (112, 176)}
    assert legal(replace(FEW, head_dim=256, head_dim_v=256)) == {80: {2, 3, 4, 5, 6, 8}}


def test_few_keys_are_dealt_to_as_many_blocks_as_there_are_tiles_of_them() -> None:
    assert legal(replace(FEW, heads_q=4, heads_kv=4, seq_kv=600)) == {112: {2, 3, 4, 5, 6}, 176: {2, 3, 4}}
    assert legal(replace(FEW, heads_q=1, heads_kv=1, seq_kv=600)) == {112: {6}, 176: {4, 5, 6}}  # 32 to 48 of 132 SMs


def test_three_warpgroups_need_rows_for_a_third() -> None:
    assert legal(FEW, warpgroups=3) and not legal(replace(FEW, seq_q=128, heads_q=16), warpgroups=3)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"seq_q": 32}, "more than 32 rows, of queries or of a group's heads, not 32"),
        ({"heads_q": 32, "seq_q": 4096}, "up to 132 tiles of rows to several blocks, not of 704"),
        ({"seq_kv": 127}, "128 keys or more, not 127"),
        ({"dtype": "float32"}, "float16 and bfloat16"),
        ({"softcap": 30.0}, "has no softcap"),
    ],
)
def test_what_other_kernels_are_for_is_refused(changes: dict[str, object], says: str) -> None:
    assert says in str(SPLIT.refusal(replace(FEW, **changes), ARCH))  # type: ignore[arg-type]


def test_the_workspace_has_room_for_what_every_part_leaves() -> None:
    assert SPLIT.workspace(FEW, config(4)) == 32 * 4 * 128 * (128 + 8) * 4


def test_however_many_parts_there_are_the_code_is_the_same() -> None:
    assert SPLIT.steps(FEW, config(2)) == SPLIT.steps(FEW, config(8))
    (build,) = SPLIT.steps(FEW, config(2))
    (whole,) = WHOLE.steps(FEW, WHOLE_TILE)
    assert build.kernel.endswith("_split") and build.defines == (*whole.defines, ("KEY_PARTS", 1))


def test_more_parts_than_counters_are_not_launched() -> None:
    pytest.importorskip("torch")
    from attention.kernels.sm90a.forward.split_keys.arguments import Launch, shape_of
    from attention.kernels.sm90a.forward.split_keys.launch import _room

    shape = shape_of(FEW, config(2))
    assert _room(Launch(tiles=3), shape) == 3 * 2 * shape.partial_floats
    with pytest.raises(LaunchError, match=f"{MOST_TILES} parts of keys .* counters are for {MOST_TILES - 1}"):
        _room(Launch(tiles=MOST_TILES // 2), shape)


def test_the_model_knows_that_parts_fill_waves() -> None:
    def share(key_splits: int) -> tuple[float, float, int]:
        found = dealt(FEW, 128, 128, 132, key_splits=key_splits)
        return found.keys, found.rows, found.every

    assert share(1) == (64, 1, 32) and share(4) == (16, 1, 128)
    assert share(5) == (2 * 13, 2, 160)  # a second round for few
    assert share(8) == (2 * 8, 2, 256)


def test_a_call_with_few_tiles_of_rows_is_expected_to_take_a_third_of_the_time() -> None:
    whole = predict(H200, FEW, WHOLE, WHOLE_TILE)
    split = predict(H200, FEW, SPLIT, config(4))
    assert whole.seconds / 3 < split.seconds < whole.seconds / 2
    terms = {term.term: term.seconds for term in split.terms}
    brought = ("parts to L2", "parts are awaited", "parts from L2", "parts are added")
    assert all(0 < terms[name] < 3e-6 for name in brought) and not any(each.term in brought for each in whole.terms)


def test_more_parts_take_longer_to_bring_together() -> None:
    few = replace(FEW, heads_q=1, heads_kv=1)  # 8 tiles of rows, which fill no wave

    def added(key_splits: int) -> float:
        return next(
            t.seconds for t in predict(H200, few, SPLIT, config(key_splits)).terms if t.term == "parts are added"
        )

    assert added(4) < added(8) < added(16)


def test_blocks_that_found_no_keys_help_to_bring_parts_together() -> None:
    """As timed: 14.0 us by two parts of each tile and 11.6 by eleven, of which two have keys (H200)."""
    problem = AttentionProblem(2, 1, 1, 150, 150, 144, dtype="bfloat16", device="cuda")
    few, many = (predict(H200, problem, SPLIT, config(parts, 112)).seconds for parts in (2, 11))
    assert many < few
