"""Every wrapper by itself, on fragments that NumPy lays out: small integers come out exactly."""

import itertools
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from microbench.compile import compile_source
from microbench.emulator import EmulatedDevice
from microbench.verify.differential import layouts
from microbench.verify.differential.attention_case import bf16_bits
from tests.emulated.sources import source_of

SOURCE, NAME = source_of("wrappers.cu")
Words = NDArray[np.uint32]
ORDERS = tuple(itertools.product(("row", "col"), repeat=2))


def integers(rng: np.random.Generator, *shape: int) -> NDArray[np.float32]:
    return rng.integers(-4, 5, shape).astype(np.float32)


def words(values: NDArray[np.float32], kind: str) -> Words:
    """Fragments, (lanes, elements), as the registers that hold them."""
    if kind == "tf32":
        return np.ascontiguousarray(values, np.float32).view(np.uint32)
    bits = values.astype(np.float16).view(np.uint16) if kind == "f16" else bf16_bits(values)
    return np.ascontiguousarray(bits).view(np.uint32)


def load(device: EmulatedDevice, kernel: str, **defines: int | str) -> Any:
    return device.load(SOURCE, NAME, kernel=kernel, defines=tuple(defines.items()))


def mma_defines(wrapper: str, a: Words, b: Words, d: NDArray[Any]) -> dict[str, int | str]:
    kind = "float" if d.dtype == np.float32 else "unsigned"
    sizes = {"A_WORDS": a.shape[1], "B_WORDS": b.shape[1], "D_WORDS": d.shape[1]}
    return {"MMA": wrapper, "D_TYPE": kind, **sizes}


@pytest.mark.parametrize(("k", "kind"), [(16, "f16"), (16, "bf16"), (8, "f16"), (8, "bf16"), (8, "tf32")])
def test_mma_sync_multiplies_its_fragments(k: int, kind: str) -> None:
    per_word = 1 if kind == "tf32" else 2
    for seed in range(10):
        rng = np.random.default_rng(seed)
        a, b, c = integers(rng, 16, k), integers(rng, k, 8), integers(rng, 16, 8)
        fa, fb = words(a[layouts.mma_a(k, per_word)], kind), words(b[layouts.mma_b(k, per_word)], kind)
        d = c[layouts.mma_accumulator()]
        kernel = load(EmulatedDevice(), "mma", **mma_defines(f"mma_m16n8k{k}_{kind}", fa, fb, d))
        kernel((1,), (32,), (fa, fb, d))
        np.testing.assert_array_equal(d, (a @ b + c)[layouts.mma_accumulator()])


@pytest.mark.parametrize("f32", [True, False])
@pytest.mark.parametrize(("a_order", "b_order"), ORDERS)
def test_m8n8k4_multiplies_four_quad_pairs(a_order: str, b_order: str, f32: bool) -> None:
    wrapper = f"mma_m8n8k4<ptx::Order::{a_order},ptx::Order::{b_order}>"
    pair = layouts.quad_pair()
    places, (row, row_k), (column, column_k) = (
        layouts.volta_accumulator(f32),
        layouts.volta_operand(a_order == "row"),
        layouts.volta_operand(b_order == "col"),
    )
    for seed in range(10):
        rng = np.random.default_rng(seed)
        a, b, c = integers(rng, 4, 8, 4), integers(rng, 4, 4, 8), integers(rng, 4, 8, 8)
        fa, fb = words(a[pair, row, row_k], "f16"), words(b[pair, column_k, column], "f16")
        expected, d = (a @ b + c)[pair, *places], c[pair, *places]
        given: Any = d if f32 else words(d, "f16")
        load(EmulatedDevice(), "mma", **mma_defines(wrapper, fa, fb, given))((1,), (32,), (fa, fb, given))
        np.testing.assert_array_equal(given if f32 else given.view(np.float16).astype(np.float32), expected)


