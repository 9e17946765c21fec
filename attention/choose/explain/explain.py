"""explain(): which kernel serves a problem, which measured constants decided, and why every other kernel does not."""

import sys
from dataclasses import replace
from typing import Any

from attention.call import NO_EXTRAS, Extras, Options
from attention.choose import by_lengths, learned
from attention.choose.candidates import Candidate, Refusal, withheld_from
from attention.choose.choose import Choice, choose
from attention.choose.classes import representative
from attention.choose.constant_used import ConstantUsed
from attention.choose.explain.explanation import Explanation
from attention.choose.explain.tuning import decided_by, would_decide
from attention.choose.lengths import UNKNOWN, Lengths
from attention.choose.machine import HOST, MachineProfile, machine_profile, named_machine
from attention.choose.published.ranking import ranking
from attention.choose.turning import told, turns, used
from attention.choose.while_new import CALLS_OF_A_SHAPE, while_new
from attention.errors import ProblemError
from attention.forwarded import Wanted
from attention.judge.arguments import number, require_arrays, require_bools
from attention.judge.bias import MASK_AND_CAUSAL, aligned_bottom_right, is_causal_bias
from attention.judge.call import judged
from attention.judge.flat_mask import fails_in_torch, refused
from attention.judge.shapes import SDPA, copied_first
from attention.problem import AttentionProblem
from attention.variant import by_path, settle
from microbench import paths
from microbench.console.si import written
from microbench.published.boards import Known
from microbench.results.doubt import Doubt, doubts
from microbench.results.profile import Profile

BACKWARD = "backward"
OF_TORCH = frozenset({"dropout", "bool mask", "float mask"})  # features in the signature of torch's function
TORCHS = "an eager attention.sdpa call goes to torch's function as a whole, with torch's backward; in every other call "


def explain(
    query: Any,
    key: Any = None,
    value: Any = None,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    *,
    gpu: str | None = None,
    only: str | None = None,
    passes: str = "forward",
) -> Explanation:
    """Explain one call, with the arguments of sdpa, or one AttentionProblem.

    passes='backward' explains its gradients.
    Without `gpu`, the profile is this machine's own for the device of the tensors or the problem.
    explain_flash_attn_func and explain_flash_attn_varlen_func take the arguments of the other two functions.
    `gpu` need not be measured: 'a100', 'rtx4090' and 'sm89' say what is known of it, which kernel it would go to, and,
    where its kind has a published profile, what ours would take.
    Raises ProblemError, UnsupportedError, microbench.errors.UnknownGpu.
    """
    if isinstance(query, AttentionProblem):
        return explain_call(query, (), gpu=gpu, only=only, passes=passes)
    if key is None or value is None:
        raise ProblemError("explain needs query, key and value, or one AttentionProblem; give all three tensors.")
    problem = problem_of(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)
    explained = explain_call(problem, (query, key, value), gpu=gpu, only=only, passes=passes)
    if gpu is not None or only == "smscope":
        return explained
    asked = _asked_of_torch() if "torch" in sys.modules else ()
    if not asked and explained.choice.pick.owner == "torch" and fails_in_torch(problem, (query, key, value), attn_mask):
        raise refused(attn_mask, query, key)
    return replace(explained, cautions=(*explained.cautions, *asked))


def _asked_of_torch() -> tuple[str, ...]:
    from attention.torch_private import asked_of_torch

    return asked_of_torch()


def problem_of(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any,
    dropout_p: float,
    is_causal: bool,
    scale: float | None,
    enable_gqa: bool,
) -> AttentionProblem:
    """The problem that a call with the arguments of sdpa poses. Raises ProblemError."""
    require_arrays(query=query, key=key, value=value)
    require_bools(is_causal=is_causal, enable_gqa=enable_gqa)
    if attn_mask is not None and is_causal:
        raise ProblemError(MASK_AND_CAUSAL)
    bottom_right = False
    if attn_mask is not None and is_causal_bias(attn_mask):
        bottom_right = aligned_bottom_right(attn_mask, query.shape, key.shape)
        attn_mask, is_causal = None, True
    extras = NO_EXTRAS if attn_mask is None else Extras(mask=attn_mask)
    scale = None if scale is None else number("scale", scale)
    options = Options(causal=is_causal, bottom_right=bottom_right, scale=scale)
    found = judged(SDPA, (query, key, value), extras, options, enable_gqa)
    return found.problem(options, extras, enable_gqa=enable_gqa, dropout_p=number("dropout_p", dropout_p))


