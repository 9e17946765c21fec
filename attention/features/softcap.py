"""Softcap: scores become softcap * tanh(score / softcap), where softcap is above 0 (Gemma 2)."""

from typing import TYPE_CHECKING, Any

from attention.errors import ProblemError
from attention.feature import Argument, Array, At, Define, Device, Feature, Field, Problem, Word, finite

if TYPE_CHECKING:
    import numpy as np

# Below the least cap 8 / scale overflows; the largest one's tanh, right to 2^-23, leaves a score right to 1e-4.
LEAST_CAP, LARGEST_CAP = 2.0**-60, 1024.0


class Softcap(Feature):
    order = 20
    words = (Word("softcap", lambda problem: problem.softcap > 0, (("without softcap", {"softcap": 0.0}),)),)
    fields = (("softcap", 0.0),)
    arguments = (Argument("softcap", "float", 0.0),)
    device = Device(
        serves=("softcap",),
        defines=(Define("SOFTCAP", lambda problem: problem.softcap > 0, share=0.25),),
        fields=(Field("softcap", "float", lambda problem, _: problem.softmax_scale / problem.softcap),),
        changes=True,
    )

    def of_call(self, options: Any, given: dict[str, Any]) -> dict[str, Any]:
        return {"softcap": options.softcap}

    def checked(self, problem: Problem) -> dict[str, Any]:
        cap = finite("softcap", problem.softcap, "a finite number, or 0.0 for none")
        if cap < 0:
            raise ProblemError(f"softcap is {cap}; give a positive number, or 0.0 for none.")
        return {"softcap": cap}

    def told(self, problem: Problem) -> tuple[str, ...]:
        return (f"softcap={problem.softcap:g}",) if problem.softcap else ()

    def oracle(self, xp: Any, scores: Array, at: At, asked: Any, *operands: Array) -> Array:
        return asked.softcap * xp.tanh(scores / asked.softcap) if asked.softcap else scores

    def change(self, scores: Array, at: At, problem: Problem, *operands: Array) -> tuple[Array, Any]:
        if not problem.softcap:
            return scores, None
        tanh = (scores / problem.softcap).tanh_()
        return tanh * problem.softcap, tanh

    def gradient(self, d_scores: Array, kept: Any, at: At, problem: Problem, *operands: Array) -> Array:
        return d_scores if kept is None else d_scores * (1.0 - kept.square())

    def scale(self, problem: Problem) -> float | None:
        return problem.softcap or None

    def refuses(self, problem: Problem) -> str | None:
        cap = problem.softcap
        if cap and not LEAST_CAP <= cap <= LARGEST_CAP:
            return f"serves softcaps from {LEAST_CAP:.2g} to {LARGEST_CAP:g}, not {cap:g}"
        return None

    def drawn(self, rng: "np.random.Generator", asked: frozenset[str]) -> dict[str, Any]:
        return {"softcap": float(rng.choice((2.5, 10.0, 30.0, 50.0)))}


FEATURE = Softcap()
