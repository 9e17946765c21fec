"""Files, and rows of files, that are there whole or not at all, whatever ends the process or fills the disk."""

import errno
import os
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from microbench import paths
from microbench.errors import DataError


class Frozen(BaseModel):
    """Strict and immutable: an unknown field is an error, never dropped."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


def put(path: Path, data: str | bytes, mode: int = 0o644) -> None:
    """Write a file and its folder; who reads it meanwhile sees what was there before. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary: Path | None = None
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".new-", delete=False) as file:
            temporary = Path(file.name)
            file.write(data.encode() if isinstance(data, str) else data)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(mode)  # a temporary file is its owner's alone
        temporary.replace(path)
    except OSError:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        raise


Row = TypeVar("Row", bound=Frozen)


def text(rows: Iterable[Frozen]) -> str:
    """The text of a file that holds a row a line."""
    return "".join(f"{row.model_dump_json()}\n" for row in rows)


def read(file: Path, kind: type[Row], again: str) -> tuple[Row, ...]:
    """The rows of such a file. Raises DataError, which ends with what writes it `again`."""
    try:
        return tuple(kind.model_validate_json(line) for line in file.read_text("utf-8").splitlines())
    except (OSError, ValidationError) as error:
        raise DataError(f"{'/'.join(file.parts[-3:])} cannot be read ({error}); {again}.") from error


def append(path: Path, *rows: Frozen) -> None:
    """Write all these rows, a line each, or none: see append_lines."""
    append_lines(path, [row.model_dump_json(exclude_none=True) for row in rows])


def append_lines(path: Path, rows: Sequence[str]) -> None:
    """Write all these lines or none: a failed write is cut back to the last whole line, and raised as DataError."""
    lines = "".join(f"{row}\n" for row in rows).encode()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
    except OSError as error:
        where = f"{path.name} in {path.parent}"
        raise DataError(f"Could not open {where} for writing: {error.strerror}{paths.moved(path)}.") from error
    try:
        whole = os.fstat(descriptor).st_size
        # A power cut can leave half a line: it stays as it is, named by `read`, and must not swallow the next one.
        if whole and os.pread(descriptor, 1, whole - 1) != b"\n":
            lines = b"\n" + lines
        try:
            if os.write(descriptor, lines) != len(lines):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            os.ftruncate(descriptor, whole)
            raise DataError(
                f"Could not append to {path.name}: {error.strerror}. Free some space and run again; "
                "what was measured before is kept."
            ) from error
    finally:
        os.close(descriptor)
