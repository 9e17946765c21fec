"""The Volta kernel's machine code exchanges p by the instructions that its layouts ask for, and by no others."""

import pytest

from attention.problem import AttentionProblem
from notebooks.ladders import routes
from notebooks.ladders.exchange import exchange


@pytest.mark.parametrize("head_dim", (64, 128, 256))
def test_routes_differ_by_shuffles_for_each_register_that_lacks_and_by_loads_of_each_row(head_dim: int) -> None:
    problem = AttentionProblem.parse_shape(f"1,4,4,4096,4096,{head_dim}", dtype="float16", device="cuda", causal=False)
    found = list(routes.pairs(problem))
    assert found
    for pair in found:
        tile, panels = pair.shared.config, pair.shared.config["warp_rows"] // 16
        more = {head: pair.registers.counts[head] - pair.shared.counts[head] for head in ("SHFL", "STS", "LDS", "HMMA")}
        lacking = panels * exchange(True, tile["tile_keys"]).words_received
        words, halves = panels * tile["tile_keys"] // 4, panels * tile["tile_keys"] // 8
        assert more == {"SHFL": lacking, "STS": -words, "LDS": -halves, "HMMA": 0}


def test_products_stand_amid_the_softmax_only_where_no_wait_forbids_it() -> None:
    problem = AttentionProblem.parse_shape("1,4,4,4096,4096,128", dtype="float16", device="cuda", causal=False)
    for pair in routes.pairs(problem):
        assert pair.shared.amid == 0 < pair.registers.amid
        assert pair.registers.stalls < pair.shared.stalls
