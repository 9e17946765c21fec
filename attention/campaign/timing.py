"""One problem on a GPU: every configuration checked, captured, and timed in turns with the others.

A configuration that takes more than FAR times the best one's first samples gets no more of them: it is on file as slow
as it is, and no second of the GPU is spent on knowing better. The timer is microbench.measure.alternate: from a cold
L2, the order drawn anew each round, with the SM clock beside each sample and the board's power beside each round.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from attention.campaign.plan import SAMPLES, Job
from attention.campaign.rows import TileTiming
from attention.compare.graphed import Graphed
from attention.kernels.launch.loaded import cubin_of
from attention.oracle.reference import Comparison
from attention.timed.timing import STEPS
from attention.variant import Config, Variant
from microbench.errors import DeviceError
from microbench.machine.arch import by_name
from microbench.measure.alternate import alternate
from microbench.measure.timed import Timed

if TYPE_CHECKING:
    import torch

    from microbench.device.cuda import CudaDevice

FAR, LEAST = 3.0, 2
ENOUGH, ROUNDS_S = 5, 2.0  # samples of any other configuration at the least; seconds of one problem's samples


def timed(device: "CudaDevice", job: Job, seed: str) -> tuple[tuple[TileTiming, ...], tuple[str, ...]]:
    """Every configuration of a problem, and what disturbed the GPU meanwhile. Raises DeviceError where it is lost."""
    import torch

    try:
        found, calls = prepared(job, torch.device("cuda", torch.cuda.current_device()))
    except Exception as failure:  # memory that is not there, for inputs or their oracle
        _require_alive(failure)
        why = _sentence(failure)
        return tuple(_failed(variant, config, why) for variant, config in job.tiles), ()
    stream = torch.cuda.current_stream().cuda_stream
    samples = staged(device, {key: call.replay for key, call in calls.items()}, seed, stream)
    flags = sorted({flag for each in samples.values() for flag in each.flags})
    calls.clear()
    torch.cuda.empty_cache()
    return tuple(with_samples(tile, samples.get(key)) for key, tile in found.items()), tuple(flags)


def prepared(job: Job, here: "torch.device") -> tuple[dict[str, TileTiming], dict[str, Graphed]]:
    """Each configuration's line without samples, and the captured calls of those that are right."""
    import torch

    from attention.campaign import checked

    given = checked.inputs(job.posed, here)
    part = checked.part_of(job.posed, given)
    found: dict[str, TileTiming] = {}
    calls: dict[str, Graphed] = {}
    for variant, config in job.tiles:
        key = f"{variant.path} {config}"
        try:
            with torch.no_grad():
                call = _call(variant, config, job, given)
                error = part.judged(call())
                if error.ok:
                    calls[key] = Graphed(call)
                found[key] = _begun(variant, config, job, error, not error.ok or calls[key].captured)
        except Exception as failure:  # the others go on, where the GPU does
            _require_alive(failure)
            found[key] = _failed(variant, config, _sentence(failure))
    return found, calls


def _failed(variant: Variant, config: Config, why: str) -> TileTiming:
    return TileTiming(variant=variant.path, config=dict(config.values), failure=why)


def staged(
    device: "CudaDevice", calls: Mapping[str, Callable[[], Any]], seed: str, stream: int = 0
) -> dict[str, Timed]:
    """LEAST samples of every call, and more of those that are not FAR behind the best. Raises DeviceError."""
    if not calls:
        return {}
    first = alternate(device, calls, f"{seed} first", stream, LEAST)
    best = min(min(each.seconds) for each in first.values())
    near = {name: call for name, call in calls.items() if min(first[name].seconds) <= FAR * best}
    each_round = sum(min(first[name].seconds) for name in near)
    samples = max(ENOUGH, min(SAMPLES, int(ROUNDS_S / each_round)))
    more = alternate(device, near, f"{seed} more", stream, samples - LEAST)
    return {name: _joined(first[name], more[name]) if name in more else first[name] for name in calls}


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


def _begun(variant: Variant, config: Config, job: Job, error: Comparison, captured: bool) -> TileTiming:
    arch = by_name(job.arch)
    cubins = [cubin_of(variant.folder, step, arch) for step in variant.steps(job.posed.problem, config)]
    return TileTiming(
        variant=variant.path,
        config=dict(config.values),
        cubin_sha256=STEPS.join(cubin.sha256 for cubin in cubins),
        nvrtc=" ".join(sorted({cubin.nvrtc for cubin in cubins})),
        error=_figure(error.error) if math.isfinite(error.error) else None,
        allowed_error=_figure(error.allowed) if math.isfinite(error.allowed) else None,
        captured=captured,
        failure=None if error.ok else f"wrong: {error}",
    )


def _joined(first: Timed, more: Timed) -> Timed:
    return replace(
        first,
        seconds=first.seconds + more.seconds,
        clocks_mhz=first.clocks_mhz + more.clocks_mhz,
        power_w=first.power_w + more.power_w,
        flags=tuple(sorted({*first.flags, *more.flags})),
    )


def _require_alive(failure: Exception) -> None:
    """Raise DeviceError where the GPU no longer answers: an illegal access takes the context with it."""
    import torch

    try:
        torch.cuda.synchronize()
    except Exception as lost:
        raise DeviceError(
            f"The GPU was lost: {_sentence(failure)}. What was timed before is kept; run again."
        ) from lost


def _sentence(failure: Exception) -> str:
    lines = str(failure).splitlines()
    return lines[0][:200] if lines else repr(failure)


def _figure(value: float) -> float:
    """Six digits: the timer has four or five."""
    return float(f"{value:.6g}")
