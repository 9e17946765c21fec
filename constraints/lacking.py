"""What a lane asks for, and what the Python that runs this lacks of it.

Standard library, and the copy of `packaging` that pip carries: an existing environment may hold nothing else.
"""

import ctypes.util
import importlib.metadata
import importlib.util
import os
import re
import shutil
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from packaging.requirements import Requirement
else:
    try:
        from packaging.requirements import Requirement
    except ImportError:
        try:
            from pip._vendor.packaging.requirements import Requirement
        except ImportError:
            sys.exit("smscope: this Python has neither pip nor packaging; install pip there, or leave PYTHON= out.")

HERE = Path(__file__).resolve().parent


def tables() -> dict[str, Any]:
    """lanes.toml."""
    return tomllib.loads((HERE / "lanes.toml").read_text())


def project() -> dict[str, Any]:
    """The [project] table of pyproject.toml."""
    return dict(tomllib.loads((HERE.parent / "pyproject.toml").read_text())["project"])


def steps() -> list[str]:
    """The steps in order, each holding what the ones before it hold."""
    return list(tables()["host"]["extras"])


def requirements(extras: list[str]) -> Iterator[Requirement]:
    """Every direct requirement of these extras that applies to this Python, an extra within an extra opened up."""
    facts = project()
    waiting, seen = list(extras), set[str]()
    yield from _applying(facts["dependencies"])
    while waiting:
        extra = waiting.pop()
        if extra in seen:
            continue
        seen.add(extra)
        for requirement in _applying(facts["optional-dependencies"][extra]):
            if requirement.name == facts["name"]:
                waiting += sorted(requirement.extras)
            else:
                yield requirement


def pins(lane: str) -> dict[str, str]:
    """The exact version that constraints/<lane>.txt gives each distribution; the newest where it depends on Python."""
    lines = (re.split(r"[#;]", line)[0].strip() for line in (HERE / f"{lane}.txt").read_text().splitlines())
    return {canonical(name): version for name, _, version in (line.partition("==") for line in lines if line)}


def lacking(extras: list[str]) -> list[str]:
    """Each requirement that this Python does not meet, as one phrase."""
    stand_in: dict[str, list[str]] = tables()["stand_in"]
    lacks = []
    for requirement in requirements(extras):
        found = _version(requirement.name)
        if found is None:
            if not any(_is_here(other) for other in stand_in.get(requirement.name, [])):
                lacks.append(str(requirement).partition(";")[0].strip())
        elif not requirement.specifier.contains(found, prereleases=True):
            lacks.append(f"{requirement.name}{requirement.specifier} (it has {found})")
    return sorted(set(lacks))


def _applying(lines: list[str]) -> Iterator[Requirement]:
    for line in lines:
        requirement = Requirement(line)
        if requirement.marker is None or requirement.marker.evaluate():
            yield requirement


def canonical(name: str) -> str:
    """A distribution's name as indexes compare it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _is_here(other: str) -> bool:
    kind, _, name = other.partition(":")
    if kind == "distribution":
        return _version(name) is not None
    if kind == "module":
        return importlib.util.find_spec(name) is not None
    if kind == "library":
        return ctypes.util.find_library(name) is not None
    if kind == "program":
        return shutil.which(name) is not None
    roots = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
    return any(Path(root, name).exists() for root in roots if root)
