"""Every rung of the Ampere kernel that is timed holds its registers, and every one left out for its spills spills."""

import pytest

from attention.cuda.source import source_of
from attention.peers import cells
from attention.peers.ladders import ampere
from attention.variant import by_path
from microbench.arch import by_name
from microbench.build import Cubin, compile_all
from microbench.profile import Profile


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_rung_is_left_out_where_it_spills_and_only_there() -> None:
    variant, arch, profile = by_path(ampere.VARIANT), by_name("sm90a"), Profile.load("h100-sxm-80gb")
    assert variant.build is not None
    wanted = {
        source_of(variant.folder, variant.build(cell.problem, rung.config), arch): (str(cell), rung.name, rung.lacks)
        for cell in cells.grid()
        for rung in ampere.rungs(profile, cell.problem)
    }
    for (cell, name, lacks), cubin in zip(wanted.values(), compile_all(list(wanted)), strict=True):
        assert isinstance(cubin, Cubin), f"{cell} {name}: {cubin}"
        assert bool(cubin.resources.spill_store_bytes) == bool(lacks), f"{cell} {name}"
