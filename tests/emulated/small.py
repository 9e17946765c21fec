"""A few lines of CUDA as a kernel of `int* out`, on the emulator."""

from typing import Any

import numpy as np

from microbench.emulator import EmulatedDevice


def run_small(
    headers: str,
    body: str,
    *args: Any,
    device: EmulatedDevice | None = None,
    grid: tuple[int, ...] = (1,),
    threads: int = 64,
    smem: int = 1024,
    cluster: tuple[int, ...] = (),
    words: int = 64,
) -> None:
    """`headers` are names under ptx/; `body` knows t, the thread, and `given`, a second argument. `out` has `words`."""
    included = "".join(f'#include "ptx/{name}.cuh"\n' for name in headers.split())
    parameters = "int* out" if len(args) < 2 else "int* out, int given"
    head = f'{included}extern "C" __global__ void small({parameters}) {{\n  const int t = threadIdx.x;\n'
    kernel = (device or EmulatedDevice()).load(f"{head}{body}\n}}\n", "small.cu", kernel="small")
    more: dict[str, Any] = {"cluster": cluster} if cluster else {}
    kernel(grid, (threads,), args or (np.zeros(words, np.int32),), smem, **more)
