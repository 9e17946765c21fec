"""The functions that a user calls, as candidates: attention.sdpa and attention.flash_attn_func, whatever they run.

What a function has no argument for it is not asked: attention.sdpa has no windows, no caps, no packed sequences, and
flash_attn_func no masks. Causality of a rectangle, which ends bottom-right here, is torch's own bias for sdpa, of which
no mask is made. Problems of a campaign have the usual scale, which no caller names.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from attention.call import Tensors
from attention.campaign.rows import DOOR
from attention.choose import learned
from attention.choose.candidates import Candidate
from attention.choose.while_new import CALLS_OF_A_SHAPE, while_new
from attention.compare.torchs import ALIGNED, MASKS, RANGES, VARLEN, WINDOW, as_small
from attention.compare.written import Written
from attention.problem import AttentionProblem
from microbench.results.profile import Profile

SDPA, FLASH = f"{DOOR}sdpa", f"{DOOR}flash_attn_func"
OF_SDPA = frozenset({ALIGNED, *MASKS})
OF_FLASH = frozenset({ALIGNED, WINDOW, VARLEN, RANGES, "softcap", "ALiBi", "attention sinks"})
CUT = "packed sequences"  # what flash_attn_func makes of rows that no kernel of ours would be told to leave out


@dataclass(frozen=True)
class Door:
    """A function on one problem: the candidate that its call chooses, None where that is none of the campaign's.

    `settles`: its first calls of a shape are another kernel's (choose.while_new).
    """

    name: str
    pick: Candidate | None
    settles: bool = False

    @property
    def names(self) -> str:
        if self.pick is None:
            return CUT
        return f"{self.pick.variant} {self.pick.config}" if self.pick.config.values else self.pick.variant

    def prepare(self, problem: AttentionProblem, given: Tensors) -> Written:
        """The call, after as many as its choice wants to see."""
        call = (_sdpa if self.name == SDPA else _flash)(problem, given)
        for _ in range(CALLS_OF_A_SHAPE + 1 if self.settles else 0):
            call()
        return call


def of(problem: AttentionProblem, profile: Profile) -> tuple[Door, ...]:
    """The functions that have an argument for all that is asked, each with its choice on a machine.

    Raises UnsupportedError where nothing serves the problem.
    """
    asked, choice = {*problem.features}, learned.choice_of_call(profile, problem)
    first = while_new(choice)
    found: list[Door] = []
    if asked <= OF_SDPA:
        settles = first is not choice.pick and problem.alignment == "top_left"
        found.append(Door(SDPA, choice.pick if settles else first, settles))
    if asked <= OF_FLASH:
        cut = problem.ranges and (choice.pick.owner != "smscope" or choice.fallback is not None)
        settles = first is not choice.pick and not cut
        found.append(Door(FLASH, None if cut else choice.pick, settles))
    return tuple(found)


def _sdpa(problem: AttentionProblem, given: Tensors) -> Written:
    from torch.nn.attention.bias import causal_lower_right

    from attention.frontends.sdpa import sdpa

    query, key, value = given.query, given.key, given.value
    asked: dict[str, Any] = {}
    if problem.causal and problem.alignment == "bottom_right":
        asked["attn_mask"] = causal_lower_right(problem.seq_q, problem.seq_kv)
    elif problem.causal:
        asked["is_causal"] = True
    if given.extras.mask is not None:
        asked["attn_mask"] = as_small(given.extras.mask)
    if problem.heads_q != problem.heads_kv:
        asked["enable_gqa"] = True
    return Written(lambda: sdpa(query, key, value, **asked))


def _flash(problem: AttentionProblem, given: Tensors) -> Written:
    from attention.frontends.flash_attn.functions import flash_attn_func, flash_attn_varlen_func

    extras = given.extras
    q, k, v = (each.transpose(1, 2) for each in (given.query, given.key, given.value))
    asked: dict[str, Any] = {"causal": True} if problem.causal else {}
    if problem.window != (-1, -1):
        asked["window_size"] = problem.window
    if problem.softcap:
        asked["softcap"] = problem.softcap
    tensors = {"alibi_slopes": extras.alibi, "sinks": extras.sinks, "seqused_k": extras.seqused_k}
    asked |= {name: tensor for name, tensor in tensors.items() if tensor is not None}
    function: Callable[..., Any] = flash_attn_func
    args: tuple[Any, ...] = q, k, v
    if problem.varlen:
        function = flash_attn_varlen_func
        starts = (extras.cu_seqlens_q, extras.cu_seqlens_k, problem.seq_q, problem.seq_kv)
        args = (q[0], k[0], v[0], *starts)
    return Written(
        lambda: function(*args, **asked),
        read=lambda out: (out[None] if problem.varlen else out).transpose(1, 2),
    )
