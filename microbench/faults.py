"""What is wrong with data that only advise: each fault is named once, and what is faulty is left out.

A profile, or a timing on file, decides how fast a call is, never whether it runs.
"""

import warnings
from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError

from microbench.errors import DataWarning

SHOWN = 5  # of one file

_said: set[Path] = set()


def leave_out(file: Path, faults: Sequence[str]) -> None:
    """Warn of what is left out of a file, once in a process and file."""
    if not faults or file in _said:
        return
    _said.add(file)
    more = f"; and {len(faults) - SHOWN} more" if len(faults) > SHOWN else ""
    text = "; ".join(fault.removesuffix(".") for fault in faults[:SHOWN])
    where = f"{file.parent.name}/{file.name}"
    warnings.warn(f"{where}: {text}{more}. This is left out, the rest counts.", DataWarning, stacklevel=3)


def forget() -> None:
    _said.clear()


def told(error: ValidationError) -> str:
    """What is wrong with a whole file, in our words and without a full stop: who sent it knows no pydantic."""
    first = error.errors()[0]
    field = ".".join(map(str, first["loc"]))
    if first["type"] == "json_invalid":
        return "it is no JSON, or was cut short"
    if not field:
        return "it holds something else"
    if first["type"] == "missing":
        return f"it lacks {field}"
    if first["type"] == "extra_forbidden":
        return f"it has {field}, which this release does not know"
    return f"its {field} is none that this release reads"


def first_of(error: ValidationError, nowhere: str = "") -> str:
    """Field and reason of the first fault; `nowhere` stands for the field where it is the whole that is at fault."""
    first = error.errors()[0]
    return ": ".join(filter(None, (".".join(map(str, first["loc"])) or nowhere, first["msg"])))
