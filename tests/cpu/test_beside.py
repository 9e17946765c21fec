"""A cubin of an earlier text takes the place of today's for as long as it is captured."""

from pathlib import Path

import torch

from attention.compare.beside import GpuOfOneCubin
from attention.kernels.launch.machine import gpu, machine_of, standing_in
from attention.variant import CudaBuild

BUILD = CudaBuild("kernel", (), 128, 0)


def test_launches_on_a_gpu_are_of_the_cubin_that_is_timed() -> None:
    here, earlier = torch.device("cuda", 0), object()
    with standing_in("cuda", GpuOfOneCubin(0, earlier)):
        assert machine_of(here).function(Path(), BUILD) is earlier
    assert machine_of(here) is gpu(0)
