"""A mask: bools, True may be seen, or floats, which are added to the scores. -inf hides.

Kernels read floats in the dtype of the inputs, or in float32, which has a build of its own: a bias of -100 rounded to
bfloat16 may be wrong by a quarter.
"""

import math
from typing import TYPE_CHECKING, Any, Literal, get_args

from attention.errors import ProblemError
from attention.feature import Array, At, Define, Device, Feature, Operand, Problem, Word

if TYPE_CHECKING:
    import numpy as np

Mask = Literal["none", "bool", "float"]
MASKS: tuple[Mask, ...] = get_args(Mask)
NO_MASK = ("without the mask", {"mask": "none"})
WIDE, WIDE_BYTES = "float32", 4


def element_bytes(problem: Problem) -> int:
    """Of a mask as kernels on a GPU read it; 0 without one."""
    if problem.mask == "none":
        return 0
    return 1 if problem.mask == "bool" else WIDE_BYTES if problem.mask_dtype == WIDE else 2


def row_bytes(problem: Problem, keys: int) -> int:
    """From a row of a mask to the next in shared memory: so many that reads of eight rows meet no bank twice."""
    element = element_bytes(problem)
    unit = 32 if element == WIDE_BYTES else 16
    return (-(-keys * element // unit) | 1) * unit if element else 0


class Masked(Feature):
    order = 50
    words = (
        Word("bool mask", lambda problem: problem.mask == "bool", (NO_MASK,)),
        Word("float mask", lambda problem: problem.mask == "float", (("with a bool mask", {"mask": "bool"}), NO_MASK)),
    )
    # The dtype of floats unlike that of the inputs; "" where they are alike, or the inputs have 32 bits or more.
    fields = (("mask", "none"), ("mask_dtype", ""))
    operands = (
        Operand(
            *("mask", "bhqk"),
            stretch=True,
            holds="mask",
            element="unsigned char",
            strides="qkhb",
            stride_kind="long long",
        ),
    )
    device = Device(
        serves=("bool mask", "float mask"),
        defines=(
            Define("MASK", lambda problem: problem.mask == "bool", share=0.15, crowds=False),
            Define(
                "BIAS",
                lambda problem: problem.mask == "float" and problem.mask_dtype != WIDE,
                share=0.1,
                crowds=False,
            ),
            Define(
                "BIAS32",
                lambda problem: problem.mask == "float" and problem.mask_dtype == WIDE,
                share=0.1,
                crowds=False,
            ),
        ),
        one_define=True,
        changes=True,
        hides=True,
        row_bytes=row_bytes,
    )

    def of_call(self, options: Any, given: dict[str, Any]) -> dict[str, Any]:
        dtype = given["mask"]
        kind = "none" if dtype is None else "bool" if "bool" in str(dtype) else "float"
        return {"mask": kind, "mask_dtype": str(dtype).removeprefix("torch.") if kind == "float" else ""}

    def checked(self, problem: Problem) -> dict[str, Any]:
        if problem.mask not in MASKS:
            raise ProblemError(f"mask is {problem.mask!r}; use one of {', '.join(MASKS)}.")
        alike = problem.mask != "float" or problem.dtype in (problem.mask_dtype, WIDE, "float64")
        return {"mask_dtype": ""} if alike else {}

    def refuses(self, problem: Problem) -> str | None:
        if problem.mask_dtype in ("", WIDE):
            return None
        return f"takes a float mask in {problem.dtype} or {WIDE}, not {problem.mask_dtype}"

    def told(self, problem: Problem) -> tuple[str, ...]:
        kind = problem.mask_dtype or problem.mask
        return (f"{kind} mask",) if problem.mask != "none" else ()

    def oracle(self, xp: Any, scores: Array, at: At, asked: Any, *operands: Array) -> Array:
        (mask,) = operands
        return scores if mask is None or "bool" in str(mask.dtype) else scores + mask

    def oracle_hides(self, at: At, asked: Any, *operands: Array) -> Array | None:
        (mask,) = operands
        return ~mask if mask is not None and "bool" in str(mask.dtype) else None

    def change(self, scores: Array, at: At, problem: Problem, *operands: Array) -> tuple[Array, Any]:
        (mask,) = operands
        return (scores + mask if problem.mask == "float" else scores), None

    def operand_gradients(
        self, d_scores: Array, kept: Any, at: At, problem: Problem, *operands: Array
    ) -> tuple[Array | None, ...]:
        return (d_scores,)

    def hide(self, at: At, problem: Problem, *operands: Array) -> Array | None:
        return ~operands[0] if problem.mask == "bool" else None

    def drawn(self, rng: "np.random.Generator", asked: frozenset[str]) -> dict[str, Any]:
        if "BIAS32" in asked:
            return {"mask": "float", "mask_dtype": WIDE}
        return {"mask": "float" if "BIAS" in asked else "bool"}

    def values(self, draw: Any, operand: Operand, shape: tuple[int, ...]) -> Array:
        mask = draw.uniform(*shape) < draw.density
        if draw.problem.mask == "float":  # as many are -inf as the other kind hides
            mask = draw.normal(*shape).mul(3).masked_fill(~mask, -math.inf)
        if shape[2] > 1:  # some queries see nothing
            mask[:, :, draw.uniform(shape[2]) < 0.05] = False if draw.problem.mask == "bool" else -math.inf
        return mask


FEATURE = Masked()
