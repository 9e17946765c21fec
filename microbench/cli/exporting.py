"""The verb `export`: runs as one table for other programs, CSV or Parquet."""

import json as words
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from microbench import console
from microbench.console import Json, Probes
from microbench.console.si import counted
from microbench.errors import DataError, EnvironmentLacks, InputError

if TYPE_CHECKING:
    import pandas as pd


def export(
    gpu: Annotated[str | None, typer.Argument(help="One machine; all that have runs by default.")] = None,
    csv: Annotated[Path | None, typer.Option("--csv", help="Write a CSV file, its folder with it.")] = None,
    parquet: Annotated[Path | None, typer.Option("--parquet", help="The same as Parquet (needs pyarrow).")] = None,
    only: Probes = None,
    json: Json = False,
) -> None:
    """Write every row of the runs, with driver, board and time beside it, for pandas, R, DuckDB or a spreadsheet."""
    if (csv is None) == (parquet is None):
        raise InputError("Name one file to write: --csv FILE or --parquet FILE.")
    if parquet is not None and find_spec("pyarrow") is None:
        raise EnvironmentLacks("Parquet needs pyarrow, which is not installed: `pip install pyarrow`, or use --csv.")
    from microbench.results.frame import load_runs

    _require_known(only or [])
    rows = flat(load_runs(gpu, only or None))
    file = csv or parquet
    assert file is not None
    made = console.made(file.parent)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        if csv is not None:
            rows.to_csv(file, index=False)
        else:
            rows.to_parquet(file, index=False)
    except OSError as error:
        raise DataError(f"Could not write {console.near(file)}: {error.strerror}; name another file.") from error
    boards = sorted({(str(kind), str(board)) for kind, board in zip(rows["gpu"], rows["board"], strict=True)})
    value = {"file": str(file), "rows": len(rows), "columns": list(rows.columns), "boards": boards}
    said = f"Wrote {counted(len(rows), 'row')} of {counted(len(boards), 'board')} to {console.near(file)}."
    console.show(json, value, said, *made)


def _require_known(names: list[str]) -> None:
    """Raise UnknownProbe for a name that neither the suite nor a run knows: probes may lie outside of the tree."""
    from microbench.probes import discover, named
    from microbench.results.record import read_all

    outside = set(names).difference(probe.name for probe in discover()) if names else set()
    for name in sorted(outside):
        if not any(run.records for run in read_all(None, {name})[0]):
            named(name)


def flat(rows: "pd.DataFrame") -> "pd.DataFrame":
    """The same with one type a column: flags joined by '; ', a map as JSON, an axis of words and numbers as text."""
    out = rows.copy()
    for name in out.columns:
        if name == "flags":
            out[name] = ["; ".join(flags) for flags in out[name]]
        elif name == "values":
            out[name] = [words.dumps(value) if isinstance(value, tuple) else None for value in out[name]]
        elif out[name].dtype == object and len({type(value) for value in out[name].dropna()}) > 1:
            out[name] = [_text(value) for value in out[name]]
    return out


def _text(value: Any) -> str | None:
    return None if value is None or value != value else str(value)
