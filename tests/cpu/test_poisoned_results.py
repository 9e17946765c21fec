"""Results that verification poisons: wherever a launch takes their memory, and nowhere afterwards."""

import math

import torch

from attention import torch_private
from attention.kernels.common import layout
from attention.kernels.launch import machine, ready
from attention.verify.inputs import poisoned_results


def test_a_launch_takes_no_memory_that_is_not_poisoned() -> None:
    plain = torch_private.empty_on_current_gpu
    with poisoned_results() as results:
        assert machine.Gpu.empty == results.on_gpu
        assert vars(ready)["empty_lse"] == results.lse
    assert machine.Gpu.empty is plain
    assert vars(ready)["empty_lse"] is layout.empty_lse


def test_poisoned_results_are_nan_and_tell_what_strays() -> None:
    query = torch.zeros(1, 2, 3, 8)
    with poisoned_results() as results:
        out = layout.empty_out(query, 8)
        assert results.hold(out) and all(map(math.isnan, out.flatten().tolist()))
        assert not results.strayed()
        out.as_strided((1,), (1,), out.storage_offset() - 1).zero_()
        assert results.strayed()
