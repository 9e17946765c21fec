"""From a worker's answer to records: a number becomes a result only where it is finite, declared and possible."""

import math
from collections.abc import Sequence
from typing import Any

from microbench.errors import sentence
from microbench.machine.arch import Machine
from microbench.point import Values
from microbench.probe import Metric, Sample, breaks
from microbench.results.record import BoundStatus, Record, Status
from microbench.run.plan import Task
from microbench.run.wire import Answer


def refused(run_id: str, task: Task, status: Status, reason: str) -> Record:
    return _record(run_id, task, task.probe.metrics[0], status=status, reason=reason)


def failed(run_id: str, task: Task, reason: str, flags: Sequence[str] = ()) -> list[Record]:
    """A `failed` record for every metric that the point should have given."""
    metrics = task.probe.metrics_at(task.point)
    return [_record(run_id, task, m, status="failed", reason=reason, flags=tuple(flags)) for m in metrics]


def judged(run_id: str, task: Task, machine: Machine, answer: Answer) -> list[Record]:
    if answer.reason is not None:
        return failed(run_id, task, answer.reason, answer.flags)
    given = {sample.metric: sample for sample in answer.samples}
    metrics = task.probe.metrics_at(task.point)
    strays = sorted(set(given) - {metric.name for metric in metrics})
    if strays:
        return failed(run_id, task, f"the probe gave {', '.join(strays)}, which it does not declare", answer.flags)
    return [_judge(run_id, task, machine, answer, m, given.get(m.name)) for m in metrics]


def _judge(run_id: str, task: Task, machine: Machine, answer: Answer, metric: Metric, sample: Sample | None) -> Record:
    if sample is None:
        return _record(run_id, task, metric, status="failed", reason=f"the probe gave no {metric.name}")
    flags = tuple(dict.fromkeys((*sample.flags, *answer.flags, *_clock_flags(machine, sample))))
    if not all(map(math.isfinite, (sample.value, sample.low, sample.high))):
        text = f"{metric.name} is not a number: {sample.value} in [{sample.low}, {sample.high}]"
        return _record(run_id, task, metric, status="failed", reason=text, flags=flags)
    try:
        lower, upper = metric.bound.at(machine, task.point)
    except Exception as error:  # a bound is a probe's own function of machine and point
        text = f"the bound of {metric.name} cannot be computed: {sentence(error, task.probe.file)}"
        return _record(run_id, task, metric, status="failed", reason=text, flags=flags)
    reason = _reason(metric, sample, lower, upper)
    throttled = any(flag.startswith("throttled") for flag in flags)
    return _record(
        run_id,
        task,
        metric,
        status="failed" if reason else "throttled" if throttled else "ok",
        reason=reason,
        value=sample.value,
        low=sample.low,
        high=sample.high,
        n=sample.n,
        clock_mhz=_finite(sample.clock_mhz),
        bound_lower=lower,
        bound_upper=upper,
        bound=_bound_status(sample.value, lower, upper),
        flags=flags,
        cubin_sha256=answer.cubin_sha256,
        registers=answer.registers,
        values=_map(sample.values),
    )


def _clock_flags(machine: Machine, sample: Sample) -> tuple[str, ...]:
    """After a load that hit the power cap an H100 ran at up to 2097 MHz for a second, where its driver admits 1980."""
    if machine.clock_hz is None or sample.clock_mhz is None or machine.arch.name == "host":
        return ()
    return ("clock above the driver's maximum",) if sample.clock_mhz * 1e6 > 1.01 * machine.clock_hz else ()


def _reason(metric: Metric, sample: Sample, lower: float | None, upper: float | None) -> str | None:
    if breaks(sample.value, lower, upper):
        limits = ", ".join(
            f"{side} {limit:g}" for side, limit in (("at least", lower), ("at most", upper)) if limit is not None
        )
        return f"{sample.value:g} {metric.unit} breaks its bound ({limits} {metric.unit}: {metric.bound.why})"
    if not sample.low <= sample.value <= sample.high:
        return f"its interval [{sample.low:g}, {sample.high:g}] does not hold its value {sample.value:g} {metric.unit}"
    return None


def _bound_status(value: float, lower: float | None, upper: float | None) -> BoundStatus:
    if lower is None and upper is None:
        return "unknown"
    return "violated" if breaks(value, lower, upper) else "ok"


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _map(values: Values | None) -> Values | None:
    """A map with None in the place of what is no number: JSON has no NaN."""
    if values is None:
        return None
    return tuple(tuple(map(_finite, each)) if isinstance(each, tuple) else _finite(each) for each in values)  # type: ignore[return-value]


def _record(run_id: str, task: Task, metric: Metric, **fields: Any) -> Record:
    probe, point = task.probe, dict(task.point.values)
    identity = {"run_id": run_id, "campaign": task.campaign, "probe": probe.name, "family": probe.family}
    asked = {"method": task.method, "point": point, "metric": metric.name, "unit": metric.unit}
    return Record.model_validate(identity | asked | fields)
