"""Every rung that is timed holds its registers, and every one of the Ampere kernel left out for its spills spills."""

import pytest

from attention.compare import cells, ladder
from attention.compare.ladders import ampere, hopper
from attention.kernels.launch.source import sources_of
from attention.variant import by_path
from microbench.compile import Cubin, compile_all
from microbench.machine.arch import by_name
from microbench.results.profile import Profile


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_rung_is_left_out_where_it_spills_and_only_there() -> None:
    variant, arch, profile = by_path(ampere.VARIANT), by_name("sm90a"), Profile.load("h100-sxm-80gb")
    wanted = {
        source: (str(cell), rung.name, rung.lacks)
        for cell in cells.grid()
        for rung in ampere.rungs(profile, cell.problem)
        for source in sources_of(variant, cell.problem, rung.config, arch)
    }
    for (cell, name, lacks), cubin in zip(wanted.values(), compile_all(list(wanted)), strict=True):
        assert isinstance(cubin, Cubin), f"{cell} {name}: {cubin}"
        assert bool(cubin.resources.spill_store_bytes) == bool(lacks), f"{cell} {name}"


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_rungs_of_the_hopper_kernel_spill_two_registers_at_most() -> None:
    """The lowest causal rungs do, at head dims 64 and 128, outside of the loop that counts."""
    sources = {
        source: f"{problem} {config}"
        for variant, problem, config in ladder.builds(Profile.load("h100-sxm-80gb"), [hopper.LADDER])
        for source in sources_of(variant, problem, config, by_name("sm90a"))
    }
    for name, cubin in zip(sources.values(), compile_all(list(sources)), strict=True):
        assert isinstance(cubin, Cubin), f"{name}: {cubin}"
        assert cubin.resources.spill_store_bytes <= 8, name
