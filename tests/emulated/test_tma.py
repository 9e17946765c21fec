"""Boxes of one to five dimensions, every swizzle, and boxes that leave the tensor on either side."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from microbench.emulator import MODES, EmulatedDevice, Mode, Swizzle, TensorMap
from microbench.emulator.tensor_map import Element
from microbench.errors import DeviceError, InputError
from microbench.verify.differential import layouts
from tests.emulated.wrappers import load

SMEM_BYTES = 32768 + 8

# Tensor, box, and where the box starts, outermost first. Boxes reach over either end of a dimension; along the
# innermost they start at a multiple of 16 bytes, and stores not before the tensor.
SHAPES = [
    ((96,), (32,), (48,)),
    ((96,), (32,), (80,)),
    ((40, 64), (16, 32), (8, 32)),
    ((40, 64), (16, 32), (-5, 4)),
    ((40, 64), (16, 32), (30, 52)),
    ((5, 24, 64), (2, 8, 32), (4, 20, 32)),
    ((3, 5, 24, 32), (2, 3, 4, 32), (-1, 3, 2, 0)),
    ((2, 3, 5, 8, 32), (2, 2, 2, 4, 32), (1, -1, 4, 6, 0)),
]


def box_of(tensor: NDArray[np.float32], box: tuple[int, ...], start: tuple[int, ...]) -> NDArray[np.float32]:
    """What a load brings: zeros outside."""
    padded = np.pad(tensor, [(size, size) for size in box])
    return padded[tuple(slice(size + at, 2 * size + at) for at, size in zip(start, box, strict=True))]


def through(
    device: EmulatedDevice,
    maps: Sequence[TensorMap],
    image: NDArray[Any],
    start: tuple[int, ...],
    stored: tuple[int, ...] | None = None,
) -> None:
    """A box by the first map to shared memory and `image`, from there by the second, and added by the third."""
    at = device.asarray(np.array([*start[::-1], *(stored or start)[::-1]], np.int32))
    kernel = load(device, "copy_box", RANK=len(start), ADDS=1)
    arguments = (*(each.emulated() for each in maps), at, image, image.nbytes // 4)
    kernel((1,), (32,), arguments, shared_mem=SMEM_BYTES)


def copy(
    device: EmulatedDevice, tensor: NDArray[np.float32], box: tuple[int, ...], start: tuple[int, ...], swizzle: Swizzle
) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
    """(image in shared memory, what a store wrote, what an addition to ones made)."""
    source, stored = device.asarray(tensor), device.full(tensor.shape, np.nan, np.float32)
    added = device.full(tensor.shape, 1, np.float32)
    maps = [TensorMap(array, box, "f32", swizzle) for array in (source, stored, added)]
    image = device.empty(maps[0].box_bytes // 4, np.float32)
    through(device, maps, image, start)
    return image, stored, added


@pytest.mark.parametrize(("shape", "box", "start"), SHAPES)
@pytest.mark.parametrize("mode", MODES)
def test_a_box_is_loaded_stored_and_added(
    mode: Mode, shape: tuple[int, ...], box: tuple[int, ...], start: tuple[int, ...]
) -> None:
    tensor = np.random.default_rng(len(shape)).integers(1, 1000, shape).astype(np.float32)
    expected = box_of(tensor, box, start)
    image, stored, added = copy(EmulatedDevice(mode), tensor, box, start, 0)
    np.testing.assert_array_equal(image.reshape(box), expected)
    inside = ~np.isnan(stored)
    np.testing.assert_array_equal(stored[inside], tensor[inside])
    assert inside.sum() == (expected > 0).sum()
    np.testing.assert_array_equal(added, np.where(inside, tensor + 1, 1))


@pytest.mark.parametrize("swizzle", [32, 64, 128])
def test_a_swizzle_permutes_chunks_of_16_bytes(swizzle: Swizzle) -> None:
    tensor = np.arange(1, 64 * 64 + 1, dtype=np.float32).reshape(64, 64)
    columns = swizzle // 4
    image, stored, _ = copy(EmulatedDevice(), tensor, (32, columns), (8, columns), swizzle)
    row, column = np.indices((32, columns))
    found = image[layouts.swizzled((row * columns + column) * 4, swizzle) // 4]
    np.testing.assert_array_equal(found, tensor[8:40, columns : 2 * columns])
    np.testing.assert_array_equal(stored[8:40, columns : 2 * columns], found)


@pytest.mark.parametrize("mode", MODES)
def test_bytes_go_there_and_back(mode: Mode) -> None:
    given = np.arange(256, dtype=np.uint32)
    found = np.zeros_like(given)
    load(EmulatedDevice(mode), "copy_bytes", BYTES=1)((1,), (32,), (given, found, given.size), shared_mem=SMEM_BYTES)
    np.testing.assert_array_equal(found, given)


@pytest.mark.parametrize("element", ["f16", "u32"])
def test_an_addition_is_that_of_its_elements(element: Element) -> None:
    kind = {"f16": np.float16, "u32": np.uint32}[element]
    device = EmulatedDevice()
    values = device.asarray(np.arange(1, 129).reshape(4, 32).astype(kind))
    total = device.full((4, 32), 7, kind)
    maps = [TensorMap(array, (4, 32), element) for array in (values, device.empty((4, 32), kind), total)]
    through(device, maps, device.empty((4, 32), kind), (0, 0))
    np.testing.assert_array_equal(total, values + kind(7))


def test_outside_may_read_as_nan() -> None:
    device = EmulatedDevice()
    tensor = device.full((4, 32), 1, np.float32)
    image = device.full(128, 0, np.float32)
    through(device, [TensorMap(tensor, (4, 32), "f32", nan_outside=True)] * 3, image, (2, 0))
    np.testing.assert_array_equal(
        np.isnan(image.reshape(4, 32)), np.repeat([False, False, True, True], 32).reshape(4, 32)
    )


BROKEN: list[tuple[tuple[int, ...], tuple[int, ...], Element, Swizzle, str]] = [
    ((8, 64), (8, 64), "f16", 0, "an element of f16 has 2 bytes"),
    ((8, 64), (8, 2), "f32", 0, "multiple of 16 bytes"),
    ((8, 64), (8, 64), "f32", 128, "fits into the swizzle's span"),
    ((8, 63), (8, 32), "f32", 0, "strides are multiples of 16 bytes"),
    ((8, 64), (64,), "f32", 0, "a box of as many"),
    ((512, 64), (512, 32), "f32", 0, "1 to 256 elements"),
]


@pytest.mark.parametrize(("shape", "box", "element", "swizzle", "rule"), BROKEN)
def test_a_map_that_the_driver_would_refuse_is_refused(
    shape: tuple[int, ...], box: tuple[int, ...], element: Element, swizzle: Swizzle, rule: str
) -> None:
    with pytest.raises(InputError, match=rule):
        TensorMap(EmulatedDevice().empty(shape, np.float32), box, element, swizzle)


def test_a_copy_of_another_rank_is_refused() -> None:
    with pytest.raises(DeviceError, match=r"tensor\.1d of a map of 2 dimensions"):
        device = EmulatedDevice()
        tensor = device.full((8, 32), 1, np.float32)
        through(device, [TensorMap(tensor, (8, 32), "f32")] * 3, device.empty(256, np.float32), (0,))


@pytest.mark.parametrize(("element", "kind", "start"), [("f32", np.float32, 2), ("f16", np.float16, -4)])
def test_a_box_that_starts_between_chunks_of_16_bytes_is_refused(element: Element, kind: type, start: int) -> None:
    device = EmulatedDevice()
    tensor = device.full((8, 32), 1, kind)
    with pytest.raises(DeviceError, match=rf"starts at element {start} of the innermost dimension"):
        through(device, [TensorMap(tensor, (8, 16), element)] * 3, device.empty((8, 16), kind), (0, start))


@pytest.mark.parametrize("mode", MODES)
def test_a_load_before_the_tensor_brings_zeros(mode: Mode) -> None:
    device = EmulatedDevice(mode)
    tensor = device.asarray(np.arange(1, 1 + 40 * 64, dtype=np.float32).reshape(40, 64))
    spare = device.full(tensor.shape, 0, np.float32)
    maps = [TensorMap(array, (16, 32), "f32") for array in (tensor, spare, spare)]
    image = device.empty(16 * 32, np.float32)
    through(device, maps, image, (-5, -4), stored=(0, 0))
    np.testing.assert_array_equal(image.reshape(16, 32), box_of(np.asarray(tensor), (16, 32), (-5, -4)))


def test_a_store_before_the_tensor_is_refused_as_an_h100_does() -> None:
    device = EmulatedDevice()
    tensor = device.full((8, 32), 1, np.float32)
    with pytest.raises(DeviceError, match="before the tensor"):
        through(device, [TensorMap(tensor, (8, 16), "f32")] * 3, device.empty(128, np.float32), (0, 0), stored=(0, -4))
