"""Sinks, bands and masks by torch's CPU kernel, whose function knows none but the last: against float64."""

from itertools import product

import pytest
import torch

from attention.call import Extras
from attention.kernels.torch.composed import slow
from attention.problem import AttentionProblem
from attention.variant import Config, by_path
from microbench.machine.arch import by_name

VARIANT = by_path("host/forward/torch_sdpa")
HOST = by_name("host")
BANDS = {
    "open": {},
    "causal": {"causal": True},
    "bottom-right": {"causal": True, "alignment": "bottom_right"},
    "window": {"window": (5, 3)},
    "left window": {"causal": True, "window": (4, -1), "alignment": "bottom_right"},
}
TOLERANCE = {torch.float32: 5e-6, torch.bfloat16: 2e-2, torch.float16: 3e-3}


@pytest.mark.parametrize(
    ("band", "mask", "sinks"),
    [each for each in product(BANDS, ("none", "bool", "float"), (False, True)) if each != ("open", "none", False)],
)
@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
def test_features_are_those_of_the_slow_path_in_float64(band, mask, sinks, dtype):
    generator = torch.Generator().manual_seed(1)
    q, k, v = (torch.randn(2, heads, rows, 16, generator=generator) for heads, rows in ((4, 21), (2, 33), (2, 33)))
    seen = torch.rand(2, 1, 21, 33, generator=generator) < 0.7
    seen[1, :, 3] = False  # a query that sees nothing
    masks = {"none": None, "bool": seen, "float": torch.randn(2, 1, 21, 33, generator=generator)}
    sink = torch.randn(4, generator=generator) if sinks else None
    problem = AttentionProblem(
        *(2, 4, 2, 21, 33, 16), dtype=str(dtype).removeprefix("torch."), mask=mask, sinks=sinks, **BANDS[band]
    )
    given = masks[mask]
    expanded = None if given is None else given.expand(2, 4, 21, 33)
    if VARIANT.refusal(problem, HOST):
        assert mask == "none" and not sinks and band not in ("open", "causal")
        return
    q, k, v = (each.to(dtype) for each in (q, k, v))
    out, lse = VARIANT.load()(q, k, v, problem, Config(), Extras(mask=expanded, sinks=sink))
    doubles = (each.double() for each in (q, k, v))
    exact = Extras(
        mask=expanded.double() if mask == "float" else expanded, sinks=None if sink is None else sink.double()
    )
    expected, expected_lse = slow.forward(*doubles, problem, Config(), exact)
    torch.testing.assert_close(out.double(), expected, rtol=0, atol=TOLERANCE[dtype])
    torch.testing.assert_close(lse.double(), expected_lse.double(), rtol=0, atol=4 * TOLERANCE[dtype])


def test_a_band_alone_is_left_to_kernels_that_skip_what_it_hides():
    assert "computes all keys" in VARIANT.refusal(AttentionProblem(1, 2, 2, 64, 64, 16, window=(8, 8)), HOST)
    long = AttentionProblem(1, 2, 2, 16384, 16384, 16, window=(8, 8), sinks=True)
    assert "writes a band into a mask" in VARIANT.refusal(long, HOST)


def test_what_a_mask_hides_is_predicted_as_it_is_computed():
    band = {"window": (63, -1), "causal": True, "sinks": True}
    windowed, full = (AttentionProblem(1, 2, 2, 1024, 1024, 64, **each) for each in (band, {"sinks": True}))

    def demanded(problem, term):
        return next(each for each in VARIANT.tile(problem, Config()).demands if each.term == term).amount

    hidden = 1024 * 1024 * 2 / windowed.scores
    assert demanded(windowed, "exponentials") == pytest.approx(demanded(full, "exponentials") * hidden)


def test_a_band_is_written_on_the_device_of_the_tensors():
    problem = AttentionProblem(1, 2, 2, 8, 8, 16, window=(2, 2), sinks=True)
    q, k, v = (torch.randn(1, 2, 8, 16) for _ in range(3))
    extras = Extras(sinks=torch.zeros(2))
    expected = VARIANT.load()(q, k, v, problem, Config(), extras)
    with torch.device("meta"):  # where tensors are made that name no device
        found = VARIANT.load()(q, k, v, problem, Config(), extras)
    torch.testing.assert_close(found, expected)
