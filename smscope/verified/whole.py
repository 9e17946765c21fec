"""`smscope verify` without --only: every part that is left, within the budget, and what is said at the end."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import typer

from attention.verify.kernel import KernelResult
from microbench import console, paths
from microbench.console.progress import say
from microbench.errors import DataError, EnvironmentLacks, InputError
from microbench.files import put
from microbench.machine import nvml, stamp
from microbench.run import lock
from microbench.run.environment import packages
from microbench.verify import results
from microbench.verify.results import ProbeResult, WrappersResult
from smscope.verified import budget, lacks, record, resuming
from smscope.verified.campaign import Ended, go_on
from smscope.verified.page import page
from smscope.verified.part import Part
from smscope.verified.plan import Asked, parts
from smscope.verified.record import Done, Record, Who
from smscope.verified.usual import usual

SHOWN = 5  # failures of one part; the file has them all
NVRTC = ("nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12")
OWN_FILES = (ProbeResult, WrappersResult, KernelResult)  # add a line to a file of their own, as --only does


@dataclass(frozen=True)
class Call:
    """How one call of the command was typed, beside what it asks of the GPU."""

    budget: str | None = None
    fresh: bool = False
    json: bool = False
    again: str = ""  # the command that goes on


def verify(asked: Asked, call: Call) -> None:
    """Do it, and raise typer.Exit(1) where silicon refuted a part or one came to no result.

    Raises InputError where the budget holds no part, EnvironmentLacks where nothing at all can run here, BusyError
    where another call is at the same GPU.
    """
    within = budget.started(call.budget)
    host = lacks.host(asked.gpu.name, asked.sanitize)
    if host.nothing_runs:
        raise EnvironmentLacks(f"{host.cupy} {host.torch}")
    gaps = tuple(host.gaps())
    for gap in gaps:
        say(f"Gap: {gap.told}")
    with lock.hold(asked.device, wait=False, say=say, of="verify"):
        who, earlier = who_of(asked), resuming.kept(asked.gpu.slug)
        begun = resuming.begin(who, earlier, call.fresh)
        if begun.said:
            say(begun.said)
        often = usual([*earlier, *shipped(asked.gpu.slug)], who)
        try:
            ended = go_on(begun.record, parts(asked, host), gaps, within, often, _keep)
        except KeyboardInterrupt:
            say(f"Interrupted; every part that was done is kept, and `{call.again}` goes on.")
            raise
    file = record.file_of(ended.record)
    left = _left(ended, often, call)
    _say_all(ended, file, call)
    if left:
        say(left)
    if ended.record.failed:
        raise typer.Exit(1)


def who_of(asked: Asked) -> Who:
    """What another call must share to go on with this one's run."""
    where, versions = asked.where(), packages()
    return Who(
        **{name: where[name] for name in ("gpu", "name", "arch", "driver", "commit", "dirty", "quick")},
        uuid_sha256=nvml.facts(asked.gpu).uuid_sha256,
        nvrtc=tuple(f"{name} {versions[name]}" for name in NVRTC if name in versions),
        sources_sha256=stamp.digest(stamp.ROOT)[:16],
        problems=asked.problems,
        seed=asked.seed,
        sanitize=asked.sanitize,
    )


def shipped(but: str) -> list[Record]:
    """The committed runs of every other kind of GPU: how long parts took there."""
    files = (paths.SHIPPED / "verification").glob("*/*.json")
    return resuming.readable(file for file in files if file.parent.name != but)


def _keep(so_far: Record, done: Done | None) -> None:
    """A line in the part's own file first: of a process that ends in between, the next call does the part again."""
    if done is not None and isinstance(done.result, OWN_FILES):
        results.append(done.result)
    file = record.write(so_far)
    try:
        put(file.with_suffix(".md"), page(so_far, file))
    except OSError as error:
        why = f"{error.strerror}; the file itself is kept"
        raise DataError(f"Could not write the page of {file.name}: {why}.") from error


def _say_all(ended: Ended, file: Path, call: Call) -> None:
    done = ended.record.parts
    if call.json:
        console.emit([_row(part) for part in done])
    else:
        lines = [(part.step, part.name, part.told, part.verdict) for part in done]
        console.draw(console.table(f"Verified on {ended.record.who.gpu}", ("", "part", "found", ""), lines))
    for part in done:
        if part.verdict == "broken":
            say(f"{part.key}: {part.reason}")
        for failure in (part.result.failures if part.result else ())[:SHOWN]:
            say(f"{part.name}: {failure.what}: {failure.reason}")
    say(f"Wrote {console.near(file)}, and {file.stem}.md, which says how to send it.")


def _row(part: Done) -> dict[str, object]:
    found = part.result.model_dump(mode="json", exclude={"measured"}) if part.result else {}  # the file has the run
    of_part = part.model_dump(mode="json", include={"verdict", "reason", "seconds"})
    return {"ok": not part.failed, "part": part.key, **of_part, **found}


def _left(ended: Ended, often: Callable[[Part], float], call: Call) -> str:
    """What is left, and how it goes on; '' where nothing is. Raises InputError where this budget will never do."""
    if not ended.left:
        return ""
    first = ended.left[0]
    takes = f"{first.key} usually takes {budget.told(often(first))}"
    if not ended.tried:
        raise InputError(f"--budget {call.budget} holds no part: {takes}; give it more.")
    steps = ", ".join(dict.fromkeys(part.step for part in ended.left))
    return (
        f"The budget of {call.budget} ends here: {len(ended.left)} of {len(ended.record.planned)} parts are left "
        f"({steps}), and {takes}; `{call.again}` goes on."
    )
