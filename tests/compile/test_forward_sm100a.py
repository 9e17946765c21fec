"""What the sm100a forward becomes: the order of products, columns of tensor memory, what descriptors can say."""

import re
from dataclasses import replace
from itertools import groupby

import pytest

from attention.kernels.launch.source import source_of
from attention.kernels.sm100a.forward.tensor_memory.arguments import COLUMNS, ROWS, SCORE_COLUMNS, Shape, shape_of
from attention.variant import Config, by_path
from attention.verify.build_matrix import DIMS, LONG, at, legal
from microbench.compile import Cubin, compile_all
from microbench.machine.arch import by_name

VARIANT = by_path("sm100a/forward/tensor_memory")
FROM_TENSOR_MEMORY = re.compile(r"UTCHMMA(\.2CTA)? tmem")  # A is P
PADDED = ((192, 144), (64, 48), (16, 240))  # value dims that are held at the next multiple of 32
each_pair = pytest.mark.parametrize("dims", (*DIMS, *PADDED), ids=str)


def shapes(dims: tuple[int, int]) -> list[Shape]:
    problem = at(LONG, *dims)
    return [shape_of(problem, config) for config in legal(VARIANT, problem, by_name("sm100a"))]


def built(dims: tuple[int, int], arch: str) -> tuple[Cubin, Config]:
    problem = at(LONG, *dims)
    config = legal(VARIANT, problem, by_name(arch))[-1]
    (build,) = VARIANT.steps(problem, config)
    (cubin,) = compile_all([source_of(VARIANT.folder, build, by_name(arch))])
    assert isinstance(cubin, Cubin)
    return cubin, config


def products(cubin: Cubin) -> list[tuple[str, int, int]]:
    """Groups of products in the order of the code: 'scores' or 'values', how many, and waits since the group before."""
    words = [
        "wait" if "TRYWAIT" in each.text else "values" if FROM_TENSOR_MEMORY.search(each.text) else "scores"
        for each in cubin.instructions()
        if "TRYWAIT" in each.text or "UTCHMMA" in each.text
    ]
    found, waits = [], 0
    for word, group in groupby(words):
        count = len(list(group))
        if word == "wait":
            waits = count
        else:
            found.append((word, count, waits))
            waits = 0
    return found


def require_products_of_other_turns_between(groups: list[tuple[str, int, int]], shape: Shape) -> None:
    turn = ["values", "scores"] * shape.query_tiles
    assert [kind for kind, _, _ in groups] == ["scores", "scores", *turn]
    assert {kind: count for kind, count, _ in groups} == {
        "scores": shape.head_dim // 16,
        "values": shape.tile_keys // 16,
    }
    # V and P are waited for by the first query tile, P alone by the second. Scores wait for K, the second query tile's
    # for nothing: no wait for a softmax stands before them.
    assert [waits for _, _, waits in groups[2:]] == [2, 1, 1, 0][: 2 * shape.query_tiles]


@pytest.mark.parametrize("arch", VARIANT.archs)
@each_pair
def test_products_of_the_other_turn_stand_between_scores_and_their_p(dims: tuple[int, int], arch: str) -> None:
    cubin, config = built(dims, arch)
    shape = shape_of(at(LONG, *dims), config)
    assert not cubin.resources.spill_store_bytes and not cubin.resources.spill_load_bytes
    require_products_of_other_turns_between(products(cubin), shape)


@each_pair
def test_tensor_memory_holds_two_tiles_of_scores_and_as_many_of_outputs_as_fit(dims: tuple[int, int]) -> None:
    for shape in shapes(dims):
        scores = [(turn * SCORE_COLUMNS, shape.tile_keys) for turn in range(2)]
        outputs = [(2 * SCORE_COLUMNS + tile * shape.value_dim, shape.value_dim) for tile in range(shape.query_tiles)]
        ends = [0, *(first + count for first, count in (*scores, *outputs))]
        assert all(first >= end for (first, _), end in zip((*scores, *outputs), ends, strict=False))
        assert ends[-1] <= COLUMNS and (shape.query_tiles == 2 or ends[-1] + shape.value_dim > COLUMNS)


@each_pair
def test_descriptors_can_say_every_address_and_offset(dims: tuple[int, int]) -> None:
    for shape in shapes(dims):
        assert shape.smem_bytes <= 1 << 18 and ROWS == 128  # 14 bits of 16 bytes
        stage = shape.tile_keys * max(shape.head_dim, shape.value_dim) * 2
        for width, panel in ((shape.head_dim, shape.key_panel), (shape.value_dim, shape.value_panel)):
            span = 2 * panel
            assert shape.tile_keys * span >> 4 < 1 << 14 and 8 * span >> 4 < 1 << 14
            assert width % 16 == 0 and width <= 256 and width % panel == 0
            # A base offset of 0 wants tiles at multiples of eight spans.
            assert not ROWS * shape.head_dim * 2 % (8 * span) and not stage % (8 * span)


@each_pair
def test_no_more_tiles_of_k_and_v_would_fit(dims: tuple[int, int]) -> None:
    for shape in shapes(dims):
        larger = replace(shape)
        object.__setattr__(larger, "stages", shape.stages + 1)
        limit = 227 << 10
        assert shape.smem_bytes <= limit and (shape.stages == 8 or larger.smem_bytes > limit)
