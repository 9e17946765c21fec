"""Attention of a model whose heads lie on two processes: what a rank computes, and what both together give."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from tests.elsewhere import ROOT

if not dist.is_available() or not dist.is_gloo_available():
    pytest.skip("this torch has no gloo", allow_module_level=True)

RANKS, HEADS, HEAD_DIM, TOKENS = 2, 4, 16, 33
WIDTH = HEADS * HEAD_DIM


class Attention(torch.nn.Module):
    """Projections of queries, keys and values, our kernel, and a projection of what it gives."""

    def __init__(self, flash: bool) -> None:
        super().__init__()
        self.flash = flash
        self.q, self.k, self.v, self.out = (torch.nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        import smscope

        q, k, v = (each(x).unflatten(-1, (-1, HEAD_DIM)) for each in (self.q, self.k, self.v))  # (B, S, H, D)
        if self.flash:
            found = smscope.flash_attn_func(q, k, v, causal=True)
        else:
            found = smscope.sdpa(*(each.transpose(1, 2) for each in (q, k, v)), is_causal=True).transpose(1, 2)
        result: torch.Tensor = self.out(found.flatten(-2))
        return result


def rank_of_two(rank: int, store: str) -> None:
    """Raises AssertionError where the parts give another result or other gradients than the whole."""
    dist.init_process_group("gloo", rank=rank, world_size=RANKS, init_method=f"file://{store}")
    for flash in (False, True):
        _compare(flash)
    dist.destroy_process_group()


def _compare(flash: bool) -> None:
    from torch.distributed.tensor import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    torch.manual_seed(0)
    whole, x = Attention(flash), torch.randn(2, TOKENS, WIDTH)
    torch.manual_seed(0)
    parts = Attention(flash)
    # The rank's own heads as DTensors: the operator is sharded, not given a plain local tensor.
    columns = ColwiseParallel(use_local_output=False)
    plan = {"q": columns, "k": columns, "v": columns, "out": RowwiseParallel()}
    parallelize_module(parts, init_device_mesh("cpu", (RANKS,)), plan)
    expected, found = whole(x), parts(x)
    torch.testing.assert_close(found, expected, rtol=0, atol=2e-5)
    expected.square().sum().backward()
    found.square().sum().backward()
    for name in ("q", "k", "v", "out"):
        gradient = getattr(parts, name).weight.grad.full_tensor()
        torch.testing.assert_close(gradient, getattr(whole, name).weight.grad, rtol=1e-4, atol=1e-4)


@pytest.mark.timeout(120)
def test_a_model_whose_heads_lie_on_two_processes_gives_what_one_gives(tmp_path: Path) -> None:
    # A rank that is done leaves at once: where an interpreter ends while a thread of gloo or of autograd asks for its
    # lock, that thread is ended inside of C++, and the process aborts with "terminate called" (seen once on CI).
    store = str(tmp_path / "store")
    program = f"import os; from {__name__} import rank_of_two; rank_of_two({{}}, {store!r}); os._exit(0)"
    ranks = [
        subprocess.Popen([sys.executable, "-c", program.format(rank)], stderr=subprocess.PIPE, text=True, cwd=ROOT)
        for rank in range(RANKS)
    ]
    said = [rank.communicate()[1] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0], "\n".join(said)
