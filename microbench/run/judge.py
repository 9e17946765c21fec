"""From a worker's answer to records: a number becomes a result only where it is finite, declared and possible."""

import math
from collections.abc import Sequence
from typing import Any

from microbench.bounds import LOOP_LIMITED, held, limited_by_its_loop
from microbench.errors import sentence
from microbench.machine.arch import Machine
from microbench.machine.clock import is_off
from microbench.point import Values
from microbench.probe import Metric, Sample
from microbench.results.record import Record, Status
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
    slowed = (LOOP_LIMITED,) if limited_by_its_loop(task.probe, metric, machine, task.point) else ()
    flags = tuple(dict.fromkeys((*sample.flags, *answer.flags, *slowed)))
    if not all(map(math.isfinite, (sample.value, sample.low, sample.high))):
        text = f"{metric.name} is not a number: {sample.value} in [{sample.low}, {sample.high}]"
        return _record(run_id, task, metric, status="failed", reason=text, flags=flags)
    try:
        bound = held(metric, sample.value, machine, task.point)
    except Exception as error:  # a bound is a probe's own function of machine and point
        text = f"the bound of {metric.name} cannot be computed: {sentence(error, task.probe.file)}"
        return _record(run_id, task, metric, status="failed", reason=text, flags=flags)
    reason = bound.why or _outside(metric, sample)
    nominal_hz = None if machine.arch.name == "host" else machine.clock_hz
    return _record(
        run_id,
        task,
        metric,
        status="failed" if reason else "off-clock" if is_off(_finite(sample.clock_mhz), nominal_hz) else "ok",
        reason=reason,
        value=sample.value,
        low=sample.low,
        high=sample.high,
        n=sample.n,
        clock_mhz=_finite(sample.clock_mhz),
        bound_lower=bound.lower,
        bound_upper=bound.upper,
        bound=bound.status,
        flags=flags,
        cubin_sha256=answer.cubin_sha256,
        registers=answer.registers,
        values=_map(sample.values),
    )


def _outside(metric: Metric, sample: Sample) -> str | None:
    if sample.low <= sample.value <= sample.high:
        return None
    return f"its interval [{sample.low:g}, {sample.high:g}] does not hold its value {sample.value:g} {metric.unit}"


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
