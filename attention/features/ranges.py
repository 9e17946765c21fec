"""Ranges of rows: how many queries and which keys of its slot each sequence uses, read on the device.

Sequence b uses its first seqused_q[b] queries, and its keys from leftpad_k[b] to seqused_k[b], both counted from where
the sequence begins, as FlashAttention-3 has them; without a tensor, all. Causality, windows and ALiBi go by the used
lengths alone, as if the other rows were not there; a mask keeps its places. A query that is not used gives 0 and lse
-inf, even under a sink, one that is used and sees no key 0 and -inf (its sink). FlashAttention leaves what is not used
unwritten.
"""

from typing import TYPE_CHECKING, Any

from attention.feature import Array, At, Define, Device, Feature, Operand, Problem, Word

if TYPE_CHECKING:
    import numpy as np

NAMES = ("seqused_q", "seqused_k", "leftpad_k")


class Ranges(Feature):
    order = 60
    words = (Word("ranges of rows", lambda problem: problem.ranges, (("of all rows", {"ranges": False}),)),)
    fields = (("ranges", False),)
    operands = tuple(Operand(name, "b", holds="count", element="int") for name in NAMES)
    device = Device(serves=("ranges of rows",), defines=(Define("RANGES", lambda problem: problem.ranges, share=0.25),))

    def of_call(self, options: Any, given: dict[str, Any]) -> dict[str, Any]:
        return {"ranges": any(given[name] is not None for name in NAMES)}

    def told(self, problem: Problem) -> tuple[str, ...]:
        return ("ranges",) if problem.ranges else ()

    def where(self, at: At, *operands: Array) -> At:
        used_q, used_k, first = operands
        if used_q is used_k is first is None:
            return at
        queries = at.seq_q if used_q is None else used_q
        end = at.seq_kv if used_k is None else used_k
        begin = end * 0 if first is None else first
        left = end - begin
        keys = left * (left > 0)  # padding may reach beyond the used keys: then there are none
        rows = queries + keys * 0  # an array as well, by which a query is known to be used or not
        return At(at.query, at.key - begin, rows, keys)

    def oracle_hides(self, at: At, asked: Any, *operands: Array) -> Array | None:
        if all(each is None for each in operands):
            return None
        return (at.key < 0) | (at.key >= at.seq_kv) | (at.query >= at.seq_q)

    def hide(self, at: At, problem: Problem, *operands: Array) -> Array | None:
        return self.oracle_hides(at, problem, *operands)

    def drawn(self, rng: "np.random.Generator", asked: frozenset[str]) -> dict[str, Any]:
        return {"ranges": True}

    def values(self, draw: Any, operand: Operand, shape: tuple[int, ...]) -> Array:
        """Any number, or all, or none; padding is short, as a rule. Some calls bring no padding, or use all queries."""
        share = draw.uniform(*shape)
        if operand.name != "seqused_k" and bool(draw.uniform(1) < 0.2):
            return None
        share = share.square() * 0.5 if operand.name == "leftpad_k" else (1.3 * share - 0.1).clamp(0.0, 1.0)
        return (share * (draw.queries if operand.name == "seqused_q" else draw.keys)).int()


FEATURE = Ranges()
