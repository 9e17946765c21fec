"""The file boundary of what timings teach: corrections/<gpu>.json beside the profiles, and in the user's cache.

It is derived, like a profile: `smscope profile` writes it again, and who finds it out of date derives it for himself.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from attention.choose.calibration import Duel
from attention.choose.corrections import Corrections, Kind, Sized
from attention.choose.prediction import Efficiency
from attention.variant import Config
from microbench import files, paths
from microbench.errors import DataError
from microbench.files import Frozen

FOLDER = "corrections"
HEAD = 256  # bytes of a file that hold its key


@dataclass(frozen=True)
class Learned:
    """What one machine's timings teach, and by file name what is wrong with some of their lines.

    `compares`: our kernels and torch's were both timed.
    """

    corrections: Corrections = field(default_factory=Corrections)
    duels: tuple[Duel, ...] = ()
    compares: bool = False
    left_out: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


Figures = tuple[float, int, float]  # an efficiency, the timings that it is the median of, seconds of overhead


class Exact(Frozen):
    """Efficiencies of one configuration, head dim as padded and kind of problem, by octave of size."""

    variant: str
    config: dict[str, int]
    head_dim: int
    kind: Kind
    sizes: tuple[tuple[int, Figures], ...]


class Width(Frozen):
    """The efficiency of one configuration at a head dim, for one, few or many queries."""

    variant_and_queries: str
    config: dict[str, int]
    head_dim: int
    figures: Figures


class File(Frozen):
    """What was learned of one machine, and the key of what it was learned from."""

    key: str  # first, so that a file that is out of date is not parsed
    schema_version: Literal[2]
    gpu: str
    compares: bool
    left_out: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    exact: tuple[Exact, ...]
    of_width: tuple[Width, ...]
    of_class: dict[str, Figures]
    duels: tuple[Duel, ...] = ()


def read(gpu: str, key: str) -> Learned | None:
    """What was learned from what `key` stands for; None where no file holds that."""
    for folder in (*(root / FOLDER for root in paths.data_roots()), _kept()):
        with suppress(OSError, ValidationError):
            text = (folder / f"{gpu}.json").read_bytes()
            if key.encode() in text[:HEAD]:
                return _learned(File.model_validate_json(text))
    return None


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
        schema_version=2,
        gpu=gpu,
        compares=learned.compares,
        left_out=dict(learned.left_out),
        exact=tuple(
            Exact(
                variant=variant,
                config=dict(config.values),
                head_dim=width,
                kind=kind,
                sizes=tuple((each.octave, _figures(each.efficiency)) for each in sizes),
            )
            for (variant, config, width, kind), sizes in known.exact.items()
        ),
        of_width=tuple(
            Width(variant_and_queries=crowd, config=dict(config.values), head_dim=width, figures=_figures(found))
            for (crowd, config, width), found in known.of_width.items()
        ),
        of_class={name: _figures(found) for name, found in known.of_class.items()},
        duels=learned.duels,
    )


def _figures(found: Efficiency) -> Figures:
    return found.value, found.timings, found.overhead_seconds


def _learned(file: File) -> Learned:
    configs: dict[tuple[tuple[str, int], ...], Config] = {}

    def config(axes: dict[str, int]) -> Config:
        values = tuple(axes.items())
        return configs.setdefault(values, Config(values))

    known = Corrections(
        {
            (each.variant, config(each.config), each.head_dim, each.kind): tuple(
                Sized(octave, Efficiency(value, timings, near=True, overhead_seconds=overhead))
                for octave, (value, timings, overhead) in each.sizes
            )
            for each in file.exact
        },
        {
            (each.variant_and_queries, config(each.config), each.head_dim): _efficiency(each.figures)
            for each in file.of_width
        },
        {name: _efficiency(figures) for name, figures in file.of_class.items()},
    )
    return Learned(known, file.duels, file.compares, dict(file.left_out))


def _efficiency(figures: Figures) -> Efficiency:
    value, timings, overhead = figures
    return Efficiency(value, timings, overhead_seconds=overhead)
