"""What the sm100a forward by pairs becomes: products of both blocks, room for twice as many tiles; what is legal."""

import re
from dataclasses import replace

import numpy as np
import pytest

from attention.kernels.launch.source import source_of
from attention.kernels.sm100a.forward.tensor_memory.arguments import COLUMNS, ROWS, SCORE_COLUMNS, Shape, shape_of
from attention.problem import AttentionProblem
from attention.variant import Config, by_path
from attention.verify.build_matrix import DIMS, LONG, at, legal
from microbench.compile import Cubin, compile_all
from microbench.machine.arch import by_name
from tests.compile.test_forward_sm100a import products as groups_of_products
from tests.compile.test_forward_sm100a import require_products_of_other_turns_between

VARIANT = by_path("sm100a/forward/tensor_memory")
UNCUT = ((96, 96), (80, 80))  # held at 96, whose values are no two halves of whole pieces
each_pair = pytest.mark.parametrize("dims", [dims for dims in DIMS if dims not in UNCUT], ids=str)


def pairs(problem: AttentionProblem, arch: str = "sm100a") -> list[Config]:
    return [config for config in legal(VARIANT, problem, by_name(arch)) if config["cta_group"] == 2]


def alone(shape: Shape) -> Shape:
    return replace(shape, cta_group=1)


def built(dims: tuple[int, int], arch: str) -> tuple[Cubin, Shape]:
    problem = at(LONG, *dims)
    config = pairs(problem, arch)[-1]
    (build,) = VARIANT.steps(problem, config)
    assert build.cluster == 2 and dict(build.defines)["CTA_GROUP"] == 2
    (cubin,) = compile_all([source_of(VARIANT.folder, build, by_name(arch))])
    assert isinstance(cubin, Cubin)
    return cubin, shape_of(problem, config)


@pytest.mark.parametrize("arch", VARIANT.archs)
@each_pair
def test_every_product_and_every_commit_is_of_both_blocks(dims: tuple[int, int], arch: str) -> None:
    cubin, shape = built(dims, arch)
    assert not cubin.resources.spill_store_bytes and not cubin.resources.spill_load_bytes
    assert "(C75" not in cubin.log
    texts = [each.text for each in cubin.instructions()]
    require_products_of_other_turns_between(groups_of_products(cubin), shape)
    products = [text for text in texts if "UTCHMMA" in text]
    turns = 2 + shape.query_tiles  # scores of two turns ahead, then of each query tile
    assert len(products) == turns * shape.head_dim // 16 + shape.query_tiles * shape.tile_keys // 16
    assert all("UTCHMMA.2CTA" in text for text in products)
    commits = [text for text in texts if "UTCBAR" in text]
    assert commits and all("UTCBAR.2CTA.MULTICAST" in text for text in commits)
    assert any("UCGABAR" in text for text in texts)


@each_pair
def test_a_pair_holds_about_twice_as_many_tiles_of_k_and_v(dims: tuple[int, int]) -> None:
    for config in pairs(at(LONG, *dims)):
        shape = shape_of(at(LONG, *dims), config)
        assert shape.tile_rows == 2 * alone(shape).tile_rows and shape.threads == alone(shape).threads
        assert shape.stages == 8 or shape.stages >= 2 * alone(shape).stages
        assert shape.smem_bytes <= 227 << 10
        # Tiles lie at multiples of eight spans, as a base offset of 0 wants, and both blocks' at the same addresses.
        stage = 2 * max(shape.held_keys * shape.head_dim, shape.tile_keys * shape.held_values)
        assert not stage % (16 * shape.key_panel) and not stage % (16 * shape.value_panel)
        assert shape.held_values % shape.value_panel == 0


@each_pair
def test_scores_and_outputs_of_a_pair_take_the_columns_they_take_of_one_block(dims: tuple[int, int]) -> None:
    for config in pairs(at(LONG, *dims)):
        shape = shape_of(at(LONG, *dims), config)
        assert 2 * SCORE_COLUMNS + shape.query_tiles * shape.value_dim <= COLUMNS
        # N of both products, and M = 256, are what an instruction of a pair can say.
        assert shape.tile_keys % 32 == 0 and shape.value_dim % 32 == 0 and max(shape.tile_keys, shape.value_dim) <= 256
        assert shape.tile_rows == 2 * shape.query_tiles * ROWS


def why_not(problem: AttentionProblem, *, dynamic: int = 0) -> str:
    assert VARIANT.illegal is not None
    values = {"tile_keys": 128, "polynomial": 0, "dynamic": dynamic, "cta_group": 2}
    return VARIANT.illegal(problem, Config(tuple(values.items())), by_name("sm100a")) or ""


def more_keys(problem: AttentionProblem) -> float:
    """The share by which tiles of 512 rows see more keys than those of 256, counted."""
    rows = np.arange(problem.seq_q)
    band = problem.band()
    first = np.maximum(rows + (-problem.seq_kv if band.left is None else band.left), 0)
    end = np.minimum(rows + (problem.seq_kv if band.right is None else band.right) + 1, problem.seq_kv)
    of_one, of_two = (
        sum(end[at : at + size].max() - first[at : at + size].min() for at in range(0, len(rows), size)) * size
        for size in (256, 512)
    )
    return float((of_two - of_one) / (end - first).sum())


def test_a_pair_is_refused_where_it_shares_little_or_cannot() -> None:
    assert why_not(LONG) == ""
    assert "no counter" in why_not(LONG, dynamic=1)
    assert "halves of 32, which 96 columns are not" in why_not(at(LONG, 96))
    for band in ({"causal": True}, {"window": (1024, 1024)}):
        problem = replace(LONG, **band)
        said = re.search(r"of this band up to ([0-9.]+)% more", why_not(problem))
        # A window's edges lie outside of the sequence for some rows, which have no more keys there.
        assert said and more_keys(problem) * 100 - 0.05 <= float(said[1]) <= 1.5 * more_keys(problem) * 100
    assert "where a head has 200 rows" in why_not(replace(LONG, seq_q=200))
    assert why_not(replace(LONG, seq_q=257)) == ""


def test_a_block_of_a_pair_reads_half_of_k_and_v_from_shared_memory() -> None:
    assert VARIANT.tile is not None
    problem = at(LONG, 128)
    pair = pairs(problem)[0]
    values = dict(pair.values) | {"cta_group": 1}
    one, two = (
        {demand.term: demand.amount for demand in VARIANT.tile(problem, config).demands}
        for config in (Config(tuple(values.items())), pair)
    )
    shape = shape_of(problem, pair)
    q_bytes = shape.block_rows * shape.head_dim * 2
    halved = {"operands from shared memory", "K and V from L2"}
    assert {term for term in one if one[term] != two[term]} == halved
    assert one["operands from shared memory"] - q_bytes == 2 * (two["operands from shared memory"] - q_bytes)
    assert one["K and V from L2"] == 2 * two["K and V from L2"]
