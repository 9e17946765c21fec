"""ALiBi: slope * |distance to the diagonal that ends bottom-right| is subtracted, a slope a head (Press 2021)."""

from typing import TYPE_CHECKING, Any

from attention.feature import Array, At, Define, Device, Feature, Field, Operand, Problem, Word

if TYPE_CHECKING:
    import numpy as np

LOG2_E = 1.4426950408889634


class Alibi(Feature):
    order = 30
    words = (Word("ALiBi", lambda problem: problem.alibi, (("without ALiBi", {"alibi": False}),)),)
    fields = (("alibi", False),)
    operands = (Operand("alibi", "bh", leaves="b", strides="bh"),)
    device = Device(
        serves=("ALiBi",),
        defines=(Define("ALIBI", lambda problem: problem.alibi, share=0.25),),
        fields=(Field("alibi_scale", "float", lambda _, scale_log2: LOG2_E / scale_log2),),
        changes=True,
    )

    def of_call(self, options: Any, given: dict[str, Any]) -> dict[str, Any]:
        return {"alibi": given["alibi"] is not None}

    def told(self, problem: Problem) -> tuple[str, ...]:
        return ("alibi",) if problem.alibi else ()

    def oracle(self, xp: Any, scores: Array, at: At, asked: Any, *operands: Array) -> Array:
        (slopes,) = operands
        return scores if slopes is None else scores - slopes * abs(at.ahead)

    def change(self, scores: Array, at: At, problem: Problem, *operands: Array) -> tuple[Array, Any]:
        (slopes,) = operands
        if slopes is None:
            return scores, None
        distance = at.ahead.abs().to(scores.dtype)
        return scores - slopes * distance, distance

    def operand_gradients(
        self, d_scores: Array, kept: Any, at: At, problem: Problem, *operands: Array
    ) -> tuple[Array | None, ...]:
        return (-d_scores * kept,)

    def drawn(self, rng: "np.random.Generator", asked: frozenset[str]) -> dict[str, Any]:
        return {"alibi": True}

    def values(self, draw: Any, operand: Operand, shape: tuple[int, ...]) -> Array:
        return (-8 * draw.uniform(*shape)).exp2()


FEATURE = Alibi()
