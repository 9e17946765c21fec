"""What the launches of both forward kernels on the emulator have alike: a ForwardCase as the fields of `Launch`."""

import hashlib
import math
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from attention.cuda.source import COMMON, PACKAGE, generated
from microbench import files
from microbench.emulator import EmulatedDevice
from tests.emulated.forward_case import Array, ForwardCase, Inputs

LOG2_E = math.log2(math.e)
OPEN = 1 << 20  # an edge of the band that hides nothing


def headers_of(folder: Path) -> tuple[Path, ...]:
    """Where a kernel's headers lie, those that are generated among them: written once, by their content."""
    written = generated(folder)
    digest = hashlib.sha256(repr(written).encode()).hexdigest()[:16]
    place = Path(tempfile.gettempdir()) / f"smscope-headers-{digest}"
    place.mkdir(exist_ok=True)
    for name, text in written:
        files.put(place / name, text)
    return COMMON, folder, PACKAGE, place


def describe(launch: Any, case: ForwardCase, tile_rows: int, section: int) -> None:
    """Write what follows from a case: not attention.cuda.family.fill, as no problem has a band of any two edges."""
    (queries, keys), count = case.longest, len(case.sequences)
    row_tiles, scale_log2 = -(-queries // tile_rows), (case.softcap or case.scale) * LOG2_E
    ahead = keys - queries if case.aligned == "bottom_right" and not case.lengths else 0
    launch.batch, launch.heads, launch.heads_per_kv = count, case.heads_q, case.heads_q // case.heads_kv
    launch.head_dim = case.head_dim
    launch.right = OPEN if case.right is None else case.right + ahead
    launch.left = -OPEN if case.left is None else case.left + ahead
    launch.moves = int(case.aligned == "bottom_right")
    launch.row_tiles, launch.tiles, launch.section = row_tiles, row_tiles * count * case.heads_q, section
    launch.scale_log2, launch.alibi_scale = scale_log2, LOG2_E / scale_log2
    launch.softcap = case.scale / case.softcap if case.softcap else 0.0


def bring_features(
    device: EmulatedDevice, case: ForwardCase, compiled: dict[str, int | str], inputs: Inputs, launch: Any
) -> list[Array]:
    """Fill in what the compiled features read, neutral where the case does not ask; the arrays must outlive the run."""
    kept = list[Array]()
    assert bool(compiled["SOFTCAP"]) == bool(case.softcap) and bool(compiled["VARLEN"]) == bool(case.lengths)

    def held(array: Array) -> int:
        kept.append(device.asarray(array))
        return int(kept[-1].ctypes.data)

    if compiled["VARLEN"]:
        starts = np.cumsum([(0, 0), *case.lengths], 0).astype(np.int32)
        launch.query_starts, launch.key_starts = held(starts[:, 0]), held(starts[:, 1])
    if compiled["ALIBI"]:
        launch.alibi = held(inputs.slopes if case.alibi else np.zeros((1, case.heads_q), np.float32))
        launch.alibi_batch, launch.alibi_head = case.heads_q if case.alibi == "batch" else 0, 1
    if compiled["SINKS"]:
        launch.sinks = held(inputs.sinks if case.sinks else np.full(case.heads_q, -np.inf, np.float32))
    if compiled["MASK"]:
        mask = inputs.mask if case.mask else np.ones((1, 1, 1, case.longest[1]), np.uint8)
        launch.mask = held(mask)
        strides = (0 if size == 1 else stride for size, stride in zip(mask.shape, mask.strides, strict=True))
        launch.mask_batch, launch.mask_head, launch.mask_row, launch.mask_key = strides
    return kept
