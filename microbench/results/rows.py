"""How a run's file holds its records: a line a point, and nothing that its first line, or a default, says already.

    {"campaign":0,"probe":"l1_size","point":[1024,8192],"n":15,"metrics":{"latency_cycles":{"value":32.01}, ...}}

What the metrics of a point share stands once. A point is the values of its probe's axes, in the header's order. Left
out are: the run's id, family and unit (the header has them), the method where it is the machine's first, the status
`ok`, an interval that is its value, and whether the bound holds where it does. Lines of schema 1 hold one record each
and name everything; `expand` reads both.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

Json = dict[str, Any]

# One in 2e9: a value comes back within 1e-9 of itself.
DIGITS = 10
SECONDS_DIGITS = 4

_IDENTITY = ("campaign", "probe", "method", "point")
# What is a default where it is not said, beside None and an empty list; the rest depends on the header or the row.
_USUAL = {"status": "ok", "n": 0}
_EXACT = ("point", "flags", "reason")


@dataclass(frozen=True)
class Axes:
    """What the header says of a probe: its family, the names of its axes in order, and each metric's unit."""

    family: str
    axes: tuple[str, ...]
    units: Mapping[str, str]


@dataclass(frozen=True)
class Header:
    """What the first line of a run says of all others."""

    run_id: str
    method: str
    probes: Mapping[str, Axes]


def lines(records: Sequence[Json], header: Header) -> Iterator[Json]:
    """The lines of these records, each with every field; those of a point must stand together."""
    for _, group in groupby(records, key=lambda row: [*map(row.get, _IDENTITY)]):
        rows = [_short(row, header) for row in group]
        metrics = [row.pop("metric") for row in rows]
        if len(rows) == 1:
            yield {**rows[0], "metric": metrics[0]}
            continue
        shared = {key: value for key, value in rows[0].items() if all(key in row and row[key] == value for row in rows)}
        own = ({key: value for key, value in row.items() if key not in shared} for row in rows)
        yield {**shared, "metrics": dict(zip(metrics, own, strict=True))}


def expand(line: Json, header: Header | None) -> Iterator[Json]:
    """The records of one line, as the model takes them. What is missing stays so, for the model to name."""
    metrics = line.get("metrics")
    if not isinstance(metrics, dict):
        yield _whole(line, header)
        return
    shared = {key: value for key, value in line.items() if key != "metrics"}
    for metric, own in metrics.items():
        yield _whole({**shared, "metric": metric, **(own if isinstance(own, dict) else {"value": own})}, header)


def _short(row: Json, header: Header) -> Json:
    told, kept = header.probes.get(row["probe"]), dict(row)
    del kept["kind"]
    del kept["run_id"]
    _drop(kept, "method", header.method)
    if told is not None:
        _drop(kept, "family", told.family)
        _drop(kept, "unit", told.units.get(row["metric"]))
        if tuple(row["point"]) == told.axes:
            kept["point"] = list(row["point"].values())
    for end in ("low", "high"):
        _drop(kept, end, row["value"])
    _drop(kept, "bound", _held(row))
    return {
        key: _digits(key, value)
        for key, value in kept.items()
        if value is not None and value != _USUAL.get(key) and value not in ((), [], {})
    }


def _whole(line: Json, header: Header | None) -> Json:
    if header is None or "run_id" in line:
        return line  # it names everything
    row = {"run_id": header.run_id, "method": header.method, "status": "ok", **line}
    told = header.probes.get(str(row.get("probe")))
    if told is not None:
        row.setdefault("family", told.family)
        if (unit := told.units.get(str(row.get("metric")))) is not None:
            row.setdefault("unit", unit)
        if isinstance(row.get("point"), list) and len(row["point"]) == len(told.axes):
            row["point"] = dict(zip(told.axes, row["point"], strict=True))
    if row.get("value") is not None:
        row.setdefault("low", row["value"])
        row.setdefault("high", row["value"])
    row.setdefault("bound", _held(row))
    return row


def _held(row: Json) -> str:
    """What a bound is where nothing else is said of it."""
    return "unknown" if row.get("bound_lower") is None and row.get("bound_upper") is None else "ok"


def _drop(row: Json, key: str, usual: object) -> None:
    if row[key] == usual:
        del row[key]


def _digits(key: str, value: Any) -> Any:
    if key in _EXACT:
        return value
    if isinstance(value, (list, tuple)):
        return [_digits(key, each) for each in value]
    if not isinstance(value, float):
        return value
    short = float(f"{value:.{SECONDS_DIGITS if key == 'seconds' else DIGITS}g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short
