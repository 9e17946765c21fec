"""A file that somebody sent: the run in it goes to data/runs, and the profile of that kind of GPU follows from it.

It comes from a stranger. So each run in it must be whole and of the very board that the file is of, it must lie where
its own first line says, and nothing that is there already is written over.
"""

import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from microbench import paths
from microbench.errors import DataError
from microbench.files import put
from microbench.probes import discover
from microbench.results import derive
from microbench.results import record as runs
from smscope.verified import record
from smscope.verified.packed import PackedRun, unpack
from smscope.verified.page import page
from smscope.verified.record import Record, Who

# No other names are ever made, and these become those of a folder and a file.
SLUG = re.compile(r"[a-z0-9][a-z0-9.-]*")
ASK = "nothing of it is taken. Ask for that file again, or for one more `smscope verify` there"
RUN_ID = re.compile(r"[0-9]{8}T[0-9]{6}Z-[0-9a-f]{6}")


@dataclass(frozen=True)
class Received:
    """What came of a file: its place in data/verification, its runs in data/runs, and the profile of its kind."""

    gpu: str
    file: Path
    runs: tuple[Path, ...]
    profile: Path
    constants: int
    problems: tuple[str, ...]


def receive(sent: Path) -> Received:
    """Put all of it in its place. Raises DataError, which leaves everything as it was, where any of it cannot be so."""
    told = record.read(sent, ASK)
    if not SLUG.fullmatch(told.who.gpu):
        raise DataError(f"{sent.name} is of no kind of GPU that can have a folder ({told.who.gpu!r}).")
    if not RUN_ID.fullmatch(told.run_id):
        raise DataError(f"{sent.name} is of no run that can have a file ({told.run_id!r}).")
    if not told.measured:
        raise DataError(
            f"{sent.name} carries no run, so no profile follows from it: its first part was not done, or an earlier "
            "release wrote it; ask for one more `smscope verify` there."
        )
    placed = dict(_runs(sent, told))
    file = record.file_of(told)
    _no_other_there(sent, file, told)
    for path, data in placed.items():
        _put(path, data)
    _put(file, sent.read_bytes())
    _put(file.with_suffix(".md"), page(told, file).encode())
    derived = derive.derive(told.who.gpu, discover(), received=tuple(placed))
    profile = derive.write(derived.profile)
    return Received(told.who.gpu, file, tuple(placed), profile, len(derived.profile.constants), derived.problems)


def _runs(sent: Path, told: Record) -> Iterator[tuple[Path, bytes]]:
    """Where each run goes, and its bytes. Raises DataError."""
    for packed in told.measured:
        data = unpack(packed)
        if why := _fault(packed, data, told.who):
            raise DataError(f"The run {packed.run} in {sent.name} {why}, so nothing of it is taken.")
        path = paths.writable_data() / "runs" / told.who.gpu / f"{packed.run}.jsonl"
        if path.exists() and path.read_bytes() != data:
            raise DataError(f"{path.name} lies here with other rows than {sent.name} has; runs are never changed.")
        yield path, data


def _fault(packed: PackedRun, data: bytes, who: Who) -> str:
    """What keeps a run from being this board's whole run; '' where nothing does."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"{packed.run}.jsonl"
        file.write_bytes(data)
        try:
            run = runs.read(file)
        except DataError:
            return "cannot be read"
    of = run.environment
    if (of.gpu, of.arch, of.uuid_sha256, of.run_id) != (who.gpu, who.arch, who.uuid_sha256, packed.run):
        return f"is of another board or run ({of.gpu}, {of.board or 'unknown'}, {of.run_id})"
    if run.problems:
        return f"has {len(run.problems)} lines that cannot be read"
    return "" if run.finished else "did not come to its end"


def _no_other_there(sent: Path, file: Path, told: Record) -> None:
    """Raises DataError where that run's file lies here with parts that the sent one has not."""
    if file.exists() and not record.read(file).decided <= told.decided:
        raise DataError(f"{file.name} lies here with parts that {sent.name} has not; take the later of the two.")


def _put(path: Path, data: bytes) -> None:
    if path.exists() and path.read_bytes() == data:
        return
    try:
        put(path, data)
    except OSError as error:
        raise DataError(f"Could not write {path.name}: {error.strerror}{paths.moved(path)}.") from error
