"""What `smscope test-gpu` runs for an installed package, on the GPU that it is meant for."""

import pytest

from attention.choose.machine import machine_profile
from attention.variant import shipped
from attention.verify import selfcheck

pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("ignore::attention.errors.FallbackWarning")]


def test_every_kernel_of_ours_that_serves_this_gpu_is_right() -> None:
    rows = selfcheck.check("cuda")
    assert [row for row in rows if not row.ok] == []
    arch = machine_profile("cuda").profile.arch
    ours = {variant.path for variant in shipped() if variant.owner == "smscope" and arch in variant.archs}
    assert {row.kernel.partition(" ")[0] for row in rows} == {selfcheck.PUBLIC, *ours}
