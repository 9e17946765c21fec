"""Tiles of 128 rows of the kernel for few rows: which rows they are for, and what they take of an SM."""

from dataclasses import replace

import pytest

from attention.problem import AttentionProblem
from attention.tile import WarpTile
from attention.variant import Config, by_path
from attention.verify.build_matrix import legal
from microbench.machine.arch import by_name

SPLIT = by_path("sm80/forward/split_keys")
# A speculative step: 72 rows of nine queries of eight heads.
STEP = AttentionProblem(16, 32, 4, 9, 6272, 128, dtype="bfloat16", device="cuda")


def config(warps: int, tile_keys: int = 64, key_splits: int = 2) -> Config:
    return Config((("warps", warps), ("tile_keys", tile_keys), ("key_splits", key_splits)))


def warps_of(problem: AttentionProblem, arch: str = "sm90a") -> set[int]:
    return {each["warps"] for each in legal(SPLIT, problem, by_name(arch))}


@pytest.mark.parametrize("arch", SPLIT.archs)
@pytest.mark.parametrize("head_dim", [64, 80, 96, 128, 192, 256])
def test_both_tiles_are_legal_where_rows_fill_more_than_four_warps(arch: str, head_dim: int) -> None:
    holds_q = head_dim < 256 or arch in ("sm80", "sm90a")  # 64 KiB of it, beside the ring
    assert warps_of(replace(STEP, head_dim=head_dim, head_dim_v=head_dim), arch) == ({4, 8} if holds_q else {4})


@pytest.mark.parametrize(("queries", "warps"), [(8, {4}), (9, {4, 8}), (16, {4, 8}), (17, {4})])
def test_heads_of_a_group_count_as_rows(queries: int, warps: set[int]) -> None:
    assert warps_of(replace(STEP, seq_q=queries)) == warps


@pytest.mark.parametrize(("queries", "warps"), [(9, {4}), (64, {4}), (65, {4, 8}), (128, {4, 8}), (129, {4})])
def test_rows_are_queries_where_heads_share_none(queries: int, warps: set[int]) -> None:
    assert warps_of(replace(STEP, seq_q=queries, alibi=True)) == warps


def test_a_refusal_says_how_many_rows_there_are() -> None:
    assert SPLIT.illegal is not None
    why = [SPLIT.illegal(replace(STEP, seq_q=queries), config(8), by_name("sm90a")) for queries in (8, 17)]
    assert why == [f"is for 65 to 128 rows of a sequence, not {rows}, in a tile of 8 warps" for rows in (64, 136)]


def test_a_block_has_an_sm_alone_and_only_warps_with_rows_compute() -> None:
    found = SPLIT.residents and SPLIT.residents(STEP, config(8))
    assert isinstance(found, WarpTile)
    assert (found.blocks, found.warps, found.threads, found.key_warps, found.rows) == (1, 5, 256, 1, 80)


def test_parts_are_of_rows_that_queries_use() -> None:
    numbers = 72 * (128 + 4)
    assert SPLIT.workspace(STEP, config(8)) == 4 * 16 * 4 * 2 * numbers
    assert SPLIT.workspace(STEP, config(4)) == 2 * 4 * 16 * 4 * 2 * 64 * (128 + 4)


def test_keys_are_of_twice_as_many_to_a_tile_where_shared_memory_holds_them() -> None:
    def keys(arch: str, warps: int) -> set[int]:
        return {each["tile_keys"] for each in legal(SPLIT, STEP, by_name(arch)) if each["warps"] == warps}

    assert keys("sm90a", 4) == {64} and keys("sm90a", 8) == keys("sm80", 8) == {128}
    assert keys("sm89", 8) == {64}
