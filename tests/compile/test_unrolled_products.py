"""Every loop of the Ampere kernels that multiplies holds all products of a slice's scores: none is a loop of two."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from attention.kernels.launch.loaded import cubin_of
from attention.variant import Config, by_path
from attention.verify.build_matrix import LONG, at
from microbench.machine.arch import by_name
from microbench.sass.loops import loops

WHOLE = "sm80/forward/software_pipelined", {"warps": 4, "tile_keys": 32}
SPLIT = "sm80/forward/split_keys", {"warps": 4, "tile_keys": 32, "key_splits": 1, "key_stages": 0}


@pytest.mark.parametrize(
    ("kernel", "head_dim", "asked"),
    [
        (WHOLE, 208, {"softcap": 20.0}),
        (WHOLE, 240, {"alibi": True, "causal": True}),
        (WHOLE, 256, {"softcap": 20.0, "causal": True}),
        (SPLIT, 208, {}),
        (SPLIT, 256, {"causal": True}),
    ],
    ids=lambda value: value[0].split("/")[-1] if isinstance(value, tuple) else None,
)
@pytest.mark.parametrize("arch", ("sm80", "sm90a"))
def test_scores_of_a_slice_are_multiplied_without_a_loop(
    arch: str, kernel: tuple[str, dict[str, int]], head_dim: int, asked: dict[str, Any]
) -> None:
    path, values = kernel
    variant, problem = by_path(path), replace(at(LONG, head_dim), seq_q=400, seq_kv=400, **asked)
    (step,) = variant.steps(problem, Config(tuple(values.items())))
    bodies = [loop.body for loop in loops(cubin_of(variant.folder, step, by_name(arch)).instructions())]
    products = [Counter(each.head for each in body)["HMMA"] for body in bodies]
    of_scores = 2 * head_dim // 16  # of 16 keys, 8 at a time
    assert max(products) >= 2 * of_scores and all(count == 0 or count >= of_scores for count in products)
