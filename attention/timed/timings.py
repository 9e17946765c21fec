"""The file boundary of attention timings: data/attention/<gpu>.jsonl, one measured candidate a line, append-only."""

from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from pydantic import ValidationError

from attention.timed import timing_faults
from attention.timed.observed import Observed
from attention.timed.timing import Timing
from microbench import paths
from microbench.files import append


def write(timing: Timing, kind: str = "") -> Path:
    """Append one timing to its machine's file, a whole line or nothing. Raises DataError.

    `kind` names another file of the same machine ('ladder'), which corrects no prediction.
    """
    path = paths.writable_data() / "attention" / f"{timing.gpu}{kind and '-'}{kind}.jsonl"
    append(path, timing)
    return path


def read(gpu: str) -> tuple[tuple[Timing, ...], tuple[str, ...]]:
    """Every sound timing of a machine, and a sentence for each line that is none."""
    timings: list[Timing] = []
    problems: list[str] = []
    for file in files(gpu):
        sound, wrong = judged(file)
        timings += sound.values()
        problems += [
            f"{file.name}, line {line}: {why}; this line is left out, the rest is loaded."
            for line, why in wrong.items()
        ]
    return tuple(timings), tuple(problems)


def best_known(rows: Iterable[Timing]) -> Iterator[Timing]:
    """Rows without those of version 1, whose clock nobody knows, where one of version 2 is of the same key."""
    rows = tuple(rows)
    known = {row.key for row in rows if row.schema_version == 2}
    return (row for row in rows if row.schema_version == 2 or row.key not in known)


def judged(file: Path) -> tuple[dict[int, Timing], dict[int, str]]:
    """The sound timings of one file, and what is wrong with the others, by line."""
    sound: dict[int, Timing] = {}
    wrong: dict[int, str] = {}
    try:
        lines = file.read_bytes().decode("utf-8", errors="replace").split("\n")
    except OSError as error:
        return sound, {1: f"the file cannot be read ({error.strerror})"}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            timing = Timing.model_validate_json(line)
            why = timing_faults.of_timing(timing, file)
        except ValidationError as error:
            why = timing_faults.why_unreadable(line, error)
        if why:
            wrong[number] = why.removesuffix(".")
        else:
            sound[number] = timing
    return sound, wrong


def observed(file: Path) -> tuple[list[tuple[int, Observed]], dict[int, str]]:
    """The best known timings of one file, each with its line's number, and what is wrong with the other lines."""
    sound, wrong = judged(file)
    counted = set(map(id, best_known(sound.values())))
    return [(line, of(timing)) for line, timing in sound.items() if id(timing) in counted], wrong


def of(timing: Timing) -> Observed:
    """What a line says."""
    return Observed(
        timing.variant,
        timing.config,
        timing.passes,
        timing.problem,
        *(timing.seconds, timing.low, timing.high),
        rows=timing.lengths,
        text=timing.source_sha256,
        cubins=timing.cubins,
        flags=timing.flags,
        run=timing.run,
        packages=timing.packages,
        l2_read=timing.l2_read,
        fetch_bytes=timing.fetch_bytes,
    )


def files(gpu: str) -> list[Path]:
    """Where the timings of a machine lie, the shipped ones first."""
    return [file for file in places(gpu, tuple(paths.data_roots())) if file.is_file()]


@cache
def places(gpu: str, roots: tuple[Path, ...]) -> tuple[Path, ...]:
    """Where they would lie in these folders of data. Each choice asks, and a path takes as long as a look at a file."""
    return tuple(root / "attention" / f"{gpu}.jsonl" for root in roots)
