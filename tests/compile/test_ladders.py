"""Every rung that is timed holds its registers, and every one that is left out for its spills would spill."""

import pytest

from attention.cuda.source import source_of
from attention.peers import cells, ladder
from attention.peers.ladders import Ladder
from attention.variant import by_path
from microbench.arch import by_name
from microbench.build import Cubin, compile_all
from microbench.profile import Profile

H100 = Profile.load("h100-sxm-80gb")


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("climbed", ladder.LADDERS, ids=lambda climbed: climbed.variant)
def test_a_rung_is_left_out_where_it_spills_and_only_there(climbed: Ladder) -> None:
    variant, arch = by_path(climbed.variant), by_name("sm90a")
    assert variant.build is not None
    wanted = {
        source_of(variant.folder, variant.build(cell.problem, rung.config), arch): (str(cell), rung.name, rung.lacks)
        for cell in cells.grid()
        for rung in climbed.rungs(H100, cell.problem)
    }
    for (cell, name, lacks), cubin in zip(wanted.values(), compile_all(list(wanted)), strict=True):
        assert isinstance(cubin, Cubin), f"{cell} {name}: {cubin}"
        assert bool(cubin.resources.spill_store_bytes) == bool(lacks), f"{cell} {name}"
