"""Whether a kernel left counters that are not 0."""

import torch

from attention.kernels.launch.counters import CHUNK_BYTES, counters
from attention.kernels.launch.driver import bindings, check


def counters_left(index: int) -> bool:
    """Of any stream or graph of this process, on the device with this index."""
    torch.cuda.synchronize(index)
    read = bytearray(CHUNK_BYTES)
    for chunk in counters(index).chunks:
        check(bindings().cuMemcpyDtoH(read, chunk, CHUNK_BYTES), "read tile counters")
        if any(read):
            return True
    return False
