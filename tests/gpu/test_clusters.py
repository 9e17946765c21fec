"""Clusters on the GPU: every way between blocks and the histogram that the emulator's tests run."""

from typing import Any

import numpy as np
import pytest

from microbench.compile import compile_source
from microbench.device.cuda import CudaDevice
from microbench.verify.differential.case import Map
from microbench.verify.differential.gpu import tensor_map
from tests.emulated import test_cluster_copies as copies

pytestmark = pytest.mark.gpu

SIZES = (1, 2, 4, 8)


@pytest.fixture(scope="module")
def device(device: CudaDevice) -> CudaDevice:
    """The first GPU, where it has clusters."""
    if device.machine.arch.compute_capability < (9, 0):
        pytest.skip(f"{device.machine.name} has no clusters; sm_90 and later have")
    return device


def load(device: CudaDevice, source: str, name: str, kernel: str, **defines: str) -> Any:
    return device.load(compile_source(source, name, device.machine.arch, tuple(defines.items()), kernel=kernel))


WAYS = (*copies.ALONE, "by_bulk_multicast", *copies.ALONE_ILLEGAL)


@pytest.mark.parametrize(
    ("way", "size"), [(way, size) for way in WAYS for size in SIZES if size > 1 or way not in copies.ALONE_ILLEGAL]
)
def test_words_reach_other_blocks(device: CudaDevice, way: str, size: int) -> None:
    given = copies.words(30 * size)
    multicast = way == "by_bulk_multicast"
    out = device.cupy.zeros((30, size, size if multicast else 1, copies.WORDS), np.uint32)
    kernel = load(device, copies.SOURCE, copies.NAME, way)
    for _ in range(20):
        out[...] = 0
        kernel((30 * size,), (64,), (device.cupy.asarray(given), out), copies.SMEM_BYTES, cluster=(size,))
        clusters = given.reshape(30, size, copies.WORDS)
        expected = clusters[:, None] if multicast else np.roll(clusters, 1, axis=1)[:, :, None]
        np.testing.assert_array_equal(out.get(), np.broadcast_to(expected, out.shape))


@pytest.mark.parametrize("box", copies.BOXES)
def test_a_tensor_multicast_brings_boxes(device: CudaDevice, box: tuple[int, ...]) -> None:
    given = copies.words(4).reshape(4, *box[1:])
    source, out = device.cupy.asarray(given), device.cupy.zeros((2, 2, 2, copies.WORDS), np.uint32)
    encoded = tensor_map(source, Map(0, box, "u32", 0))
    kernel = load(device, copies.SOURCE, copies.NAME, "by_tensor_multicast", COORDINATES=copies.BOXES[box])
    kernel((4,), (64,), (np.frombuffer(encoded, np.dtype((np.void, 128)))[0], out), copies.SMEM_BYTES, cluster=(2,))
    assert (out.get() == given.reshape(2, 1, 2, copies.WORDS)).all()


@pytest.mark.parametrize("size", SIZES)
def test_the_histogram_counts_every_value_once(device: CudaDevice, size: int) -> None:
    values = np.random.default_rng(7).integers(0, copies.BINS, (64, copies.EACH), dtype=np.uint32)
    counts = device.cupy.zeros(copies.BINS, np.uint32)
    kernel = load(device, copies.SOURCE, copies.NAME, "histogram")
    args = (device.cupy.asarray(values), counts, *map(np.int32, (copies.EACH, copies.BINS, 0)))
    kernel((64,), (96,), args, 4 * copies.BINS, cluster=(size,))
    np.testing.assert_array_equal(counts.get(), np.bincount(values.ravel(), minlength=copies.BINS))
