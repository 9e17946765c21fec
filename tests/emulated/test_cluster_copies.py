"""Every way from one block's shared memory to another's, in every mode and size of cluster; a histogram of it all."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from microbench.compile import compile_source
from microbench.emulator import MODES, EmulatedDevice, Mode, TensorMap
from microbench.errors import DeviceError
from tests.emulated.planted import Planted
from tests.emulated.sources import source_of

SOURCE, NAME = source_of("clusters.cu")
WORDS, SMEM_BYTES = 256, 9 * 1024 + 8
# What a box of WORDS looks like, and the coordinates of a block's.
BOXES = {
    (1, 256): "0, number",
    (1, 4, 64): "0, 0, number",
    (1, 2, 4, 32): "0, 0, 0, number",
    (1, 2, 2, 2, 32): "0, 0, 0, 0, number",
}
Words = NDArray[np.uint32]
# What a GPU takes in a launch without clusters, and what it does not.
ALONE, ALONE_ILLEGAL = ("by_stores", "by_loads"), ("by_async_stores", "by_bulk_copy")


def load(device: EmulatedDevice, kernel: str, **defines: str) -> Any:
    return device.load(SOURCE, NAME, kernel=kernel, defines=tuple(defines.items()))


def words(blocks: int) -> Words:
    return np.random.default_rng(blocks).integers(0, 1 << 32, (blocks, WORDS), dtype=np.uint32)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("way", "size"), [(way, size) for way in (*ALONE, *ALONE_ILLEGAL) for size in (1, 2, 4) if size > 1 or way in ALONE]
)
def test_words_reach_the_next_block(way: str, size: int, mode: Mode) -> None:
    given = words(3 * size)
    found = np.zeros_like(given)
    load(EmulatedDevice(mode), way)((3 * size,), (64,), (given, found), SMEM_BYTES, cluster=(size,))
    np.testing.assert_array_equal(found.reshape(3, size, WORDS), np.roll(given.reshape(3, size, WORDS), 1, axis=1))


@pytest.mark.parametrize("way", ALONE_ILLEGAL)
def test_what_needs_a_launch_with_clusters_is_refused_without(way: str) -> None:
    given = words(3)
    with pytest.raises(DeviceError, match="in a launch without clusters: a GPU calls it an illegal instruction"):
        load(EmulatedDevice("eager"), way)((3,), (64,), (given, np.zeros_like(given)), SMEM_BYTES)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("size", [1, 2, 8])
def test_a_bulk_multicast_brings_every_blocks_words_to_all(size: int, mode: Mode) -> None:
    given = words(2 * size)
    found = np.zeros((2, size, size, WORDS), np.uint32)
    load(EmulatedDevice(mode), "by_bulk_multicast")((2 * size,), (64,), (given, found), SMEM_BYTES, cluster=(size,))
    assert (found == given.reshape(2, 1, size, WORDS)).all()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("box", BOXES)
def test_a_tensor_multicast_does_so_with_boxes(box: tuple[int, ...], mode: Mode) -> None:
    device = EmulatedDevice(mode)
    given = device.asarray(words(4).reshape(4, *box[1:]))
    found = np.zeros((2, 2, 2, WORDS), np.uint32)
    kernel = load(device, "by_tensor_multicast", COORDINATES=BOXES[box])
    kernel((4,), (64,), (TensorMap(given, box, "u32").emulated(), found), SMEM_BYTES, cluster=(2,))
    assert (found == given.reshape(2, 1, 2, WORDS)).all()


def test_one_dimension_is_multicast_as_well() -> None:
    device = EmulatedDevice()
    given = device.asarray(words(2).ravel())
    found = np.zeros((2, 2, WORDS), np.uint32)
    kernel = load(device, "by_tensor_multicast", COORDINATES="number * 256")
    kernel((2,), (64,), (TensorMap(given, (256,), "u32").emulated(), found), SMEM_BYTES, cluster=(2,))
    assert (found == given.reshape(1, 2, WORDS)).all()


# The histogram's planted bugs, as they are reported in every mode; a bin in the wrong block breaks no rule.
PLANTED = {
    "MISSING_CLEAR_BARRIER": "race: (atom|st).shared",
    "MISSING_COUNT_BARRIER": "race: (ld.shared|atom.shared::cluster) .* not ordered after the|ended: ",
    "BLOCK_BARRIERS": "race: |ended: ",
    "ADDITION_IN_THREE_STEPS": "race: (ld|st).shared::cluster .* not ordered after the (read|write)",
    "WRONG_OWNER": "",
}
BINS, EACH = 64, 500


@dataclass(frozen=True)
class Counted:
    values: Words
    expected: NDArray[Any]


class TestHistogram(Planted):
    name, file = "histogram", "clusters"
    archs, opcodes = ("sm90a", "sm100a"), frozenset({"ATOM.E.ADD.STRONG.GPU"})
    variants = random = tuple({"size": size} for size in (1, 2, 4, 8))
    seeds = 1
    bugs = PLANTED

    def case(self, seed: int = 0, **_: Any) -> Counted:
        values = np.random.default_rng(7 + seed).integers(0, BINS, (8, EACH), dtype=np.uint32)
        return Counted(values, np.bincount(values.ravel(), minlength=BINS))

    def run(self, device: EmulatedDevice, case: Counted, bug: int = 0, size: int = 4) -> NDArray[Any]:
        counts = np.zeros(BINS, np.uint32)
        self.load(device)((8,), (96,), (case.values, counts, EACH, BINS, bug), 4 * BINS, cluster=(size,))
        return counts.astype(np.int64)


# What ptxas makes of each way; SYNCS is every mbarrier's unit, PRMT the mapping of an address.
SIGNATURES = {
    "by_stores": {"UCGABAR_ARV", "UCGABAR_WAIT", "PRMT", "ST.E.128", "SYNCS.ARRIVE.TRANS64.RED.A1T0", "ELECT"},
    "by_loads": {"UCGABAR_ARV", "UCGABAR_WAIT", "LD.E.128", "LD.E"},
    "by_async_stores": {"STAS", "STAS.128"},
    "by_bulk_copy": {"UBLKCP.S.S", "SYNCS.ARRIVE.TRANS64.RED"},
    "by_bulk_multicast": {"UBLKCP.S.G.MULTICAST"},
    "by_tensor_multicast": {"UTMALDG.2D.MULTICAST"},
}


@pytest.mark.parametrize("arch", ["sm90a", "sm100a"])
@pytest.mark.parametrize("kernel", SIGNATURES)
def test_the_same_source_compiles_for_its_gpu(kernel: str, arch: str) -> None:
    cubin = compile_source(SOURCE, NAME, arch, (("COORDINATES", "0, number"),), kernel=kernel)
    opcodes = {instruction.opcode for instruction in cubin.instructions()}
    assert SIGNATURES[kernel] <= opcodes, sorted(opcodes)
