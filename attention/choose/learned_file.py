"""The file boundary of what timings teach: corrections/<gpu>.json beside the profiles, and in the user's cache.

It is derived, like a profile: `smscope profile` writes it again, and who finds it out of date derives it for himself.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from attention.choose.calibration import Duel
from attention.choose.corrections import Corrections
from attention.choose.kinds import Kind
from attention.choose.prediction import Efficiency
from attention.choose.sized import Place, Sized
from attention.variant import Config
from microbench import faults, files, paths
from microbench.errors import DataError
from microbench.files import Frozen

FOLDER = "corrections"
HEAD = 256  # bytes of a file that hold its key
BEGINNING, END = b'{"key":', b"}"
LAST = 8  # bytes that hold its end, and a line's


@dataclass(frozen=True)
class Learned:
    """What one machine's timings teach, and by file name what is wrong with some of their lines.

    `compares`: our kernels and torch's were both timed. `campaigns`: the bytes of each campaign's file that counted.
    """

    corrections: Corrections = field(default_factory=Corrections)
    duels: tuple[Duel, ...] = ()
    compares: bool = False
    left_out: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    campaigns: Mapping[str, int] = field(default_factory=dict)


Figures = tuple[float, int, float]  # an efficiency, the problems that it is the median of, seconds of overhead
# One configuration: its values by the key's axes; the number of each place, an efficiency there, and of how many
# problems; seconds of overhead.
Seen = tuple[tuple[int, ...], tuple[int, ...], tuple[float, ...], tuple[int, ...], float]


class Exact(Frozen):
    """Efficiencies of one variant's configurations at a head dim as padded and for a kind of problem, by sizes."""

    variant: str
    axes: tuple[str, ...]
    head_dim: int
    kind: Kind
    seen: tuple[Seen, ...]


class Width(Frozen):
    """The efficiency of one configuration at a head dim, for one, few or many queries."""

    variant_and_queries: str
    config: dict[str, int]
    head_dim: int
    figures: Figures


class File(Frozen):
    """What was learned of one machine, and the key of what it was learned from."""

    key: str  # first, so that a file that is out of date is not parsed
    schema_version: Literal[4]
    gpu: str
    compares: bool
    left_out: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    campaigns: dict[str, int] = Field(default_factory=dict)
    places: tuple[Place, ...]
    exact: tuple[Exact, ...]
    of_width: tuple[Width, ...]
    of_class: dict[str, Figures]
    duels: tuple[Duel, ...] = ()


def read(gpu: str, key: str) -> Learned | None:
    """What was learned from what `key` stands for, or a key that begins so; None where no file holds that.

    A DataWarning names a file beside the profiles that cannot be read.
    """
    for file in places(gpu, tuple(paths.data_roots())):
        text = _bytes(file)
        if text is None:
            continue
        is_current = key.encode() in text[:HEAD]
        if is_current or _is_plainly_none(text):
            found = _parsed(file, text)
            if found is not None and is_current:
                return _learned(found)
    with suppress(OSError, ValidationError):
        text = (_kept() / f"{gpu}.json").read_bytes()
        if key.encode() in text[:HEAD]:
            return _learned(File.model_validate_json(text))
    return None


def campaigns_of(gpu: str) -> Mapping[str, int]:
    """The bytes of each campaign's file that counted when what lies beside the profiles was written."""
    for file in places(gpu, tuple(paths.data_roots())):
        text = _bytes(file)
        found = None if text is None else _parsed(file, text)
        if found is not None:
            return found.campaigns
    return {}


def _bytes(file: Path) -> bytes | None:
    """None where there is none, or none that can be read: a DataWarning says so."""
    try:
        return file.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        _name(file, error.strerror or str(error))
        return None


def _is_plainly_none(text: bytes) -> bool:
    """What can be said without parsing it, which takes 12 ms that a first call does not pay for one out of date."""
    return not (text.startswith(BEGINNING) and text[-LAST:].rstrip().endswith(END))