def explain_call(
    problem: AttentionProblem,
    tensors: tuple[Any, ...],
    *,
    gpu: str | None = None,
    only: str | None = None,
    passes: str = "forward",
) -> Explanation:
    """Explain a problem with the tensors that posed it, whose layout may ask for a copy."""
    if gpu is not None:
        named = named_machine(gpu)
        return explain_named(named, problem, only=only, passes=passes)
    device = str(getattr(tensors[0], "device", problem.device)) if tensors else problem.device
    found = machine_profile(device if device.startswith("cuda") else "cpu")
    withheld = withheld_from(Wanted(), BACKWARD, found.profile.arch) if "torch" in sys.modules else ()
    options: dict[str, Any] = {"only": only, "passes": passes, "withheld": withheld}
    explained = explain_on(found.profile, problem, caution=found.caution, **options)
    copies = copied_first(tensors) if explained.choice.pick.owner == "smscope" else ()
    return replace(explained, notes=(*explained.notes, *copies))


def explain_named(
    named: MachineProfile,
    problem: AttentionProblem,
    *,
    only: str | None = None,
    passes: str = "forward",
    lengths: Lengths = UNKNOWN,
) -> Explanation:
    """Explain a problem on a GPU that somebody named; with published constants of its kind where nobody measured it."""
    asked: dict[str, Any] = {"only": only, "passes": passes, "caution": named.caution, "known": named.known}
    asked["lengths"] = lengths
    explained = explain_on(named.profile, problem, **asked)
    if named.published is None:
        return explained
    problem = explained.choice.problem
    choice = learned.choice_on(named.profile, problem, passes=passes) if only else explained.choice
    torchs = [each for each in (choice.pick, *choice.candidates) if each.owner == "torch"]
    found = ranking(named.published, problem, tuple(dict.fromkeys(torchs)), passes=passes)
    open_ = would_decide(named.profile, problem, found) if explained.untimed else ""
    return replace(explained, published=found, untimed=open_)


def explain_on(
    profile: Profile,
    problem: AttentionProblem,
    *,
    only: str | None = None,
    passes: str = "forward",
    withheld: tuple[Refusal, ...] = (),
    caution: str | None = None,
    known: Known | None = None,
    lengths: Lengths = UNKNOWN,
) -> Explanation:
    """Explain one problem on the machine of a profile, by its timings on file where there are some.

    `withheld` are variants that this process leaves out of the backward. `known` is what else the reader should hear
    of a machine without a profile. `lengths` of sequences change no choice, for a call does not know them.
    """
    problem = problem.on("cpu" if profile.arch == HOST else "cuda")
    judged = representative(problem) if passes == "forward" else problem
    choice = learned.choice_on(profile, judged, passes=passes, only=only, withheld=withheld)
    choice = replace(choice, problem=problem)
    pick = choice.pick
    constants = [profile[name] for name in used(pick.prediction)] if pick.prediction else []
    cautions = [caution] if caution else []
    timed = learned.timed_on(profile)
    if timed != profile.gpu and pick.prediction and pick.prediction.efficiency.timings:
        cautions.append(
            f"timings are {timed}'s, because those of {profile.gpu} compare no kernel of today with torch's"
        )
    cautions += [
        f"no pick uses {each}; `{paths.typed('bench')}` on an idle machine measures it again"
        for each in doubts_of(profile, choice)
    ]
    cautions += [
        f"{constant.name} is a lower bound: {constant.only_at_least}"
        for constant in constants
        if constant.only_at_least
    ]
    return Explanation(
        choice=choice,
        constants=tuple(map(ConstantUsed.of, constants)),
        notes=(
            by_path(pick.variant).summary,
            *([decided_by(choice)] if choice.tuning else []),
            *([choice.mistrust] if choice.mistrust else []),
            *by_path(pick.variant).notes(problem),
            *([_gradients(profile, problem, pick, withheld)] if passes == "forward" else []),
            *(["lse includes the sinks"] if problem.sinks else []),
            *_settled(choice),
            *_workspace(choice),
            *([f"all lengths of a class get one kernel; {judged} stands for this one"] if judged != problem else []),
            *([by_lengths.told(profile, choice, lengths, learned.of_machine(profile))] if lengths else []),
            *_while_new(choice),
            *_turning(profile, choice, judged, only, withheld),
        ),
        cautions=tuple(cautions),
        known=known,
        stand_in=caution or "",
        untimed=would_decide(profile, problem) if _tunes(choice) else "",
    )


