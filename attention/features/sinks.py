"""Attention sinks: one more logit of each head in the denominator, without a value (GPT-OSS): rows sum to below 1."""

from typing import TYPE_CHECKING, Any

from attention.feature import Array, Define, Device, Feature, Operand, Problem, Word

if TYPE_CHECKING:
    import numpy as np


class Sinks(Feature):
    order = 40
    words = (Word("attention sinks", lambda problem: problem.sinks, (("without sinks", {"sinks": False}),)),)
    fields = (("sinks", False),)
    operands = (Operand("sinks", "h"),)
    logit = True
    device = Device(
        serves=("attention sinks",),
        defines=(Define("SINKS", lambda problem: problem.sinks, share=0.25, crowds=False),),
    )

    def of_call(self, options: Any, given: dict[str, Any]) -> dict[str, Any]:
        return {"sinks": given["sinks"] is not None}

    def told(self, problem: Problem) -> tuple[str, ...]:
        return ("sinks",) if problem.sinks else ()

    def drawn(self, rng: "np.random.Generator", asked: frozenset[str]) -> dict[str, Any]:
        return {"sinks": True}

    def values(self, draw: Any, operand: Operand, shape: tuple[int, ...]) -> Array:
        return 2 * draw.normal(*shape)


FEATURE = Sinks()
