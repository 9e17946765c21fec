"""Which masks a launch copies, and how the copies lie. No GPU is here."""

import math
from typing import Any
from unittest.mock import MagicMock

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attention.call import NO_EXTRAS, Extras
from attention.kernels.launch.aligned import aligned, copied, copied_as
from attention.kernels.launch.machine import standing_in
from attention.kernels.launch.ready import Ready
from attention.kernels.sm90a.forward.warp_specialised.arguments import shape_of
from attention.kernels.sm90a.forward.warp_specialised.launch import _boxed
from attention.problem import AttentionProblem
from attention.variant import by_path

DTYPES = (torch.bool, torch.bfloat16, torch.float16, torch.float32)
HOPPER = "sm90a/forward/warp_specialised"


@st.composite
def masks(draw: st.DrawFn) -> torch.Tensor:
    """(B, H, S, S) anywhere in memory: some axes broadcast, some dense, some padded, keys adjacent or not."""
    sizes = [draw(st.integers(1, most)) for most in (3, 4, 5, 70)]
    dtype, strides, step = draw(st.sampled_from(DTYPES)), [0, 0, 0, 0], draw(st.sampled_from((1, 1, 1, 2, 8)))
    for axis in draw(st.sampled_from(((3, 2, 1, 0), (2, 3, 1, 0), (3, 1, 2, 0)))):
        if draw(st.integers(0, 3)):
            strides[axis] = step
            step *= sizes[axis]
            step += draw(st.sampled_from((0, 0, 1, -step % 4, -step % 16)))
    begin = draw(st.sampled_from((0, 0, 1, 2, 4, 16)))
    span = 1 + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
    values = torch.randn(begin + span, generator=torch.Generator().manual_seed(draw(st.integers(0, 9))))
    memory = values > 0 if dtype == torch.bool else values.to(dtype)
    return memory.as_strided(sizes, strides, begin)


def begins(mask: torch.Tensor) -> set[int]:
    """Where its rows begin, in bytes, by where torch says that they do."""
    batch, heads, rows, _ = mask.shape
    return {mask[b, h, q].data_ptr() for b in range(batch) for h in range(heads) for q in range(rows)}


def held(mask: torch.Tensor) -> int:
    """Elements of its own."""
    places = torch.arange(1)
    for size, stride in zip(mask.shape, mask.stride(), strict=True):
        places = (places[:, None] + torch.arange(size) * stride).flatten().unique()
    return len(places)


@given(masks(), st.booleans())
def test_a_launch_reads_the_same_numbers_at_whole_16_bytes(mask: torch.Tensor, ranges: bool) -> None:
    """Or beside ranges at whole 4, where hardly a number of the mask is read by two heads or sequences."""
    used = torch.ones(len(mask), dtype=torch.int32) if ranges else None
    brought = aligned(Extras(mask=mask, seqused_k=used)).mask
    assert brought.shape == mask.shape and brought.dtype == mask.dtype and torch.equal(brought, mask)
    assert brought.stride(-1) == 1
    places = begins(brought)
    if ranges and brought is mask and any(place % 16 for place in places):
        row_bytes = mask.shape[-1] * mask.element_size()
        assert not row_bytes % 4 and not any(place % 4 for place in places)
        assert 2 * held(mask) >= mask.numel()
    else:
        assert not any(place % 16 for place in places)


@pytest.mark.parametrize(
    ("keys", "dtype", "wide"),
    [
        (15452, torch.bool, torch.int32),
        (250, torch.bool, torch.int16),
        (257, torch.bool, None),
        (100, torch.float16, torch.int64),
        (257, torch.float16, None),
    ],
)
def test_rows_are_copied_as_the_widest_integers_that_they_are_made_of(keys, dtype, wide):
    assert copied_as((1, 1, 8, keys), (8 * keys, 8 * keys, keys, 1), dtype.itemsize, 0) == wide
    assert copied_as((1, 1, 8, keys), (8 * keys, 8 * keys, keys, 1), dtype.itemsize, 1) is None


