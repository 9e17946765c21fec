"""How our predicted speed stands beside what others published of torch's kernels on the same kind of GPU.

A figure counts where it is of a kernel that torch calls, of this kind of GPU, pass, mask and head dim, in half
precision, at lengths within an octave of the problem's. Our side of the ratio is a prediction that nothing corrects:
kernels take longer than their terms, and boards run below or above the clock of their data sheet. Where published
forwards say how much of such a prediction is reached, or timings of our kernel on another GPU, the ratio is given there
too: its slow end, never above the highest. Torch's kernel serves in any case until ours has run on the architecture.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from attention.choose import learned
from attention.choose.candidates import Candidate
from attention.choose.prediction import Prediction
from attention.problem import AttentionProblem
from attention.seen import flops_seen
from attention.variant import Config, by_path
from microbench.console.si import digits, written
from microbench.published import load
from microbench.published.facts import UNTRUSTED, AttentionFact
from microbench.results.profile import Profile, advising

# By the last part of a variant's path: how sources call its kernel, torch's own calls of it first.
CALLED = {
    "torch_flash": ("FlashAttention-2 (PyTorch)", "PyTorch SDPA (flash)", "FlashAttention-2", "flash-attn"),
    "torch_cudnn": ("cudnn (PyTorch)", "PyTorch SDPA (cuDNN)", "cudnn"),
    "torch_efficient": ("xformers",),  # whose kernel torch's memory-efficient attention is
}
OTHER_KINDS_OF_ROW = frozenset({"sliding-window", "softmax-free-variant", "time-only", "gpu-inferred"})
PASSES = {"forward": "fwd", "backward": "bwd"}
HALF = ("fp16", "bf16", "fp16/bf16")
OCTAVE = 1.0

Ours = tuple[str, Config, Prediction | None]


@dataclass(frozen=True)
class BesideTorch:
    """Our predicted speed over a published one of `kernel`, a variant of torch's; `why` names the figure.

    `ratio` is by the terms alone, None where it is not predicted, and `why` then says why. `as_timed` is the same at
    the share of its prediction that our kernel reaches on the GPU `timed_on`, None where no timing of it is on file;
    where that prediction was too slow it is above `ratio`, and bears out no more than that. `at_band` is the same at
    the lowest share that published forwards reach of theirs, None where too few are on file.
    """

    ratio: float | None
    why: str
    kernel: str | None = None
    as_timed: float | None = None
    timed_on: str | None = None
    at_band: float | None = None

    @property
    def slow_end(self) -> float | None:
        """The least ratio that anything on file speaks for, and no more than `ratio`, which is the most."""
        if self.ratio is None or (self.as_timed is None and self.at_band is None):
            return None
        return min(each for each in (self.ratio, self.as_timed, self.at_band) if each is not None)

    def __str__(self) -> str:
        if self.ratio is None:
            return f"Beside torch: unpredicted, because {self.why}."
        said = (
            f"by a model that no such GPU bears out ours has at most {digits(self.ratio)} of the speed of {self.kernel}"
        )
        if self.at_band is not None:
            said += f", {digits(min(self.ratio, self.at_band))} at the slow end of its interval"
        if self.as_timed is not None:
            share = digits(self.as_timed / self.ratio)
            said += (
                f", {digits(self.as_timed)} if it reaches {share} of its prediction, as on {self.timed_on}"
                if self.as_timed < self.ratio
                else f", and all of that if it does as on {self.timed_on}, where it reached {share} of its prediction"
            )
        return f"Beside torch: {said}. {self._verdict()} {self.why}."

    def _verdict(self) -> str:
        if self.slow_end is None:
            return "No slow end is known, so torch's kernel serves."
        if self.slow_end <= 1:
            return "The slow end does not beat torch's, so torch's kernel serves."
        return "The slow end beats torch's, and torch's kernel serves all the same until ours has run on such a GPU."


def beside_torch(
    profile: Profile,
    problem: AttentionProblem,
    ours: Ours | None,
    torchs: Sequence[Candidate],
    low_share: float | None = None,
) -> BesideTorch:
    """The ratio by the nearest figure of the first of torch's kernels that has one.

    `low_share`: the lowest that published forwards reach of their own prediction.
    """
    if ours is None:
        return BesideTorch(None, "no configuration of ours is legal")
    path, config, prediction = ours
    if prediction is None:
        return BesideTorch(None, "ours is unpredicted")
    for torchs_own in torchs:
        figure = _nearest(profile, problem, torchs_own.variant)
        if figure is not None and figure.tflops:
            ratio = flops_seen(problem) / prediction.seconds / (figure.tflops * 1e12)
            timed_on, share = _share_elsewhere(path, config, problem)
            as_timed = None if share is None else ratio * share
            at_band = None if low_share is None else ratio * low_share
            return BesideTorch(ratio, cited(figure), torchs_own.variant, as_timed, timed_on, at_band)
    names = ", ".join(each.variant for each in torchs) or "any kernel of torch's"
    return BesideTorch(None, f"no source gives the speed of {names} on {profile.gpu} near this problem")


def _nearest(profile: Profile, problem: AttentionProblem, path: str) -> AttentionFact | None:
    """The nearest figure of one kernel; of equally near ones the highest, which flatters ours least."""
    names = CALLED.get(path.rpartition("/")[2], ())
    near = [(octaves(problem, each), names.index(each.kernel), -(each.tflops or 0.0), each)
            for each in _comparable(profile, problem, path) if each.kernel in names]  # fmt: skip
    found = min((each for each in near if each[0] <= OCTAVE), key=lambda each: each[:3], default=None)
    return found[3] if found else None


def _comparable(profile: Profile, problem: AttentionProblem, path: str) -> Iterator[AttentionFact]:
    kind = next((kind for kind in load().kinds if kind.kind == profile.gpu), None)
    if kind is None or problem.features or problem.varlen or problem.dtype not in ("float16", "bfloat16"):
        return
    for fact in load().attention:
        same = fact.gpu in kind.boards and fact.pass_ == PASSES.get(path.split("/")[1]) and fact.dtype in HALF
        shape = fact.head_dim == problem.head_dim and (fact.head_dim_v or fact.head_dim) == problem.head_dim_v
        told = fact.tflops and fact.seqlen and not (UNTRUSTED | OTHER_KINDS_OF_ROW).intersection(fact.flags)
        if same and shape and told and fact.causal == problem.causal:
            yield fact


def octaves(problem: AttentionProblem, fact: AttentionFact) -> float:
    """How far the lengths are apart, the further of queries and keys."""
    assert fact.seqlen is not None
    pairs = ((problem.seq_q, fact.seqlen), (problem.seq_kv, fact.kv_seqlen or fact.seqlen))
    return max(abs(math.log2(asked / given)) for asked, given in pairs)


def _share_elsewhere(path: str, config: Config, problem: AttentionProblem) -> tuple[str | None, float | None]:
    """Predicted over measured seconds of our kernel on the first GPU whose timings of it are on file."""
    variant = by_path(path)
    for profile in advising():
        if profile.arch in variant.archs:
            found = learned.of_machine(profile).nearest(variant, config, problem)
            if found is not None:
                return profile.gpu, found.value
    return None, None


def cited(fact: AttentionFact) -> str:
    keys = f" queries by {fact.kv_seqlen} keys" if fact.kv_seqlen not in (None, fact.seqlen) else " tokens"
    shape = (f"B={fact.batch} " if fact.batch else "") + (f"Hq={fact.heads} " if fact.heads else "")
    mask = "causal" if fact.causal else "full"
    assert fact.tflops is not None
    return (
        f"The figure: {fact.kernel}, {fact.dtype} {mask}, {shape}D={fact.head_dim}, {fact.seqlen}{keys} on {fact.gpu}: "
        f"{written(fact.tflops * 1e12, 'FLOP/s')} ({fact.source} {fact.locator})"
    )
