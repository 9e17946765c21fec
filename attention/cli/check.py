"""`check`: what our CUDA kernels compile to, without a GPU."""

from collections.abc import Sequence
from typing import Annotated

import typer

from attention.feature import Feature
from attention.kernels.common.spills import NAME, text
from attention.variant import shipped
from attention.verify import build_matrix
from microbench import console, files
from microbench.compile import cache
from microbench.console import Archs, Json, Write
from microbench.console.progress import say
from microbench.errors import InputError
from microbench.machine.arch import by_name


def check(
    arch: Archs = None,
    every: Annotated[bool, typer.Option("--all", help="Every legal configuration with every feature.")] = False,
    feature: Annotated[
        str | None,
        typer.Option("--feature", help="Every legal configuration with this one, and a few problems on the emulator."),
    ] = None,
    limits: Annotated[
        bool, typer.Option("--limits", help="Find anew which tiles spill, and write it beside each kernel: an hour.")
    ] = False,
    write: Write = False,
    json: Json = False,
) -> None:
    """Compile our CUDA kernels without a GPU: no spill but an allowed one, no fatal note, no instruction lost."""
    from microbench.verify import matrix, show, tables

    if (write or limits) and (arch or every or feature):
        raise InputError("What is written covers all GPUs; leave out what selects others, or --write and --limits.")
    if limits:
        return _write_limits()
    wanted = tuple(by_name(name).name for name in arch or ())
    if feature:
        _check_feature(named(feature), wanted, json)
        return
    jobs = build_matrix.jobs(wanted=wanted, asked=build_matrix.EVERY if every else ())
    for name in wanted:
        if all(job.arch != name for job in jobs):
            say(f"No tuned CUDA kernel for {name} yet, so there is nothing to compile.")
    if not jobs:
        if json:
            console.emit([])
        return
    rows = show.watched(jobs)
    show.say_all(rows, json)
    if write:
        show.say_written(tables.write_all(build_matrix.AttentionRow, matrix.table(rows, build_matrix.AttentionRow)))


def named(name: str) -> Feature:
    """The feature of a file in attention/features. Raises InputError where no kernel has device code for it."""
    for each in build_matrix.DRAWN:
        if each.name == name:
            return each
    known = ", ".join(each.name for each in build_matrix.DRAWN)
    raise InputError(f"No feature called {name!r} has device code; there are {known}.")


def _check_feature(feature: Feature, wanted: Sequence[str], json: bool) -> None:
    """What a new feature needs, on the architecture that each kernel was written for. Formulas are quick, and first."""
    from attention.verify import emulated, formulas
    from microbench.verify import show

    ours = [variant for variant in shipped() if variant.builds and (not wanted or set(wanted) & set(variant.archs))]
    if not ours:
        raise InputError(f"No tuned CUDA kernel runs on {', '.join(wanted)} yet, so there is nothing to check.")
    faults = formulas.faults(feature, build_matrix.with_feature(feature)[0])
    for fault in faults:
        say(f"attention/features/{feature.name}.py: {fault}.")
    wrong = bool(faults)
    for variant in ours:
        found = emulated.judged(emulated.cases_with(variant, feature))
        if not found:
            wrong = True
            say(f"{variant.path} has no build with {feature.name}; what its device `serves` must be its words' names.")
            continue
        say(f"{variant.path} on the emulator: {sum(row.ok for row in found)} of {len(found)} problems right.")
        for row in found:
            if not row.ok:
                wrong = True
                say(f"  {row.problem} {row.config}: {row.reason}")
    jobs = [
        job
        for variant in ours
        for job in build_matrix.jobs([variant], wanted or variant.archs[:1], build_matrix.with_feature(feature))
    ]
    show.say_all(show.watched(jobs), json)
    if wrong:
        raise typer.Exit(1)


def _write_limits() -> None:
    from attention.verify.limits import walked

    cache.require_writable()
    for variant in shipped():
        if (variant.folder / NAME).is_file():
            files.put(variant.folder / NAME, text(found := walked(variant)))
            say(f"Wrote {NAME} of {variant.path}: NVRTC {found.nvrtc}.")