@given(masks())
def test_a_copy_holds_once_what_is_read_for_all(mask: torch.Tensor) -> None:
    brought = aligned(Extras(mask=mask)).mask
    if brought is mask:
        return
    own = [1 if stride == 0 else size for size, stride in zip(mask.shape[:3], mask.stride(), strict=False)]
    row_bytes = -(-mask.shape[-1] * mask.element_size() // 16) * 16
    assert brought.untyped_storage().nbytes() == math.prod(own) * row_bytes


@given(masks())
def test_whoever_calls_keeps_his_mask(mask: torch.Tensor) -> None:
    before, sinks = mask.clone(), torch.ones(1)
    if mask.is_floating_point():
        mask.requires_grad_()
    extras = Extras(mask=mask, sinks=sinks)
    brought = aligned(extras)
    assert extras.mask is mask and brought.sinks is sinks and torch.equal(mask.detach(), before)
    assert brought.mask is mask or not brought.mask.requires_grad


# Sizes, strides, bytes of an element, the address, and what a copy holds.
BYTES = {
    "a padded batch": ((4, 8, 197, 197), (197, 0, 0, 1), 1, 0, (4, 1, 1, 197)),
    "a batch padded to 16": ((4, 8, 208, 208), (208, 0, 0, 1), 1, 0, None),
    "one row for all": ((1, 8, 333, 333), (0, 0, 0, 1), 1, 0, None),
    "one row for all that begins late": ((1, 8, 333, 333), (0, 0, 0, 1), 1, 1, (1, 1, 1, 333)),
    "one for all heads": ((1, 16, 6218, 6218), (0, 0, 6218, 1), 1, 0, (1, 1, 6218, 6218)),
    "one for all heads, at words": ((1, 16, 6220, 6220), (0, 0, 6220, 1), 1, 0, (1, 1, 6220, 6220)),
    "one for two heads, at words": ((1, 2, 6220, 6220), (0, 0, 6220, 1), 1, 0, (1, 1, 6220, 6220)),
    "its own for each head, at words": ((2, 3, 20, 20), (1200, 400, 20, 1), 1, 0, (2, 3, 20, 20)),
    "its own for each head, anywhere": ((2, 3, 20, 21), (1260, 420, 21, 1), 1, 0, (2, 3, 20, 21)),
    "one head, its stride unread": ((1, 1, 64, 64), (5, 7, 64, 1), 1, 0, None),
    "floats at 16 bytes": ((2, 3, 20, 20), (1200, 400, 20, 1), 4, 0, None),
    "halves at words": ((2, 9, 20, 22), (440, 0, 22, 1), 2, 0, (2, 1, 20, 22)),
    "one key for all": ((2, 9, 20, 32), (20, 0, 1, 0), 2, 0, (2, 1, 20, 32)),
    "keys are rows": ((2, 9, 32, 32), (1024, 0, 1, 32), 2, 0, (2, 1, 32, 32)),
    "no keys": ((2, 9, 32, 0), (0, 0, 1, 3), 2, 0, None),
}


@pytest.mark.parametrize("case", BYTES.values(), ids=[*BYTES])
def test_who_gains_by_a_copy_is_copied(case: Any) -> None:
    *lies, expected = case
    assert copied(*lies) == expected


@pytest.mark.parametrize("name", BYTES)
def test_beside_ranges_a_mask_at_words_stays_where_it_is_read_once(name: str) -> None:
    *lies, expected = BYTES[name]
    stays = name in ("one for two heads, at words", "its own for each head, at words")
    assert copied(*lies, ranges=True) == (None if stays else expected)


def test_without_a_mask_nothing_is_made() -> None:
    sinks = Extras(sinks=torch.ones(1))
    assert aligned(NO_EXTRAS) is NO_EXTRAS and aligned(sinks) is sinks


@pytest.mark.parametrize("path", [HOPPER, "sm80/forward/software_pipelined"])
def test_a_launch_on_hopper_is_given_the_copy_and_others_the_callers(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[torch.Tensor] = []
    monkeypatch.setattr(Ready, "__call__", lambda _, q, k, v, where, extras: (given.append(extras.mask), (q, q))[1])
    variant, tensor = by_path(path), torch.zeros(1, 3, 33, 64, dtype=torch.bfloat16)
    problem = AttentionProblem(1, 3, 3, 33, 33, 64, dtype="bfloat16", device="cuda", mask="bool")
    with standing_in("cpu", MagicMock(sm_count=132)):
        for seen in (True, False):  # of the same shape: what is copied is this call's
            mask = torch.full((1, 1, 33, 33), seen).expand(1, 3, 33, 33)
            variant.load()(tensor, tensor, tensor, problem, variant.configs()[0], Extras(mask=mask))
            assert (given[-1] is mask) == (path != HOPPER) and torch.equal(given[-1], mask)
    assert [each.stride(2) for each in given] == [48 if path == HOPPER else 33] * 2


def test_explain_says_that_masks_are_copied() -> None:
    plain = AttentionProblem(1, 3, 3, 33, 33, 64, dtype="bfloat16", device="cuda")
    masked = AttentionProblem(1, 3, 3, 33, 33, 64, dtype="bfloat16", device="cuda", mask="bool")
    notes = by_path(HOPPER).notes
    (said,) = set(notes(masked)) - set(notes(plain))
    assert said.startswith("a mask is copied first")


@pytest.mark.parametrize("leading", [(), (1,), (3,), (1, 3), (2, 1), (2, 3)])
def test_a_mask_lies_for_tma_as_a_known_call_brings_it(leading: tuple[int, ...]) -> None:
    """A judged call brings every axis, broadcast; a known one what its caller has."""
    problem = AttentionProblem(2, 3, 3, 32, 32, 64, dtype="bfloat16", device="cuda", mask="bool")
    shape, mask, machine = shape_of(problem, by_path(HOPPER).configs()[0]), torch.ones(*leading, 32, 32), MagicMock()
    _boxed(machine, shape, mask)
    (own, *_), _ = machine.tensor_map.call_args
    _boxed(machine, shape, mask.expand(2, 3, 32, 32))
    (judged, *_), _ = machine.tensor_map.call_args
    assert own.shape == judged.shape and own.data_ptr() == mask.data_ptr()
