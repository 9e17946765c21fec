"""The kernels that calls will run, chosen as the calls choose them, compiled on all cores into the launcher's cache.

No GPU is needed where one is named, so that a container can be built with its kernels inside.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from attention.ahead.recorded import RecordedCall, calls_of
from attention.choose import learned
from attention.choose.candidates import Candidate
from attention.choose.classes import representative
from attention.choose.machine import MachineProfile, machine_profile, named_machine
from attention.choose.while_new import while_new
from attention.errors import NoGpu, UnsupportedError
from attention.kernels.launch.source import sources_of
from attention.kernels.torch.common.limits import needs_positive_scale
from attention.problem import AttentionProblem
from attention.variant import Config, by_path
from microbench.compile import Source, is_kept
from microbench.machine.arch import by_name
from microbench.results.profile import Profile

NO_CONFIG = Config()


@dataclass(frozen=True)
class Served:
    """Which kernel a call runs: its path and configuration, or why none does. `sources` are what NVRTC compiles."""

    call: RecordedCall
    variant: str
    config: Config = NO_CONFIG
    sources: tuple[Source, ...] = ()
    compiles: bool = False  # by another compiler than NVRTC
    why: str | None = None  # no kernel of ours serves, in a sentence without a full stop

    def __str__(self) -> str:
        reason = f", because {self.why}" if self.why else ""
        return f"{self.call}: {self.variant}{f' ({self.config})' if self.config.values else ''}{reason}"


@dataclass(frozen=True)
class Prewarmed:
    """What prewarm did: kernels compiled now, those that were there already, and what the compiler refused."""

    gpu: str
    arch: str
    served: tuple[Served, ...]
    compiled: int
    kept: int
    refused: tuple[str, ...]
    caution: str | None = None

    def __str__(self) -> str:
        done = f"{self.gpu} ({self.arch}): {self.compiled} kernels compiled, {self.kept} were there already"
        ours = sum(bool(each.sources) or each.compiles for each in self.served)
        lines = [f"{done}; {ours} of {len(self.served)} kinds of calls need them."]
        lines += [f"Caution: {self.caution}."] if self.caution else []
        lines += [f"Not compiled: {each}" for each in self.refused]
        return "\n".join([*lines, *(f"{each}." for each in self.served)])


def prewarm(
    calls: str | Path | Iterable[AttentionProblem | RecordedCall], *, gpu: str | None = None, jobs: int | None = None
) -> Prewarmed:
    """Compile the kernels that these calls will run, on all cores: of a file of attention.record, or of problems.

    gpu: a profile, GPU or architecture ('h200-sxm-141gb', 'a100', 'sm90a'), by default the GPU of this machine.
    jobs: processes, by default as many as cores. They import the main module: a script calls this under
    `if __name__ == "__main__":`.
    Raises DataError for a file that cannot be read, UnknownGpu, EnvironmentLacks without NVRTC, NoGpu without a GPU
    where none is named.
    """
    machine = named_machine(gpu) if gpu is not None else here()
    served = plans(calls_of(calls), machine.profile)
    sources = tuple(dict.fromkeys(source for each in served for source in each.sources))
    missing = [source for source in sources if not is_kept(source)]
    refused: tuple[str, ...] = ()
    if missing:
        from microbench.compile.together import compile_together  # multiprocessing is no part of importing attention

        refused = compile_together(missing, jobs).refused
    # What no NVRTC compiles: the CPU's kernel, which is ready for every problem at once.
    cold = [path for path in {each.variant for each in served if each.compiles} if not by_path(path).is_ready()]
    for path in cold:
        by_path(path).prepare()
    compiled, kept = len(missing) - len(refused) + len(cold), len(sources) - len(missing)
    return Prewarmed(machine.profile.gpu, machine.profile.arch, served, compiled, kept, refused, machine.caution)


def plans(calls: Iterable[RecordedCall], profile: Profile) -> tuple[Served, ...]:
    """Which kernel each call will run on the machine of a profile; a call that nothing serves says why."""
    return tuple(_served(calls, profile))


def _served(calls: Iterable[RecordedCall], profile: Profile) -> Iterator[Served]:
    arch = by_name(profile.arch)

    @cache  # a growing cache poses a problem for each length, and a class of them has one choice
    def pick_of(problem: AttentionProblem, only: str) -> tuple[Candidate, str | None]:
        choice = learned.choice_on(profile, problem, only=only or None)
        return while_new(choice), choice.fallback

    for call in calls:
        problem = call.problem.on("cpu" if profile.arch == "host" else "cuda")
        try:
            pick, fallback = pick_of(representative(problem), call.only)
        except UnsupportedError as error:
            yield Served(call, "nothing", why=str(error).rstrip("."))
            continue
        lacks = _lacks_gradients(profile, problem) if _is_whole(call, problem) and pick.owner == "smscope" else None
        if lacks is not None:
            yield Served(call, "torch", why=f"{lacks}, and torch's own gradients need its own forward")
            continue
        variant = by_path(pick.variant)
        sources = sources_of(variant, problem, pick.config, arch) if variant.builds else ()
        yield Served(call, pick.variant, pick.config, tuple(sources), variant.compiles, fallback)


def _is_whole(call: RecordedCall, problem: AttentionProblem) -> bool:
    """Whether torch's function serves the call and its gradients together, where our gradients are none of a kernel."""
    able = call.door == "sdpa" and call.only != "smscope" and needs_positive_scale(problem) is None
    return call.gradients and able


def _lacks_gradients(profile: Profile, problem: AttentionProblem) -> str | None:
    return learned.choice_on(profile, problem, passes="backward").fallback


def here() -> MachineProfile:
    """The profile for the GPU of this machine. Raises NoGpu where torch finds none."""
    try:
        import torch
    except ImportError:
        torch = None  # type: ignore[assignment]
    if torch is None or not torch.cuda.is_available():
        raise NoGpu("Torch finds no NVIDIA GPU here to compile for; name one: gpu='sm90a', or --gpu sm90a.")
    return machine_profile(f"cuda:{torch.cuda.current_device()}")