def _parsed(file: Path, text: bytes) -> File | None:
    """None where it is none of these files: predictions follow without it, and a DataWarning says so."""
    try:
        return File.model_validate_json(text)
    except ValidationError as error:
        _name(file, faults.told(error))
        return None


def _name(file: Path, why: str) -> None:
    faults.leave_out(file, [f"{why}; `{paths.typed('profile')}` writes it again"])


@cache
def places(gpu: str, roots: tuple[Path, ...]) -> tuple[Path, ...]:
    """Where it would lie in these folders of data."""
    return tuple(root / FOLDER / f"{gpu}.json" for root in roots)


def keep(gpu: str, key: str, learned: Learned) -> None:
    """Write it for the next process of this user, whole or not at all; where that fails, it is derived again."""
    with suppress(OSError):
        files.put(_kept() / f"{gpu}.json", _file(gpu, key, learned).model_dump_json(exclude_defaults=True))


def write(gpu: str, key: str, learned: Learned) -> Path:
    """Put it beside the profiles, whole or not at all. Raises DataError."""
    path = paths.writable_data() / FOLDER / f"{gpu}.json"
    try:
        files.put(path, _file(gpu, key, learned).model_dump_json(exclude_defaults=True) + "\n")
    except OSError as error:
        again = f"`{paths.typed('profile')}` writes it again{paths.moved(path)}"
        raise DataError(f"Could not write {path.name}: {error.strerror}; {again}.") from error
    return path


def _kept() -> Path:
    return paths.cache() / FOLDER


def _file(gpu: str, key: str, learned: Learned) -> File:
    known = learned.corrections
    return File(
        key=key,
        schema_version=4,
        gpu=gpu,
        compares=learned.compares,
        left_out=dict(learned.left_out),
        campaigns=dict(learned.campaigns),
        places=known.places,
        exact=tuple(_exact(known)),
        of_width=tuple(
            Width(variant_and_queries=crowd, config=dict(config.values), head_dim=width, figures=_figures(found))
            for (crowd, config, width), found in known.of_width.items()
        ),
        of_class={name: _figures(found) for name, found in known.of_class.items()},
        duels=learned.duels,
    )


def _exact(known: Corrections) -> Iterator[Exact]:
    seen: dict[tuple[str, tuple[str, ...], int, Kind], list[Seen]] = {}
    for (variant, config, width, kind), sized in known.exact.items():
        axes, values = tuple(axis for axis, _ in config.values), tuple(value for _, value in config.values)
        found = values, sized.at, sized.values, sized.timings, sized.overhead_seconds
        seen.setdefault((variant, axes, width, kind), []).append(found)
    for (variant, axes, width, kind), of in seen.items():
        yield Exact(variant=variant, axes=axes, head_dim=width, kind=kind, seen=tuple(of))


def _figures(found: Efficiency) -> Figures:
    return found.value, found.timings, found.overhead_seconds


def _learned(file: File) -> Learned:
    configs: dict[tuple[tuple[str, int], ...], Config] = {}
    numbers: dict[tuple[int, ...], tuple[int, ...]] = {}

    def config(values: tuple[tuple[str, int], ...]) -> Config:
        return configs.setdefault(values, Config(values))

    def alike(found: tuple[int, ...]) -> tuple[int, ...]:
        """One object for what most configurations of a variant share."""
        return numbers.setdefault(found, found)

    known = Corrections(
        {
            (each.variant, config(tuple(zip(each.axes, values, strict=True))), each.head_dim, each.kind): Sized(
                alike(at), found, alike(timings), overhead
            )
            for each in file.exact
            for values, at, found, timings, overhead in each.seen
        },
        {
            (each.variant_and_queries, config(tuple(each.config.items())), each.head_dim): _efficiency(each.figures)
            for each in file.of_width
        },
        {name: _efficiency(figures) for name, figures in file.of_class.items()},
        file.places,
    )
    return Learned(known, file.duels, file.compares, file.left_out, file.campaigns)


def _efficiency(figures: Figures) -> Efficiency:
    value, timings, overhead = figures
    return Efficiency(value, timings, overhead_seconds=overhead)
