"""What flash-attn's functions take beside q, k and v, in one form for a call and for its explanation. No torch here.

The names are those of FlashAttention-2, -3 and -4 and of vLLM's copy, so that code written for one of them finds here
what it looks for by name. Hints about speed are taken and ignored; what would change the result is refused by name.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from attention.call import ARGUMENTS, NO_EXTRAS, STARTS, TENSORS, Extras, Options
from attention.errors import ArgumentError, ProblemError, UnsupportedError
from attention.judge.arguments import edges, flag, number, whole
from attention.judge.call import INTEGERS, fits
from attention.judge.shapes import Layout

HINTS = frozenset(
    {
        "num_splits",
        "pack_gqa",
        "sm_margin",
        "scheduler_metadata",
        "disable_scheduler_metadata",
        "seqlen_k_per_split",
        "min_seqlen_k",
        "fa_version",
    }
)
PAGED = "no kernel here reads keys and values from the pages of a cache; gather the pages into tensors first"
DESCALED = "no kernel here takes 8-bit inputs; multiply q, k and v by their scales, in 16 bits"
SPLIT_HEADS = "scores come from q and k alone; concatenate the two parts along head_dim, and give softmax_scale"
MODIFIED = "no kernel here applies the caller's function to scores; torch.nn.attention.flex_attention does"
REFUSED = {  # why, by name
    "block_table": PAGED,
    "page_table": PAGED,
    "gather_kv_indices": PAGED,
    "q_descale": DESCALED,
    "k_descale": DESCALED,
    "v_descale": DESCALED,
    "qv": SPLIT_HEADS,
    "q_v": SPLIT_HEADS,
    "attention_chunk": "no kernel here splits keys into chunks; pass them as cu_seqlens of flash_attn_varlen_func",
    "score_mod": MODIFIED,
    "score_mod_bwd": MODIFIED,
    "mask_mod": MODIFIED,
    "aux_tensors": MODIFIED,
    "aux_scalars": MODIFIED,
    "block_sparse_tensors": MODIFIED,
    "block_sparse_tensors_bwd": MODIFIED,
    "out": "the result is a new tensor; copy it to where it belongs",
}
LONGEST = "a whole number, the longest sequence"


# What a feature takes that flash-attn's functions have no name for: taken by the operator's name.
OWN = frozenset({"alibi", "sinks", "mask", "causal", "bottom_right", "window_left", "window_right", "softcap"})
OWN |= {"seqused_q", "seqused_k", "leftpad_k"}
OTHERS = {*TENSORS, *(each.name for each in ARGUMENTS)} - OWN - {*STARTS, "max_seqlen_q", "max_seqlen_k", "scale"}


class FlashExtras(NamedTuple):
    """Tensors of features, and which rows of each sequence are used."""

    operands: Extras = NO_EXTRAS
    seqused_q: Any = None
    seqused_k: Any = None
    leftpad_k: Any = None

    def parts(self) -> int:  # no property: torch 2.10's compiler reads none of a named tuple
        """Into how many packed sequences flash_attn.used_rows cuts each one of the caller's: 1 where all rows count."""
        return 1 + (self.seqused_q is not None) + (self.seqused_k is not None) + (self.leftpad_k is not None)

    def ranged(self) -> Extras:
        """As the operator takes them, where a kernel reads the numbers itself."""
        return self.operands._replace(seqused_q=self.seqused_q, seqused_k=self.seqused_k, leftpad_k=self.leftpad_k)

    def starting(self, starts_q: Any, starts_k: Any) -> "FlashExtras":
        return self._replace(operands=self.operands._replace(cu_seqlens_q=starts_q, cu_seqlens_k=starts_k))


ALL_ROWS = FlashExtras()
ROWS = FlashExtras._fields[1:]


def options_of(
    softmax_scale: Any,
    causal: Any,
    window_size: Any,
    softcap: Any,
    others: Mapping[str, Any],
    longest: tuple[int, int] = (0, 0),
) -> Options:
    """What was given, as Python's own; None as softcap is none. Raises ArgumentError."""
    left, right = edges(window_size)
    plain = {} if not others else {each.name: others[each.name] for each in ARGUMENTS if each.name in others}
    return Options(
        *longest,
        causal=flag("causal", causal),
        bottom_right=True,
        window_left=left,
        window_right=right,
        softcap=0.0 if softcap is None else number("softcap", softcap),
        scale=None if softmax_scale is None else number("softmax_scale", softmax_scale),
        **plain,
    )


def extras_of(
    alibi_slopes: Any, sinks: Any, rows: Sequence[Any], others: Mapping[str, Any], starts: Sequence[Any] = (None, None)
) -> FlashExtras:
    """The tensors given; `rows` are those of ROWS, `starts` cu_seqlens_q and cu_seqlens_k."""
    if alibi_slopes is None and sinks is None and starts[0] is None and not others:
        return ALL_ROWS if rows[0] is rows[1] is rows[2] is None else FlashExtras(NO_EXTRAS, *rows)
    more = {name: others[name] for name in TENSORS if name in others} if others else {}
    operands = Extras(alibi=alibi_slopes, sinks=sinks, cu_seqlens_q=starts[0], cu_seqlens_k=starts[1], **more)
    return FlashExtras(operands, *rows)


def rows_that_fit(layout: Layout, query: Any, extras: FlashExtras, sequences: int) -> None:
    """Raise ProblemError unless there is one number for each sequence."""
    for name in ROWS:
        given = getattr(extras, name)
        if given is not None:
            fits(layout, name, given, query, ((sequences,),), INTEGERS)


def refuse_dropout(dropout_p: float) -> None:
    """Raise UnsupportedError for a dropout above 0, which no kernel here has."""
    if not 0.0 <= dropout_p <= 1.0:
        raise ProblemError(f"dropout_p is {dropout_p}; give a probability from 0 to 1.")
    if dropout_p > 0:
        raise UnsupportedError(
            f"dropout_p={dropout_p} is not supported: no kernel here has dropout; pass dropout_p=0.0, or call "
            "attention.sdpa, which hands dropout to torch."
        )


def longest_of(name: str, given: Any, starts: Any) -> int:
    """The longest sequence as an int, read from cu_seqlens where None is given. Raises ArgumentError.

    A tensor on a GPU is waited for.
    """
    if given is not None:
        return whole(name, given, LONGEST)
    rows = starts.tolist() if len(starts.shape) == 1 else []  # another shape is refused by its name later
    return max((end - begin for begin, end in pairwise(rows)), default=0)


def refuse_others(function: str, others: Mapping[str, Any]) -> None:
    """Let pass what is a hint, or asks for nothing.

    Raises UnsupportedError for what would change the result, ArgumentError for a name that nobody has.
    """
    for name, given in others.items():
        if name in REFUSED:
            if given is not None and not (isinstance(given, int) and given == 0):
                raise UnsupportedError(f"{name} is not supported: {REFUSED[name]}.")
        elif name not in HINTS and name not in OTHERS:
            raise ArgumentError(f"{function}() got an unexpected keyword argument '{name}'.")


def ignored_note(hints: Mapping[str, Any]) -> tuple[str, ...]:
    """A sentence without a full stop that names the hints given, if any."""
    names = [name for name, given in hints.items() if name in HINTS and given is not None]
    return (f"ignored, because measurements choose the configuration: {', '.join(names)}",) if names else ()