def _tunes(choice: Choice) -> bool:
    """Whether `smscope tune` times such calls, and has not."""
    return choice.arch != HOST and choice.passes == "forward" and choice.tuning is None


def _gradients(profile: Profile, problem: AttentionProblem, pick: Candidate, withheld: tuple[Refusal, ...]) -> str:
    """What computes the gradients of a forward."""
    choice = learned.choice_on(profile, problem, passes=BACKWARD, withheld=withheld)
    whole = TORCHS if pick.owner == "torch" and OF_TORCH.issuperset(problem.features) else ""
    why = f", because {choice.fallback}" if choice.fallback else ""
    return f"{whole}{choice.pick.variant} computes the gradients from out and lse{why}"


def doubts_of(profile: Profile, choice: Choice) -> tuple[Doubt, ...]:
    """The constants in doubt for whose sake candidates of this choice are not predicted."""
    names = {each.doubtful for each in choice.candidates}
    return tuple(each for each in doubts(profile) if each.constant in names)


def _settled(choice: Choice) -> tuple[str, ...]:
    """What the pick is built with beside its configuration."""
    choices = by_path(choice.pick.variant).settled
    values = settle(choices, choice.problem, choice.pick.config)
    axes = dict(choice.pick.config.values)
    asked = (each for each in choices if each.name not in axes and each.concerns(choice.problem))
    return tuple(f"{each.name}={values[each.name]} is settled, because {each.why}" for each in asked)


def _workspace(choice: Choice) -> tuple[str, ...]:
    """A sentence where a kernel's steps or blocks hand on what they have by device memory."""
    needed = by_path(choice.pick.variant).workspace(choice.problem, choice.pick.config)
    return (f"beside its tensors it takes a workspace of {written(needed, 'bytes')}",) if needed else ()


def _turning(
    profile: Profile, choice: Choice, judged: AttentionProblem, only: str | None, withheld: tuple[Refusal, ...]
) -> tuple[str, ...]:
    """A sentence on the constants that would change the pick, where predictions picked it on a GPU."""
    prediction = choice.pick.prediction
    if prediction is None or choice.arch == HOST or choice.tuning is not None or choice.passes != "forward":
        return ()
    timings, names = learned.of_machine(profile), used(prediction)

    def pick(other: Profile) -> Candidate:
        return choose(other, judged, only=only, withheld=withheld, efficiencies=timings).pick

    return (told(turns(profile, names, pick), names),)


def _while_new(choice: Choice) -> tuple[str, ...]:
    """A sentence where another kernel serves a shape before it has been called often."""
    early = while_new(choice)
    if early is choice.pick:
        return ()
    config = f" ({early.config})" if early.config.values else ""
    return (
        f"the first {CALLS_OF_A_SHAPE} calls of a shape go to {early.variant}{config}, because {choice.pick.variant} "
        f"spends {written(by_path(choice.pick.variant).first_seconds, 's')} on the host to plan each new shape",
    )
