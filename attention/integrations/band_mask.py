"""A boolean mask that is a band and padded keys until somebody looks at it.

A model asks for a mask once and hands it to each of its layers. Written out it is quadratic in the sequence, and a
kernel that reads it can leave out nothing. A BandMask says the same in three numbers and a row of keys; whatever a
model does with it but hand it on (slice it, combine it with another mask) finds the dense mask. A compiled layer that
is handed one guards on the band, and breaks its graph where it looks at the mask.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._pytree import tree_map_only

from attention.kernels.torch.common.masks import seen_in_band


@dataclass(frozen=True)
class KeyBand:
    """Query i sees keys i - left to i + right, aligned as AttentionProblem aligns them; None is no edge."""

    left: int | None = None
    right: int | None = None
    bottom_right: bool = False


class BandMask(torch.Tensor):
    """Bool (B, 1, Sq, Skv), True may be seen: the keys of a band that are not padding.

    band: None once the mask was written out, since nobody knows what became of it then; and where its diagonal lies on
        the device (a static cache), for which `write` writes the mask out.
    keys: (B, Skv) bool, False is padding; None where there is none.
    ranges: the same for a kernel that reads ranges of keys; None where they are none, or the mask was written out.
    """

    band: KeyBand | None
    keys: torch.Tensor | None
    ranges: Any

    @staticmethod
    def __new__(
        cls,
        batch: int,
        rows: int,
        columns: int,
        device: torch.device,
        band: KeyBand | None,
        keys: torch.Tensor | None,
        ranges: Any = None,
        write: Callable[[], torch.Tensor] | None = None,
    ) -> "BandMask":
        make: Any = torch.Tensor._make_wrapper_subclass
        mask: BandMask = make(cls, (batch, 1, rows, columns), dtype=torch.bool, device=device)
        mask.band, mask.keys, mask.ranges, mask._write, mask._written = band, keys, ranges, write, None
        return mask

    _write: Callable[[], torch.Tensor] | None
    _written: torch.Tensor | None
    __torch_function__: Any = torch._C._disabled_torch_function_impl

    def dense(self) -> torch.Tensor:
        """The mask written out, (B, 1, Sq, Skv), the same tensor every time."""
        if self._written is None:
            batch, _, rows, columns = self.shape
            if self._write is not None:
                self._written = self._write()
            else:
                assert self.band is not None
                self._written = written(self.band, self.keys, batch, rows, columns, self.device)
            self.band = self.ranges = None
        return self._written

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Whatever is computed of it is computed of the dense mask."""
        args, kwargs = tree_map_only(cls, cls.dense, (args, kwargs or {}))
        return func(*args, **kwargs)


def written(
    band: KeyBand, keys: torch.Tensor | None, batch: int, rows: int, columns: int, device: torch.device
) -> torch.Tensor:
    """A band and padded keys as bool (B, 1, Sq, Skv)."""
    moved = columns - rows if band.bottom_right else 0
    left = None if band.left is None else moved - band.left
    right = None if band.right is None else moved + band.right
    mask = seen_in_band(left, right, rows, columns, device).expand(batch, 1, rows, columns)
    return mask if keys is None else mask & keys[:, None, None, :]
