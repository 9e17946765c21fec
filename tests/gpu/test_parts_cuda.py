"""Blocks that share keys wait for parts, and for nobody who has not begun: calls side by side come to an end.

Two grids that each hold SMs which the other's blocks need would wait for ever, if a block waited for one to begin.
"""

import pytest
import torch

from attention.problem import AttentionProblem
from attention.variant import Config, by_path

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("hopper")]
STREAMS, CALLS = 4, 200
CASES = {
    "one round": (4, 1024, 8192, 128, (112, 2, 4)),
    "two rounds": (4, 1024, 8192, 128, (176, 2, 8)),
    "head dim 256": (2, 1024, 3328, 256, (80, 2, 8)),
    "few queries": (8, 77, 4096, 64, (112, 2, 16)),
}


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_calls_on_several_streams_end_and_leave_the_same_bits(case: str, causal: bool) -> None:
    heads, queries, keys, dim, tile = CASES[case]
    variant = by_path("sm90a/forward/split_keys")
    config = Config(tuple(zip((axis for axis, _ in variant.space), tile, strict=True)))
    problem = AttentionProblem(
        *(1, heads, heads, queries, keys, dim),
        dtype="bfloat16",
        device="cuda",
        causal=causal,
        alignment="bottom_right",
    )
    generator = torch.Generator("cuda").manual_seed(0)
    query, key, value = (
        torch.randn((1, heads, rows, dim), generator=generator, device="cuda").bfloat16()
        for rows in (queries, keys, keys)
    )
    run = variant.load()
    expected, _ = run(query, key, value, problem, config)
    seen = torch.ones(queries, keys, dtype=torch.bool, device="cuda").tril(keys - queries) if causal else None
    right = torch.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=seen)
    assert (expected - right).abs().max() < 0.02
    torch.cuda.synchronize()
    streams = [torch.cuda.Stream() for _ in range(STREAMS)]
    for _ in range(CALLS):
        found = []
        for stream in streams:
            with torch.cuda.stream(stream):
                found.append(run(query, key, value, problem, config)[0])
        torch.cuda.synchronize()
        assert all(torch.equal(each, expected) for each in found)
