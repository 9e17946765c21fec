"""`check`: what our CUDA kernels compile to, without a GPU."""

from typing import Annotated

import typer

from attention.kernels.common.spills import NAME, text
from attention.variant import shipped
from attention.verify import build_matrix
from microbench import console, files
from microbench.compile import cache
from microbench.console import Json
from microbench.console.progress import say
from microbench.errors import InputError
from microbench.machine.arch import by_name


def check(
    arch: Annotated[
        list[str] | None, typer.Option("--arch", help="sm70 ... sm120a; repeatable; all by default.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Every legal configuration with every feature.")] = False,
    combined: Annotated[
        bool, typer.Option("--combined", help="Every legal configuration with every combination of features: hours.")
    ] = False,
    limits: Annotated[
        bool, typer.Option("--limits", help="Find anew which tiles spill, and write it beside each kernel: an hour.")
    ] = False,
    write: Annotated[bool, typer.Option("--write", help="Write the tables in data/verification again.")] = False,
    json: Json = False,
) -> None:
    """Compile our CUDA kernels without a GPU: no spill, no fatal note, every instruction they were written for."""
    from microbench.verify import matrix, show, tables

    if (write or limits) and (arch or every or combined):
        raise InputError("What is written covers all GPUs; leave out what selects others, or --write and --limits.")
    if limits:
        return _write_limits()
    wanted = tuple(by_name(name).name for name in arch or ())
    jobs = build_matrix.jobs(wanted=wanted, every=every, combined=combined)
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


def _write_limits() -> None:
    from attention.verify.limits import walked

    cache.require_writable()
    for variant in shipped():
        if (variant.folder / NAME).is_file():
            files.put(variant.folder / NAME, text(found := walked(variant)))
            say(f"Wrote {NAME} of {variant.path}: NVRTC {found.nvrtc}.")
