"""The limits on file are what this toolchain says: the most keys of a tile that ptxas holds in registers."""

import pytest

from attention.kernels.common.family import asked_defines
from attention.kernels.common.spills import NAME, Spills, spills_of
from attention.variant import Variant, shipped
from attention.verify.build_matrix import CROWDED
from attention.verify.limits import toolchain, walks

OURS = [variant for variant in shipped() if (variant.folder / NAME).is_file()]
each_of_ours = pytest.mark.parametrize("variant", OURS, ids=lambda variant: variant.path)


def on_file(variant: Variant) -> Spills:
    known = spills_of(variant.folder)
    if toolchain(variant) != known.nvrtc:
        pytest.skip(f"the limits are NVRTC {known.nvrtc}'s, and another one counts registers otherwise")
    return known


# What these features ask for together has spilled in tiles that were legal at both of these head dims.
@pytest.mark.timeout(600)
@each_of_ours
def test_the_limits_of_crowded_tiles_are_what_ptxas_says(variant: Variant) -> None:
    known, crowded = on_file(variant), asked_defines(CROWDED)
    sampled = [walk for walk in walks(variant) if walk.company == crowded and walk.shape[0] in (64, 256)]
    assert len(sampled) >= 4
    for walk in sampled:
        assert walk.most() == known.most_keys[walk.shape][crowded], "run `attention check --limits`"


@pytest.mark.slow
@pytest.mark.timeout(1800)
@each_of_ours
def test_limits_throughout_the_file_are_what_ptxas_says(variant: Variant) -> None:
    """One walk in sixteen: all of them take an hour, and `attention check --limits` is what they are."""
    known = on_file(variant)
    for walk in list(walks(variant))[::16]:
        assert walk.most() == known.most_keys[walk.shape][walk.company], "run `attention check --limits`"


@each_of_ours
def test_every_company_that_is_walked_is_on_file(variant: Variant) -> None:
    limits = spills_of(variant.folder).most_keys
    assert {(each.shape, each.company) for each in walks(variant)} == {
        (shape, company) for shape, of_shape in limits.items() for company in of_shape
    }
