"""The tensor cores' number formats: how NumPy holds them, and the wrappers that multiply them."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microbench.errors import EnvironmentLacks
from microbench.shapes.tcgen05_operands import sixteens

SOURCE = Path(__file__).with_name("formats.cu")
Defines = tuple[tuple[str, int | str], ...]

BYTES = {"f16": 2, "bf16": 2, "tf32": 4, "e4m3": 1, "e5m2": 1, "s8": 1, "u8": 1}
# Of 6 or 4 bits in a kind of 8: sixteen to 16 bytes of shared memory, packed in the first of these.
PADDED = {"e2m3": 6, "e3m2": 6, "padded_e2m1": 4}
BYTES |= dict.fromkeys(PADDED, 1)
SUMS: dict[str, Any] = {"f32": np.float32, "f16": np.float16, "s32": np.int32}
_C_TYPES = {"f32": ("float", 1), "f16": ("unsigned", 2), "s32": ("int", 1)}  # and elements to a word


@cache
def dtypes() -> dict[str, Any]:
    """NumPy's type of each. tf32 is an f32 whose lower 13 bits nobody reads. Raises EnvironmentLacks.

    fp8 is that of ml_dtypes, which nobody here wrote, and which only those need who hold a GPU against the emulator.
    """
    try:
        import ml_dtypes
    except ImportError as error:
        raise EnvironmentLacks(
            "Formats of tensor cores need ml_dtypes, which is not installed here; `pip install ml-dtypes` brings it."
        ) from error
    return {
        "f16": np.float16,
        "bf16": ml_dtypes.bfloat16,
        "tf32": np.float32,
        "e4m3": ml_dtypes.float8_e4m3fn,
        "e5m2": ml_dtypes.float8_e5m2,
        **dict.fromkeys(("e2m1", "padded_e2m1"), ml_dtypes.float4_e2m1fn),
        "e2m3": ml_dtypes.float6_e2m3fn,
        "e3m2": ml_dtypes.float6_e3m2fn,
        "ue8m0": ml_dtypes.float8_e8m0fnu,
        "ue4m3": ml_dtypes.float8_e4m3fn,  # whose sign is 0
        "s8": np.int8,
        "u8": np.uint8,
    }


@dataclass(frozen=True)
class Wrapper:
    """One wrapper of mma.sync or, with `k` and the columns, of wgmma; `name` without the prefix of its family."""

    name: str
    k: int
    a: str
    b: str
    sums: str
    saturates: bool = False

    @property
    def per_word(self) -> int:
        """Elements of a in a register."""
        return 4 // BYTES[self.a]


def _pairs(*kinds: str) -> list[tuple[str, str, str]]:
    """(the wrapper's name, type of a, type of b): alike, then mixed."""
    mixed = [(f"{a}_{b}", a, b) for a in kinds for b in kinds if a != b]
    return [*((kind, kind, kind) for kind in kinds), *mixed]


def _eight_bit(k: int) -> list[Wrapper]:
    integers = [
        Wrapper(f"{name}{'_sat' if sat else ''}", k, a, b, "s32", sat)
        for name, a, b in _pairs("s8", "u8")
        for sat in (False, True)
    ]
    return integers + [Wrapper(name, k, a, b, sums) for name, a, b in _pairs("e4m3", "e5m2") for sums in ("f32", "f16")]


MMA = (
    *(Wrapper(kind, k, kind, kind, "f32") for k in (16, 8) for kind in ("f16", "bf16")),
    *(Wrapper("f16", k, "f16", "f16", "f16") for k in (16, 8)),
    *(Wrapper("tf32", k, "tf32", "tf32", "f32") for k in (8, 4)),
    *_eight_bit(32),
    *_eight_bit(16),
)
WGMMA = (
    *(Wrapper(kind, 16, kind, kind, "f32") for kind in ("f16", "bf16")),
    Wrapper("tf32", 8, "tf32", "tf32", "f32"),
    *(each for each in _eight_bit(32) if each.sums != "f16"),
)
FLOAT_N = tuple(range(8, 257, 8))
INTEGER_N = (8, 24, *range(16, 257, 16))


def mma_defines(wrappers: tuple[Wrapper, ...] = MMA) -> Defines:
    """The build that has these wrappers, numbered as they come."""
    made = []
    for number, each in enumerate(wrappers):
        c_type, packed = _C_TYPES[each.sums]
        words = each.k * 16 // 32 // each.per_word, each.k * 8 // 32 // each.per_word, c_type, 4 // packed
        made.append(f"TRY({number},mma_m16n8k{each.k}_{each.name},{','.join(map(str, words))})")
    return ("MMA_SYNC", 1), ("WRAPPERS", " ".join(made))


def columns_of(wrapper: Wrapper) -> tuple[int, ...]:
    """Every N of a wgmma."""
    return INTEGER_N if wrapper.sums == "s32" else FLOAT_N


def wgmma_defines(wrapper: Wrapper, columns: tuple[int, ...] | None = None) -> Defines:
    """The build of one wgmma, numbered by N: in all its sizes unless said."""
    c_type = _C_TYPES[wrapper.sums][0]
    made = (f"TRY({n},{wrapper.name},{c_type},{n})" for n in columns or columns_of(wrapper))
    return ("WGMMA", 1), ("WRAPPERS", " ".join(made))


def values_of(bits: NDArray[Any], kind: str) -> NDArray[np.float64]:
    """What the elements are worth, from their bits: (...) of the unsigned integer of that size."""
    if kind == "tf32":
        bits = bits & np.uint32(0xFFFFE000)
    with np.errstate(invalid="ignore"):
        values: NDArray[np.float64] = bits.view(dtypes()[kind]).astype(np.float64)
        return values


def bits_of(values: NDArray[Any], kind: str) -> NDArray[Any]:
    """The bits of the nearest elements, as unsigned integers of their size."""
    held = values.astype(dtypes()[kind])
    return held.view(f"u{held.itemsize}")


def padded(codes: NDArray[np.uint8], width: int, rng: np.random.Generator) -> NDArray[np.uint8]:
    """Codes of `width` bits, (rows, k), as as many bytes of shared memory: noise in what pads sixteen of them."""
    packed = sixteens(codes, width)
    noise = rng.integers(0, 256, (len(packed), 16 - 2 * width), np.uint8)
    return np.concatenate([packed, noise], axis=1).reshape(codes.shape)


def registers(fragments: NDArray[Any]) -> NDArray[np.uint32]:
    """Fragments of bits, (lanes, elements), as the words that hold them."""
    return np.ascontiguousarray(fragments).view(np.uint32)


def integer_sum(a: NDArray[np.float64], b: NDArray[np.float64], c: NDArray[np.int32], sat: bool) -> NDArray[np.int32]:
    """A @ b + c in s32: wrapped, or held at the ends. Products of 8 bits are exact in f64."""
    wide = (a @ b).astype(np.int64) + c
    if sat:
        wide = np.clip(wide, -(2**31), 2**31 - 1)
    return wide.astype(np.int32)
