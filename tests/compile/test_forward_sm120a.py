"""The sm80 forward on sm120a: its tiles keep that architecture's own limits, and none spills."""

import pytest

from attention.estimate.blocks import resident
from attention.kernels.launch.source import sources_of
from attention.variant import Config, by_path
from attention.verify.build_matrix import HEAD_DIMS, UNLIKE, at, legal, long
from microbench.compile import require_all
from microbench.machine.arch import by_name

VARIANT = by_path("sm80/forward/software_pipelined")
AMPERE, HERE = by_name("sm80"), by_name("sm120a")
CAUSAL = long(causal=True)


def tiles(dims: tuple[int, int]) -> tuple[Config, ...]:
    """The legal ones, those of most shared memory last."""
    problem = at(CAUSAL, *dims)
    return tuple(sorted(legal(VARIANT, problem, HERE), key=lambda config: VARIANT.steps(problem, config)[0].smem_bytes))


@pytest.mark.parametrize("dims", [(256, 256), (96, 96), (64, 64)], ids=str)
def test_tiles_that_ampere_has_room_for_are_refused_here(dims: tuple[int, int]) -> None:
    problem = at(CAUSAL, *dims)
    more = {*legal(VARIANT, problem, AMPERE)} - {*tiles(dims)}
    assert tiles(dims) and more
    assert VARIANT.illegal is not None
    whys = [VARIANT.illegal(problem, config, HERE) or "" for config in more]
    assert all("of shared memory of 101376" in why or "leaves an SM fewer blocks" in why for why in whys)


@pytest.mark.parametrize("dims", [*((each, each) for each in HEAD_DIMS), *UNLIKE], ids=str)
def test_the_largest_tile_fits_an_sm_and_spills_nothing(dims: tuple[int, int]) -> None:
    problem, config = at(CAUSAL, *dims), tiles(dims)[-1]
    (build,) = VARIANT.steps(problem, config)
    (cubin,) = require_all(sources_of(VARIANT, problem, config, HERE))
    assert HERE.limits is not None and cubin.arch == HERE.name
    assert not cubin.resources.spills and not cubin.notes
    assert build.smem_bytes + cubin.resources.smem_bytes <= HERE.limits.smem_bytes_per_block
    blocks = resident(build, cubin.resources, HERE)
    assert blocks >= 1 and blocks * build.threads // 32 <= HERE.limits.max_warps
