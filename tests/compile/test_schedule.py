"""The Ampere kernel's main loop, read from SASS, holds the products and exponentials of one tile, and no rare path."""

from dataclasses import replace

import pytest

from attention.compare.ladders import ampere
from attention.kernels.launch.loaded import cubin_of
from attention.variant import by_path
from attention.verify.build_matrix import LONG, at
from microbench.machine.arch import by_name
from microbench.results.profile import Profile
from notebooks.ladders.schedule import main_loop, schedule


@pytest.mark.parametrize("head_dim", (64, 128, 256))
@pytest.mark.parametrize("causal", (False, True), ids=("full", "causal"))
def test_a_round_holds_a_tile_of_products_and_exponentials(head_dim: int, causal: bool) -> None:
    problem, variant = replace(at(LONG, head_dim), causal=causal), by_path(ampere.VARIANT)
    rungs = ampere.rungs(Profile.load("h100-sxm-80gb"), problem)
    config = next(rung.config for rung in reversed(rungs) if not rung.aside)
    (step,) = variant.steps(problem, config)
    found = schedule(cubin_of(variant.folder, step, by_name("sm90a")).instructions())
    rows, keys = config["warp_rows"], config["tile_keys"]
    products = rows // 16 * keys // 8 * head_dim // 16
    assert found.count("scores") == found.count("values") == products
    assert found.count("exponentials") == rows * keys // 32 and found.count("V") == keys // 16 * head_dim // 16
    assert found.count() == len(found.issues) < found.cycles
    assert [issue.cycle for issue in found.issues] == sorted(issue.cycle for issue in found.issues)


def test_a_kernel_without_products_has_no_main_loop() -> None:
    assert main_loop(()) == () and schedule(()) is None
