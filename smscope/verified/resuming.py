"""Which run a call goes on with: the latest unfinished one that is of the same GPU, code and options."""

import secrets
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from microbench.errors import DataError, DataWarning
from smscope.verified.record import Record, Who, folder_of, read

WORDS = {
    "uuid_sha256": "board",
    "nvrtc": "NVRTC",
    "dirty": "state of the sources",
    "sources_sha256": "state of the sources",
    "quick": "--quick",
    "problems": "--problems",
    "seed": "--seed",
    "sanitize": "--sanitize",
}


@dataclass(frozen=True)
class Begun:
    """The record that this call adds to, and a sentence where an unfinished run was met."""

    record: Record
    said: str = ""


def kept(gpu: str) -> list[Record]:
    """Every run of a GPU on this machine, the oldest first."""
    return readable(folder_of(gpu).glob("*.json"))


def readable(files: Iterable[Path]) -> list[Record]:
    """The runs in these files, by name; a file that cannot be read is named by a DataWarning."""
    found = []
    for file in sorted(files):
        try:
            found.append(read(file))
        except DataError as error:
            warnings.warn(str(error), DataWarning, stacklevel=2)
    return found


def begin(who: Who, earlier: list[Record], fresh: bool = False) -> Begun:
    """Go on with the last unfinished run that is `who`'s, or with none: then say in what the last one differed."""
    unfinished = [record for record in earlier if not record.finished]
    if unfinished and not fresh:
        for record in reversed(unfinished):
            if record.who == who:
                going_on = record.model_copy(update={"calls": record.calls + 1})
                return Begun(going_on, f"Going on with run {record.run_id}: {_so_far(record)}.")
        last = unfinished[-1]
        return Begun(
            _new(who),
            f"The unfinished run {last.run_id} is of another {' and '.join(differing(last.who, who))}, so a new one "
            "begins; its file stays.",
        )
    return Begun(_new(who))


def differing(one: Who, other: Who) -> list[str]:
    """In what two runs are not the same, in words, without repetition."""
    names = [name for name in Who.model_fields if getattr(one, name) != getattr(other, name)]
    if "commit" in names:  # other sources are what another commit is
        names = [name for name in names if name not in ("sources_sha256", "dirty")]
    return list(dict.fromkeys(WORDS.get(name, name) for name in names))


def _so_far(record: Record) -> str:
    return f"{len(record.decided)} of {len(record.planned)} parts are done"


def _new(who: Who) -> Record:
    now = datetime.now(UTC)
    run_id = f"{now:%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"
    return Record(run_id=run_id, started_utc=now.isoformat(timespec="seconds"), who=who)
