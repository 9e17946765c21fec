"""How the kernels of blind.cu and blind_meaner.cu are launched, and what NumPy says of the same inputs."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from microbench.emulator import EmulatedDevice, TensorMap
from microbench.verify.differential.attention_case import Floats, bf16_bits

# What a launch gives, and what it should: integers, small enough for both to be exact.
Outcome = tuple[Floats, Floats]
Launch = Callable[[tuple[int, ...], tuple[int, ...], tuple[object, ...], int], None]
Run = Callable[[EmulatedDevice, Launch], Outcome]
SOURCES = {name: (Path(__file__).parent / name).read_text() for name in ("blind.cu", "blind_meaner.cu")}


@dataclass(frozen=True)
class Kernel:
    """A kernel of `file`, written for `arch`, and its bugs; `launch(device, planted)` runs it on the emulator."""

    file: str
    arch: str
    bugs: tuple[str, ...]
    launch: Callable[[EmulatedDevice, int], Outcome]


KERNELS: dict[str, Kernel] = {}


def kernel(file: str, arch: str, *bugs: str) -> Callable[[Run], Run]:
    """Registers the launch of the kernel that has the function's name."""

    def register(function: Run) -> Run:
        name = function.__name__

        def launch(device: EmulatedDevice, planted: int) -> Outcome:
            loaded = device.load(SOURCES[file], file, kernel=name)
            return function(device, lambda grid, block, args, smem: loaded(grid, block, (*args, planted), smem))

        KERNELS[name] = Kernel(file, arch, bugs, launch)
        return function

    return register


def integers(*shape: int) -> Floats:
    """Never 0: what is left out or counted twice shows."""
    rng = np.random.default_rng(shape)
    values: Floats = (rng.integers(1, 5, shape) * rng.choice((-1, 1), shape)).astype(np.float32)
    return values


def swizzled(rows: NDArray[np.uint16]) -> NDArray[np.uint16]:
    """Tiles of (..., rows, 64) as the 128-byte swizzle leaves them: chunk c of row r at chunk c ^ r % 8."""
    chunks = rows.reshape(*rows.shape[:-1], 8, 8)
    row = np.arange(rows.shape[-2])[:, None]
    return chunks[..., row, np.arange(8) ^ row % 8, :].reshape(rows.shape)


@kernel("blind.cu", "sm70", "SUMS_OVERWRITTEN", "SHUFFLE_TOO_SHORT", "SHUFFLE_IN_A_BRANCH")
def row_sums(device: EmulatedDevice, launch: Launch) -> Outcome:
    x, sums = integers(5, 100), device.full(5, np.nan, np.float32)
    launch((1,), (128,), (device.asarray(x), sums, 5, 100), 16)
    return sums, x.sum(1)


@kernel(
    "blind.cu",
    "sm80",
    "WAIT_OFF_BY_ONE",
    "NO_GROUP_AT_THE_TAIL",
    "WAIT_AFTER_BARRIER",
    "FILLED_TOO_EARLY",
    "STORE_PAST_THE_END",
)
def product(device: EmulatedDevice, launch: Launch) -> Outcome:
    a, b, c = integers(32, 96), integers(8, 96), device.full((32, 8), np.nan, np.float32)
    halves = [device.asarray(each.astype(np.float16).view(np.uint16)) for each in (a, b)]
    launch((1,), (64,), (*halves, c, 96), 3 * 1280 + 1024)
    return c, a @ b.T


@kernel("blind.cu", "sm90a", "PARITY_NEVER_FLIPS", "EXPECTS_ELEMENTS")
def stream(device: EmulatedDevice, launch: Launch) -> Outcome:
    x, out = integers(6, 64), device.full(64, np.nan, np.float32)
    launch((1,), (96,), (device.asarray(x), out, 6), 2 * 256 + 4 * 8)
    return out, x.sum(0)


