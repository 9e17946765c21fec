"""A probe's kernel with an edit in it: its source and headers in a folder of their own."""

import shutil
from dataclasses import replace
from pathlib import Path

from microbench.compile import HEADERS, Source
from microbench.machine.arch import by_name
from microbench.point import Point
from microbench.probe import Build, Probe
from microbench.probes import named
from tests.sabotage.edits.edit import KERNEL, Edit


def probe_of(edit: Edit, folder: Path) -> Probe:
    """The probe, with its edited source, whose headers lie beside it."""
    probe = named(edit.probe)
    shutil.copytree(HEADERS, folder, dirs_exist_ok=True)
    source = folder / probe.source.name
    shutil.copy(probe.source, source)
    for name, texts in edit.texts.items():
        file = source if name == KERNEL else folder / name
        text = file.read_text()
        for old, new in texts:
            assert old in text, (edit.what, old)
            text = text.replace(old, new)
        file.write_text(text)
    return replace(probe, source=source)


def point_of(edit: Edit) -> Point:
    return next(point for point in named(edit.probe).points() if point.matches(**edit.point))


def builds_of(edit: Edit, point: Point) -> tuple[Build, ...]:
    """The builds of a point with the edit's defines, each with the contract of the right kernel."""
    probe = named(edit.probe)
    assert probe.builds is not None
    return tuple(
        replace(build, defines=tuple((name, edit.defines.get(name, value)) for name, value in build.defines))
        for build in probe.builds(point)
    )


def build_of(edit: Edit) -> Build:
    """The one that is changed."""
    return builds_of(edit, point_of(edit))[edit.build]


def source_of(edit: Edit, folder: Path) -> Source:
    probe, build = probe_of(edit, folder), build_of(edit)
    arch = by_name(edit.arch)
    return Source(probe.source.read_text(), probe.source.name, arch, probe.name, build.defines, (folder,))
