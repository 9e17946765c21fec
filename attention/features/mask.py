"""A mask: bools, True may be seen, or floats, which are added to the scores."""

from typing import TYPE_CHECKING, Any, Literal, get_args

from attention.errors import ProblemError
from attention.feature import Array, At, Define, Device, Feature, Operand, Problem, Word

if TYPE_CHECKING:
    import numpy as np

Mask = Literal["none", "bool", "float"]
MASKS: tuple[Mask, ...] = get_args(Mask)
NO_MASK = ("without the mask", {"mask": "none"})


class Masked(Feature):
    order = 50
    words = (
        Word("bool mask", lambda problem: problem.mask == "bool", (NO_MASK,)),
        Word("float mask", lambda problem: problem.mask == "float", (("with a bool mask", {"mask": "bool"}), NO_MASK)),
    )
    fields = (("mask", "none"),)
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
        serves=("bool mask",),
        defines=(Define("MASK", lambda problem: problem.mask == "bool", share=0.15, crowds=False),),
        changes=True,
        hides=True,
    )

    def of_call(self, options: Any, given: dict[str, Any]) -> dict[str, Any]:
        dtype = given["mask"]
        return {"mask": "none" if dtype is None else "bool" if "bool" in str(dtype) else "float"}

    def checked(self, problem: Problem) -> dict[str, Any]:
        if problem.mask not in MASKS:
            raise ProblemError(f"mask is {problem.mask!r}; use one of {', '.join(MASKS)}.")
        return {}

    def told(self, problem: Problem) -> tuple[str, ...]:
        return (f"{problem.mask} mask",) if problem.mask != "none" else ()

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
        return {"mask": "bool"}

    def values(self, draw: Any, operand: Operand, shape: tuple[int, ...]) -> Array:
        mask = draw.uniform(*shape) < draw.density
        if shape[2] > 1:  # some queries see nothing
            mask[:, :, draw.uniform(shape[2]) < 0.05] = False
        return mask


FEATURE = Masked()