@kernel("blind.cu", "sm90a", "NO_PROXY_FENCE", "READ_BEFORE_WAIT")
def tile(device: EmulatedDevice, launch: Launch) -> Outcome:
    a, b, c = integers(64, 64), integers(16, 64), device.full((64, 16), np.nan, np.float32)
    words = [device.asarray(bf16_bits(each).view(np.uint32)) for each in (a, b)]
    launch((1,), (128,), (*words, c), 80 * 128)
    return c, a @ b.T


@kernel("blind_meaner.cu", "sm70", "BLOCKS_RACE", "BLOCK_ORDER")
def split(device: EmulatedDevice, launch: Launch) -> Outcome:
    x, out = integers(4, 64), device.full(128, 0, np.float32)
    partial, finished = device.full((4, 64), np.nan, np.float32), device.full(1, 0, np.uint32)
    launch((4,), (64,), (device.asarray(x), out, partial, finished), 4)
    return out, np.concatenate((x.sum(0), 2 * x.sum(0)))


@kernel("blind_meaner.cu", "sm70", "IN_PLACE")
def smooth(device: EmulatedDevice, launch: Launch) -> Outcome:
    x = integers(64)
    out = device.asarray(x.copy())
    launch((1,), (64,), (out,), 0)
    return out, x + np.roll(x, -1)


@kernel("blind_meaner.cu", "sm90a", "RELEASES_THE_WRONG_STAGE", "TOO_FEW_ARRIVALS_COUNTED")
def pipelined(device: EmulatedDevice, launch: Launch) -> Outcome:
    a, b, c = integers(64, 64), integers(5, 16, 64), device.full((64, 16), np.nan, np.float32)
    images = [device.asarray(swizzled(bf16_bits(each))) for each in (a, b)]
    launch((1,), (160,), (*images, c, 5), 64 * 128 + 2 * 16 * 128 + 5 * 8)
    return c, a @ b.sum(0).T


@kernel("blind_meaner.cu", "sm90a", "SCALED_WITHOUT_FENCE", "FRAGMENT_REUSED")
def decay(device: EmulatedDevice, launch: Launch) -> Outcome:
    a, b, c = integers(3, 64, 64), integers(16, 64), device.full((64, 16), np.nan, np.float32)
    words = [device.asarray(bf16_bits(each).view(np.uint32)) for each in (a, b)]
    launch((1,), (128,), (*words, c, 3), 16 * 128)
    return c, (4 * a[0] + 2 * a[1] + a[2]) @ b.T


@kernel("blind_meaner.cu", "sm90a", "SOURCE_OVERWRITTEN", "READ_BACK_TOO_SOON")
def emit(device: EmulatedDevice, launch: Launch) -> Outcome:
    x = integers(3, 64)
    out, mirror = device.full((3, 64), np.nan, np.float32), device.full((1, 64), np.nan, np.float32)
    launch((1,), (64,), (device.asarray(x), out, mirror, 3), 256)
    return np.concatenate((out, mirror)), 2 * np.concatenate((x, x[-1:, ::-1]))


@kernel("blind_meaner.cu", "sm90a", "STMATRIX_UNORDERED")
def turn(device: EmulatedDevice, launch: Launch) -> Outcome:
    x, out = np.arange(1, 129, dtype=np.uint32), device.full(128, 0, np.uint32)
    launch((1,), (64,), (device.asarray(x), out), 512)
    return out.astype(np.float32), x[::-1].astype(np.float32)


@kernel("blind_meaner.cu", "sm90a", "EXPECTS_CLIPPED_BOX")
def boxes(device: EmulatedDevice, launch: Launch) -> Outcome:
    x, out = device.asarray(integers(20, 32)), device.full(32, np.nan, np.float32)
    launch((1,), (32,), (TensorMap(x, (8, 32), "f32").emulated(), out, 20), 8 * 128 + 8)
    return out, x.sum(0)


@kernel("blind_meaner.cu", "sm90a", "ZEROED_WITHOUT_FENCE")
def padded(device: EmulatedDevice, launch: Launch) -> Outcome:
    x, out = integers(48), device.full(64, np.nan, np.float32)
    launch((1,), (64,), (device.asarray(x), out, 48), 264)
    return out, np.pad(x, (0, 16))[::-1]
