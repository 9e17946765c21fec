"""A tensor in memory that is NaN all around it: what is read from there shows, and what is written there too."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from microbench.emulator import EmulatedDevice

Array = NDArray[Any]
Memory = Literal["bhsd", "bshd"]  # the order in which batch, heads, sequence and head dim lie

# Room around every tensor: rows before and behind each sequence, columns behind each row; all of it NaN. These columns
# are a whole sector: rows begin inside of one where they would without.
ROWS, COLUMNS = 3, 16
POISON = 0xFFFF  # a NaN of either 16-bit type, as EmulatedDevice.empty leaves it


@dataclass(frozen=True)
class Placed:
    """A tensor inside a larger buffer of device memory, with poison around every sequence and behind every row."""

    buffer: Array
    memory: Memory

    @property
    def array(self) -> Array:
        """(batch, heads, sequence, head dim), strided."""
        return self._inside(self.buffer)

    @property
    def untouched(self) -> bool:
        """Whether all that lies around the tensor is as it was."""
        around = self.buffer.copy()
        self._inside(around)[...] = POISON
        return bool((around == POISON).all())

    def _inside(self, buffer: Array) -> Array:
        tensor = buffer if self.memory == "bhsd" else buffer.swapaxes(1, 2)
        return tensor[:, :, ROWS:-ROWS, :-COLUMNS]


def placed(device: EmulatedDevice, memory: Memory, shape: tuple[int, ...]) -> Placed:
    """Room for a 16-bit tensor of this shape; all of it NaN."""
    batch, heads, rows, width = shape
    order = (heads, rows + 2 * ROWS) if memory == "bhsd" else (rows + 2 * ROWS, heads)
    return Placed(device.empty((batch, *order, width + COLUMNS), np.uint16), memory)
