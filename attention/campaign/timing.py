"""One problem on a GPU: every candidate checked, captured, and timed in turns with the others.

A candidate is a configuration of ours, a peer, or a function that users call; each may fail in any way: its line says
why it has no samples. One that is far behind has few: it is on file as slow as it is, and no second of the GPU is
spent on knowing better (campaign.staged). The timer is microbench.measure.alternate: from a cold L2, the order drawn
anew each round, with the SM clock beside each sample and the board's power beside each round. Where a problem has
functions that users call, and little to do, those and peers are timed outside of graphs too.
"""

import math
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from attention.campaign import eager, lost
from attention.campaign.doors import Door
from attention.campaign.plan import Job
from attention.campaign.rows import TileTiming
from attention.campaign.staged import FAR, staged
from attention.campaign.watch import Watch
from attention.compare.candidates import MATH, TORCHS, Candidate
from attention.compare.graphed import Graphed
from attention.compare.written import Written, written
from attention.kernels.launch.loaded import cubin_of
from attention.oracle.reference import Comparison
from attention.timed.timing import PEER, STEPS
from attention.variant import Config, Variant
from microbench.errors import DeviceError
from microbench.machine.arch import by_name
from microbench.measure.timed import Timed

if TYPE_CHECKING:
    import torch

    from microbench.device.cuda import CudaDevice


def timed(device: "CudaDevice", job: Job, seed: str) -> tuple[tuple[TileTiming, ...], tuple[str, ...]]:
    """Every candidate of a problem, and what disturbed the GPU meanwhile. Raises DeviceError where it is lost."""
    import torch

    try:
        found, calls = prepared(job, torch.device("cuda", torch.cuda.current_device()))
    except DeviceError:
        raise
    except Exception as failure:  # memory that is not there, for inputs or their oracle
        _require_alive(failure, "what gave it its inputs")
        why = _sentence(failure)
        lines = (
            *(_line(job, *tile) for tile in job.tiles),
            *(_peers_line(job, each) for each in job.peers),
            *map(_doors_line, job.doors),
        )
        return tuple(line.model_copy(update={"failure": why}) for line in lines), ()
    stream, watch = torch.cuda.current_stream().cuda_stream, Watch(job.posed)
    with watch.over():
        replays = {key: watch.noting(key, call.replay) for key, call in calls.items()}
        doors = {key for key, line in found.items() if line.is_door}
        samples = staged(device, replays, seed, stream, doors, lambda key: found[key].variant.partition("/")[0])
    flags = sorted({flag for each in samples.values() for flag in each.flags})
    done = {key: with_samples(tile, samples.get(key)) for key, tile in found.items()}
    if job.doors:
        for key, seconds in eager.timed(to_time_eagerly(done, calls), seed).items():
            each_round = tuple(map(_figure, seconds))
            done[key] = done[key].model_copy(update={"eager_seconds": each_round})
        _require_alive(RuntimeError("calls outside of graphs"), "calls outside of graphs")
    calls.clear()
    torch.cuda.empty_cache()
    return tuple(done.values()), tuple(flags)


def to_time_eagerly(lines: Mapping[str, TileTiming], calls: Mapping[str, Graphed]) -> dict[str, Written]:
    """The user's functions and the peers that are not far behind, of a problem that takes the GPU little time."""
    medians = {key: line.median for key, line in lines.items() if line.seconds}
    fastest = min(medians.values(), default=math.inf)
    if fastest >= eager.MOST_S:
        return {}
    near = {key for key, seconds in medians.items() if seconds <= FAR * fastest or lines[key].is_door}
    return {key: written(calls[key].call) for key in calls if key in near and not lines[key].is_ours}


