"""Whether a kernel left counters that are not 0."""

import ctypes

import torch

from attention.kernels.common.key_splits import MOST_TILES
from attention.kernels.launch.counters import CHUNK_BYTES, INT_BYTES, PAIR, counters
from attention.kernels.launch.driver import bindings, check
from attention.kernels.launch.machine import stand_ins

SETS = (PAIR, MOST_TILES)  # of so many counters


def counters_left(device: torch.device) -> bool:
    """Of any stream or graph of this process on a device, when all of them are done."""
    if device.type in stand_ins:
        return any(any(ctypes.string_at(stand_ins[device.type].counters(count), INT_BYTES * count)) for count in SETS)
    torch.cuda.synchronize(device)
    read = bytearray(CHUNK_BYTES)
    for chunk in (chunk for count in SETS for chunk in counters(device.index or 0, count).chunks):
        check(bindings().cuMemcpyDtoH(read, chunk, CHUNK_BYTES), "read tile counters")
        if any(read):
            return True
    return False
