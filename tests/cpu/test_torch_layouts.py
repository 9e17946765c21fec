"""Torch's kernels for a GPU are given rows that they can read, wherever a caller's tensor lies."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attention.kernels.torch.common.readable import READ_BYTES, all_readable, padded, readable, readable_mask

DTYPES = (torch.float16, torch.bfloat16, torch.float32)


@st.composite
def tensors(draw):
    """(B, H, S, D) in any order of dimensions, with gaps between rows and heads, from any element of an allocation."""
    size = [draw(st.integers(1, 3)) for _ in range(3)] + [draw(st.sampled_from((1, 2, 3, 4, 8, 16, 20, 33)))]
    strides, reach = [0] * 4, 1
    for axis in draw(st.permutations(range(4))):
        strides[axis] = reach
        reach = reach * size[axis] + draw(st.sampled_from((0, 0, 1, 8)))
    begin = draw(st.sampled_from((0, 0, 1, 8)))
    room = torch.arange(begin + reach + sum(size), dtype=torch.float32).to(draw(st.sampled_from(DTYPES)))
    return room.as_strided(size, strides, begin)


@settings(deadline=None)
@given(tensors())
def test_rows_of_what_is_padded_begin_at_whole_reads_and_hold_the_same(tensor):
    found, width = padded(tensor), tensor.shape[-1]
    read = READ_BYTES // tensor.itemsize
    assert found.data_ptr() % READ_BYTES == 0
    assert found.stride(-1) == 1
    assert all(stride % read == 0 for stride in found.stride()[:-1])
    assert found.shape[-1] == -(-width // read) * read
    torch.testing.assert_close(found[..., :width], tensor, rtol=0, atol=0)
    assert not found[..., width:].any()


@settings(deadline=None)
@given(tensors())
def test_a_tensor_is_copied_once_at_most(tensor):
    found = readable(tensor)
    torch.testing.assert_close(found, tensor, rtol=0, atol=0)
    assert readable(found) is found
    assert all(each is found for each in all_readable(found, found, found))


@pytest.mark.parametrize("width", [33, 64])
def test_what_models_pass_stays_where_it_lies(width):
    fused = torch.zeros(2, 5, 3, 4, width, dtype=torch.bfloat16)  # (B, S, 3, H, D)
    of_one = fused[:, :, 0].transpose(1, 2)
    cache = torch.zeros(2, 4, 512, width, dtype=torch.bfloat16)[:, :, :300]
    shared = torch.zeros(2, 1, 300, width, dtype=torch.bfloat16).expand(2, 4, 300, width)
    assert all(
        one is other for one, other in zip(all_readable(of_one, cache, shared), (of_one, cache, shared), strict=True)
    )


def test_one_tensor_that_cannot_be_read_is_copied_alone():
    fine, late = torch.zeros(2, 4, 8, 64), torch.zeros(2 * 4 * 8 * 64 + 1)[1:].view(2, 4, 8, 64)
    query, key, value = all_readable(fine, late, fine)
    assert query is fine
    assert value is fine
    assert key.data_ptr() % READ_BYTES == 0


@pytest.mark.parametrize("begin", [0, 3])
@pytest.mark.parametrize("rows", [1, 7])
def test_a_mask_that_begins_late_is_copied_once_and_stretched_as_it_was(begin, rows):
    room = torch.randn(2, 1, rows, 77 + begin, dtype=torch.bfloat16)
    mask = room[..., begin:].expand(2, 4, 7, 77)
    found = readable_mask(mask)
    torch.testing.assert_close(found, mask, rtol=0, atol=0)
    assert found.data_ptr() % READ_BYTES == 0
    assert (found is mask) == (begin == 0)
    assert [stride == 0 for stride in found.stride()] == [stride == 0 for stride in mask.stride()]
