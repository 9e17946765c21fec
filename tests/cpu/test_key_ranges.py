"""Padding and static caches as ranges: they let through what the dense mask does; kernels of ours are given them."""

from types import SimpleNamespace

import pytest
import torch

from attention.call import Call, Extras, Options
from attention.frontends import route
from attention.frontends.flash_attn.arguments import FlashExtras
from attention.frontends.flash_attn.judge import judge
from attention.integrations.band_mask import KeyBand
from attention.integrations.key_ranges import ranges_of
from attention.judge.shapes import FLASH, PACKED
from attention.op.served import compute

pytestmark = pytest.mark.filterwarnings("ignore::attention.FallbackWarning")
BANDS = (KeyBand(), KeyBand(right=0), KeyBand(2, 0), KeyBand(1, 1), KeyBand(3, None))
ROWS, COLUMNS = 4, 7
SHIFTS = ((COLUMNS, 0), (ROWS, COLUMNS - ROWS), (ROWS, 1), (1, 4), (ROWS, torch.tensor(2)))
PADDED = torch.tensor([[1] * 7, [0, 0, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 0, 0], [0, 1, 1, 1, 1, 1, 0], [0] * 7]).bool()


def visible(band, shift, keys, rows, columns):
    i, j = torch.arange(rows)[:, None] + shift, torch.arange(columns)
    seen = torch.ones(rows, columns, dtype=torch.bool)
    seen &= (j >= i - band.left) if band.left is not None else True
    seen &= (j <= i + band.right) if band.right is not None else True
    return seen & keys[:, None, :]


@pytest.mark.parametrize("band", BANDS, ids=str)
@pytest.mark.parametrize(
    ("rows", "shift"), [(COLUMNS, 0), (ROWS, COLUMNS - ROWS), (ROWS, 1), (1, 4), (ROWS, torch.tensor(2))]
)
@pytest.mark.parametrize("padded", [False, True])
def test_ranges_let_through_what_the_mask_does(band, rows, shift, padded):
    keys = PADDED if padded else None
    ranges, whole = ranges_of(band, shift, keys, 5, rows, COLUMNS, torch.device("cpu"))
    tight = isinstance(shift, int) and shift == COLUMNS - rows
    assert (ranges is None) == (not tight and band not in (BANDS[0], BANDS[1], BANDS[2]))
    if ranges is None:
        return
    assert whole is None if keys is None else bool(whole)
    generator = torch.Generator().manual_seed(1)
    q, k, v = (
        torch.randn(5, 2, size, 8, generator=generator, dtype=torch.float64) for size in (rows, COLUMNS, COLUMNS)
    )
    left, right = (-1 if edge is None else edge for edge in (ranges.band.left, ranges.band.right))
    options = Options(causal=right == 0, bottom_right=ranges.band.bottom_right, window_left=left, window_right=right)
    numbers = Extras(seqused_q=ranges.seqused_q, seqused_k=ranges.seqused_k, leftpad_k=ranges.leftpad_k)
    out, lse = compute(Call(q, k, v, numbers, options))
    seen = visible(band, shift, PADDED if padded else torch.ones_like(PADDED), rows, COLUMNS)
    expected, expected_lse = compute(Call(q, k, v, Extras(mask=seen[:, None]), Options()))
    used = torch.full((5,), rows) if ranges.seqused_q is None else ranges.seqused_q
    counted = torch.arange(rows) < used[:, None]
    torch.testing.assert_close(out.transpose(1, 2)[counted], expected.transpose(1, 2)[counted])
    torch.testing.assert_close(lse.transpose(1, 2)[counted], expected_lse.transpose(1, 2)[counted])
    assert bool(out.transpose(1, 2)[~counted].eq(0).all()) and bool(lse.transpose(1, 2)[~counted].eq(-torch.inf).all())


def test_keys_with_a_hole_are_no_range():
    keys = PADDED.clone()
    keys[0, 3] = False
    _, whole = ranges_of(BANDS[1], 0, keys, 5, COLUMNS, COLUMNS, torch.device("cpu"))
    assert not whole


@pytest.mark.usefixtures("hopper")
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_a_float_mask_on_a_gpu_is_a_kernel_of_ours_to_serve(dtype):
    q, k = tensor(2, 8, 500, 128), tensor(2, 8, 700, 128)
    given = tuple((each.shape, each.dtype, each.device) for each in (q, k, k))
    mask = (torch.Size((1, 1, 500, 700)), dtype, q.device)
    found = route._route(*given, mask, 0.0, False, False, None, False, "smscope", False, False)
    assert not found.to_torch and found.lacks is None and found.plan.owner == "smscope"
    assert found.plan.problem.mask_dtype == ("" if dtype == torch.bfloat16 else "float32")


def tensor(*shape, dtype=torch.bfloat16):
    return SimpleNamespace(shape=torch.Size(shape), dtype=dtype, device=torch.device("cuda", 0), requires_grad=False)


@pytest.fixture
def hopper(monkeypatch):
    """Plans for tensors on a GPU, by the profile of an H100."""
    from attention.choose.machine import MachineProfile
    from attention.op import plan
    from microbench.results.profile import Profile
    from tests.cpu.attention_profiles import forget_choices

    monkeypatch.setattr(plan, "machine_profile", lambda _device: MachineProfile(Profile.load("h100-sxm-80gb")))
    forget_choices()
    yield
    forget_choices()


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.usefixtures("hopper")
def test_a_kernel_of_ours_reads_the_ranges_of_a_call_on_a_gpu(packed):
    shapes = ((600, 8, 128), (900, 2, 128)) if packed else ((3, 200, 8, 128), (3, 300, 2, 128))
    q, k = (tensor(*shape) for shape in shapes)
    counts = tensor(3, dtype=torch.int32)
    starts = tensor(4, dtype=torch.int32) if packed else None
    extras = FlashExtras(Extras(cu_seqlens_q=starts, cu_seqlens_k=starts), None, counts, None)
    options = Options(200 if packed else 0, 300 if packed else 0, causal=True, bottom_right=True)
    plan = judge(PACKED if packed else FLASH, q, k, k, 0.0, options, extras, "")
    assert plan is not None and plan.owner == "smscope" and plan.problem.ranges and plan.problem.varlen is packed
    q.requires_grad = True
    assert judge(PACKED if packed else FLASH, q, k, k, 0.0, options, extras, "") is None
    q.requires_grad = False
    assert judge(PACKED if packed else FLASH, q, k, k, 0.0, options, extras, "torch") is None
