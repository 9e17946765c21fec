"""A tanh-gated bias: tanh(gate) * (key - query) / 64 is added to scores, a gate for each head."""

from typing import TYPE_CHECKING, Any

from attention.feature import Array, At, Define, Device, Feature, Field, Operand, Problem, Word

if TYPE_CHECKING:
    import numpy as np

LOG2_E = 1.4426950408889634


class Gated(Feature):
    order = 35
    words = (Word("gated bias", lambda problem: problem.gate, (("without the gate", {"gate": False}),)),)
    fields = (("gate", False),)
    operands = (Operand("gate", "h"),)
    device = Device(
        serves=("gated bias",),
        defines=(Define("GATE", lambda problem: problem.gate, share=0.2),),
        fields=(Field("gate_scale", "float", lambda _, scale_log2: LOG2_E / 64 / scale_log2),),
        changes=True,
    )

    def of_call(self, options: Any, given: dict[str, Any]) -> dict[str, Any]:
        return {"gate": given["gate"] is not None}

    def told(self, problem: Problem) -> tuple[str, ...]:
        return ("gated",) if problem.gate else ()

    def oracle(self, xp: Any, scores: Array, at: At, asked: Any, *operands: Array) -> Array:
        (gate,) = operands
        return scores if gate is None else scores + xp.tanh(gate) * (at.key - at.query) / 64

    def change(self, scores: Array, at: At, problem: Problem, *operands: Array) -> tuple[Array, Any]:
        (gate,) = operands
        if gate is None:
            return scores, None
        tanh, ahead = gate.tanh(), (at.key - at.query).to(scores.dtype) / 64
        return scores + tanh * ahead, (tanh, ahead)

    def operand_gradients(
        self, d_scores: Array, kept: Any, at: At, problem: Problem, *operands: Array
    ) -> tuple[Array | None, ...]:
        tanh, ahead = kept
        return (d_scores * ahead * (1 - tanh.square()),)

    def drawn(self, rng: "np.random.Generator", asked: frozenset[str]) -> dict[str, Any]:
        return {"gate": True}


FEATURE = Gated()