def prepared(job: Job, here: "torch.device") -> tuple[dict[str, TileTiming], dict[str, Graphed]]:
    """Each candidate's line without samples, and the captured calls of those that are right."""
    import torch

    from attention.campaign import checked

    given = checked.inputs(job.posed, here)
    part = checked.part_of(job.posed, given)
    found: dict[str, TileTiming] = {}
    calls: dict[str, Graphed] = {}
    left_out, watch = lost.known(job.posed), Watch(job.posed)

    def try_one(key: str, line: TileTiming, prepare: Callable[[], Callable[[], Any]], code: Callable[[], Any]) -> None:
        if key in left_out:
            found[key] = line.model_copy(update={"failure": left_out[key]})
            return
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            try:
                with torch.no_grad(), watch.over(key):
                    call = prepare()
                    error = part.judged(call())
                    if error.ok:
                        calls[key] = Graphed(call)
                    captured = not error.ok or calls[key].captured
                    found[key] = line.model_copy(update=_judged(error, captured) | code())
            except Exception as failure:  # the others go on, where the GPU does
                try:
                    _require_alive(failure, key)
                except DeviceError:
                    lost.note(job.posed, key, _sentence(failure))
                    raise
                calls.pop(key, None)
                reasons = map(_reason, told) if line.is_peer else ()
                found[key] = line.model_copy(update={"failure": _sentence(failure, *reasons)})

    for variant, config in job.tiles:
        ours = partial(_call, variant, config, job, given)
        try_one(f"{variant.path} {config}", _line(job, variant, config), ours, partial(_code, variant, config, job))
    for peer in job.peers:
        if peer.name == MATH and any(key.startswith(TORCHS) for key in calls):
            continue  # torch's way without a kernel, where one of its kernels serves
        try_one(peer.name, _peers_line(job, peer), partial(peer.prepare, job.posed.problem, given), dict)
    for door in job.doors:
        try_one(door.name, _doors_line(door), partial(door.prepare, job.posed.problem, given), dict)
    return found, calls


def _line(job: Job, variant: Variant, config: Config) -> TileTiming:
    return TileTiming(variant=variant.path, config=dict(config.values), picked=(variant, config) in job.picked)


def _peers_line(job: Job, peer: Candidate) -> TileTiming:
    picked = any(variant.owner == "torch" and peer.name == f"{PEER}{variant.name}" for variant, _ in job.picked)
    return TileTiming(variant=peer.name, config={}, picked=picked)


def _doors_line(door: Door) -> TileTiming:
    return TileTiming(variant=door.name, config={}, names=door.names)


def with_samples(tile: TileTiming, samples: Timed | None) -> TileTiming:
    """A configuration's line with its samples; as it was where there are none."""
    if samples is None:
        return tile
    return tile.model_copy(
        update={
            "seconds": tuple(_figure(each) for each in samples.seconds),
            "clock_mhz": tuple(None if each is None else round(each, 1) for each in samples.clocks_mhz),
            "power_w": tuple(None if each is None else round(each, 1) for each in samples.power_w),
        }
    )


def _call(variant: Variant, config: Config, job: Job, given: Any) -> Callable[[], Any]:
    run, problem = variant.load(), job.posed.problem
    return lambda: run(given.query, given.key, given.value, problem, config, given.extras)[0]


def _code(variant: Variant, config: Config, job: Job) -> dict[str, Any]:
    """Fields of a line: the code that ran."""
    arch = by_name(job.arch)
    cubins = [cubin_of(variant.folder, step, arch) for step in variant.steps(job.posed.problem, config)]
    return {
        "cubin_sha256": STEPS.join(cubin.sha256 for cubin in cubins),
        "nvrtc": " ".join(sorted({cubin.nvrtc for cubin in cubins})),
    }


def _judged(error: Comparison, captured: bool) -> dict[str, Any]:
    """Fields of a line: how right it is."""
    return {
        "error": _figure(error.error) if math.isfinite(error.error) else None,
        "allowed_error": _figure(error.allowed) if math.isfinite(error.allowed) else None,
        "captured": captured,
        "failure": None if error.ok else f"wrong: {error}",
    }


def _require_alive(failure: Exception, by: str) -> None:
    """Raise DeviceError where the GPU no longer answers: an illegal access takes the context with it."""
    import torch

    try:
        torch.cuda.synchronize()
    except Exception as error:
        raise DeviceError(
            f"The GPU was lost by {by}: {_sentence(failure)}. What was timed before is kept; run again."
        ) from error


def _sentence(failure: Exception, *told: str) -> str:
    """The first line of what went wrong, and what was warned of before."""
    lines = str(failure).splitlines()
    said = lines[0] if lines else repr(failure)
    return "; ".join(filter(None, dict.fromkeys((said, *told))))[:200]


def _reason(told: warnings.WarningMessage) -> str:
    """What torch warns of where it has no kernel: why, and that the backends nobody asked for are switched off."""
    said = str(told.message).partition(" (Triggered internally")[0].strip()
    return "" if any(each in said for each in ("not used because", "runtime disabled")) else " ".join(said.split())


def _figure(value: float) -> float:
    """Six digits: the timer has four or five."""
    return float(f"{value:.6g}")