@pytest.mark.parametrize("count", [1, 2, 4])
def test_matrices_go_to_fragments_and_back(count: int) -> None:
    rng = np.random.default_rng(count)
    image = rng.integers(0, 1 << 16, (64, 8)).astype(np.uint16)  # 64 rows of 16 bytes
    chosen = rng.permutation(64)[:32]
    d = np.zeros((2, 32, count), np.uint32)
    device = EmulatedDevice()
    kernel = load(device, "load_matrices", MATRICES=count)
    kernel((1,), (32,), (image.view(np.uint32), chosen.astype(np.uint32) * 16, d), shared_mem=1024)
    matrices = image[chosen[: 8 * count]].reshape(count, 8, 8)
    fragments = d.view(np.uint16).reshape(2, 32, count, 2)
    lane, half = np.indices((32, 2))
    for m in range(count):
        np.testing.assert_array_equal(fragments[0, :, m], matrices[m][lane // 4, lane % 4 * 2 + half])
        np.testing.assert_array_equal(fragments[1, :, m], matrices[m][lane % 4 * 2 + half, lane // 4])

    rows, plain, trans = np.arange(32, dtype=np.uint32) % (8 * count) * 16, *np.zeros((2, count, 8, 8), np.uint16)
    kernel = load(device, "store_matrices", MATRICES=count)
    views = plain.view(np.uint32), trans.view(np.uint32)
    kernel((1,), (32,), (d[0], rows, *views), shared_mem=1024)
    np.testing.assert_array_equal(plain, matrices)
    np.testing.assert_array_equal(trans, matrices.transpose(0, 2, 1))


def major_strides(mn_major: bool, swizzle: int, extent: int) -> tuple[int, int]:
    """Leading and stride byte offsets of a k16 tile of `extent` rows or columns, its groups one after another."""
    if not swizzle:  # cores of 128 bytes: those along k first
        return 128, 256
    if mn_major:
        return 8 * swizzle * 2, 8 * swizzle  # the two groups of k one after another, then the next span
    return 16, 8 * swizzle


def image_of(matrix: NDArray[np.uint16], mn_major: bool, swizzle: int) -> tuple[Words, int, int]:
    """Shared memory that holds `matrix`, (extent, 16), and the strides of its descriptor."""
    leading, stride = major_strides(mn_major, swizzle, len(matrix))
    i, k = np.indices(matrix.shape)
    at = layouts.swizzled(layouts.descriptor_offset(i, k, mn_major, swizzle, leading, stride), swizzle) // 2
    image = np.full((int(at.max()) + 512) // 512 * 512, 0x7FFF, np.uint16)
    assert len(np.unique(at)) == at.size
    image[at] = matrix
    return image.view(np.uint32), leading, stride


WGMMA_CASES = [
    *((swizzle, a, b, 64) for swizzle in (0, 32, 64, 128) for a in ("K", "MN") for b in ("K", "MN")),
    *((128, "K", "K", n) for n in (8, 16, 32, 96, 128, 192, 256)),
]


@pytest.mark.parametrize(("swizzle", "a_major", "b_major", "columns"), WGMMA_CASES)
def test_wgmma_reads_what_its_descriptors_say(swizzle: int, a_major: str, b_major: str, columns: int) -> None:
    for mode, kind, source in (("eager", "f16", "ss"), ("lazy", "bf16", "ss"), ("lazy", "f16", "rs")):
        rng = np.random.default_rng(columns + swizzle)
        a, b, c = integers(rng, 64, 16), integers(rng, columns, 16), integers(rng, 64, columns)
        (a_bits, b_bits) = (words(m, kind).view(np.uint16).reshape(m.shape) for m in (a, b))
        a_image, *a_strides = image_of(a_bits, a_major == "MN", swizzle)
        b_image, *b_strides = image_of(b_bits, b_major == "MN", swizzle)
        registers = words(a[layouts.wgmma_a()], kind)
        places = layouts.wgmma_accumulator(columns)
        d = c[places]
        defines: dict[str, int | str] = {"COLUMNS": columns, "SWIZZLE": swizzle, "WGMMA": f"wgmma_{kind}_{source}"}
        defines |= {"A_MAJOR": a_major, "B_MAJOR": b_major, **({"FROM_REGISTERS": 1} if source == "rs" else {})}
        args = (a_image, a_image.size, *a_strides, b_image, b_image.size, *b_strides, registers, d)
        load(EmulatedDevice(mode), "wgmma", **defines)((1,), (128,), args, shared_mem=65536)  # type: ignore[arg-type]
        np.testing.assert_array_equal(d, (a @ b.T + c)[places])


COMPILED = [
    ("sm70", "mma", {"MMA": "mma_m8n8k4<ptx::Order::col,ptx::Order::row>", "D_TYPE": "unsigned", "D_WORDS": 4}),
    ("sm80", "mma", {"MMA": "mma_m16n8k8_tf32", "D_TYPE": "float", "D_WORDS": 4, "A_WORDS": 4}),
    ("sm80", "load_matrices", {"MATRICES": 2}),
    ("sm90a", "store_matrices", {"MATRICES": 4}),
    ("sm90a", "copy_box", {"COORDINATES": "0,1,2,3,4"}),
    ("sm90a", "copy_bytes", {"COORDINATES": "0"}),
    ("sm100a", "copy_box", {"COORDINATES": "0,1,2"}),
    ("sm120a", "store_matrices", {"MATRICES": 1}),
    ("sm90a", "wgmma", {"COLUMNS": 64, "SWIZZLE": 64, "WGMMA": "wgmma_f16_ss", "A_MAJOR": "MN", "B_MAJOR": "MN"}),
    ("sm90a", "wgmma", {"COLUMNS": 96, "WGMMA": "wgmma_bf16_rs", "B_MAJOR": "MN", "FROM_REGISTERS": 1}),
]


@pytest.mark.parametrize(("arch", "kernel", "defines"), COMPILED)
def test_the_same_source_compiles_for_its_gpu(arch: str, kernel: str, defines: dict[str, int | str]) -> None:
    defaults: dict[str, int | str] = {"A_WORDS": 2, "B_WORDS": 2, "SWIZZLE": 128}
    if "MATRICES" in defines:
        defaults = {}
    compile_source(SOURCE, NAME, arch, tuple((defaults | defines).items()), kernel=kernel)
