"""Thousands of random attention problems on a GPU, each held against a float64 oracle.

    python -m tests.gpu.random_forward build                 every kernel into the cache; needs NVRTC, no GPU
    python -m tests.gpu.random_forward run OUT.jsonl         a row for each problem; exit status 1 where one fails
    python -m tests.gpu.random_forward sanitize FOLDER       compute-sanitizer over a few small problems
    python -m tests.gpu.random_forward summarise OUT.jsonl SUMMARY.jsonl     for data/verification, on the same machine

A problem is drawn from the seed and its number alone: `run --only N` runs one again.
"""

import argparse
import os
import shutil
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from microbench.build import Source, compile_all
from microbench.report.progress import watching
from microbench.verification.forward import ForwardProblemRow, read, text
from tests.gpu.forward_builds import builds_of, tuned
from tests.gpu.forward_problems import Case, drawn
from tests.gpu.forward_sanitizer import TOOLS, check, checked

CHUNK = 4  # kernels that one process compiles before it tells


def build(arguments: argparse.Namespace) -> int:
    """Compile what the campaign, the tests beside it and host_time need."""
    from tests.gpu import host_time

    sources = [build.source for variant in arguments.variants for build in builds_of(variant)]
    sources = list(dict.fromkeys([*sources, *host_time.sources()]))
    errors: list[str] = []
    with watching(len(sources)) as watch, ProcessPoolExecutor(arguments.jobs) as pool:
        parts = [sources[at : at + CHUNK] for at in range(0, len(sources), CHUNK)]
        for done in as_completed([pool.submit(_compiled, part) for part in parts]):
            found = done.result()
            errors += [each for each in found if each]
            watch.doing("compile", f"{len(errors)} refused")
            watch.finished(len(found))
    sys.stdout.write("".join(f"{error}\n" for error in errors))
    sys.stdout.write(f"{len(sources) - len(errors)} of {len(sources)} kernels compiled\n")
    return int(bool(errors))


def _compiled(sources: list[Source]) -> list[str]:
    """The error of each, or ''."""
    found = zip(sources, compile_all(sources), strict=True)
    return [f"{source.flags}: {made}" if isinstance(made, Exception) else "" for source, made in found]


def run(arguments: argparse.Namespace) -> int:
    """The campaign, in processes of its own."""
    from tests.gpu.forward_supervisor import supervise

    arguments.out.write_text("", encoding="utf-8")
    cases = _cases(arguments)
    options = ["--problems", str(arguments.problems), "--seed", str(arguments.seed)]
    options += ["--variants", ",".join(arguments.variants)]
    options += [f"--{flag}" for flag in ("small", "checked", "exact") if getattr(arguments, flag)]
    supervise(cases, arguments.out, options)
    rows = read(arguments.out, ForwardProblemRow)
    bad = [row for row in rows if not row.ok]
    for row in bad[:30]:
        sys.stdout.write(f"{row.index}: {row.variant} {row.config}: {row.problem}: {row.reason}\n")
    sys.stdout.write(
        f"{len(rows) - len(bad)} of {len(rows)} problems right, {len({row.cubin for row in rows})} kernels; worst error"
        f" {max((row.error or 0) / (row.allowed or 1) for row in rows):.3f}, of 64 rows"
        f" {max(row.block_ratio or 0 for row in rows):.3f}, of lse {max(row.lse_ratio or 0 for row in rows):.3f}"
        " times what is allowed\n"
    )
    return int(bool(bad) or len(rows) < len(cases))


def work(arguments: argparse.Namespace) -> int:
    """Part of a campaign, in this process."""
    from tests.gpu import forward_worker

    last = arguments.problems if arguments.last is None else arguments.last
    return forward_worker.work(_cases(arguments)[arguments.first : last], arguments.out, arguments.exact)


def sanitize(arguments: argparse.Namespace) -> int:
    """Each tool over a few problems; rows and logs go into a folder."""
    tool = shutil.which("compute-sanitizer")
    if tool is None:
        sys.stdout.write("compute-sanitizer is not on the PATH; it comes with the CUDA toolkit.\n")
        return 1
    arguments.out.mkdir(parents=True, exist_ok=True)
    cases, status = checked(arguments.variants, arguments.seed), 0
    for name in arguments.tools:
        rows = arguments.out / f"{name}.jsonl"
        rows.write_text("", encoding="utf-8")
        work = [str(rows), "--seed", str(arguments.seed), "--variants", ",".join(arguments.variants)]
        began = time.monotonic()
        complaint = check(tool, name, work, arguments.out)
        found = read(rows, ForwardProblemRow)
        right = sum(row.ok for row in found)
        sys.stdout.write(
            f"{name}: {complaint or 'nothing found'}; {right} of {len(cases)} problems right,"
            f" {time.monotonic() - began:.0f} s\n"
        )
        for row in found:
            if not row.ok:
                sys.stdout.write(f"{row.index}: {row.problem}: {row.reason}\n")
        status |= int(bool(complaint) or right < len(cases))
    return status


def summarise(arguments: argparse.Namespace) -> int:
    """Rows of one GPU, summed up, and beside them which kernels ran."""
    from tests.gpu.forward_summary import cubins, summary

    rows = read(arguments.out, ForwardProblemRow)
    arguments.to.write_text(text(summary(rows)), encoding="utf-8")
    arguments.to.with_suffix(".cubins").write_text(cubins(rows), encoding="utf-8")
    return 0


def _cases(arguments: argparse.Namespace) -> list[Case]:
    if arguments.checked:
        return checked(arguments.variants, arguments.seed)
    cases = drawn(arguments.variants, arguments.problems, arguments.seed, arguments.small)
    return cases if arguments.only is None else [cases[arguments.only]]


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(prog="python -m tests.gpu.random_forward", description=__doc__.splitlines()[0])
    verbs = made.add_subparsers(dest="verb", required=True)
    for verb in (build, run, work, sanitize, summarise):
        one = verbs.add_parser(verb.__name__, help=(verb.__doc__ or "").splitlines()[0])
        one.set_defaults(verb=verb)
        if verb is not build:
            one.add_argument("out", type=Path)
        if verb is summarise:
            one.add_argument("to", type=Path)
            continue
        one.add_argument("--variants", type=lambda names: tuple(names.split(",")), default=tuned())
        if verb is build:
            one.add_argument("--jobs", type=int, default=os.cpu_count())
            continue
        one.add_argument("--seed", type=int, default=0)
        if verb is sanitize:
            one.add_argument("--tools", type=lambda names: tuple(names.split(",")), default=TOOLS)
            continue
        one.add_argument("--problems", type=int, default=2000)
        one.add_argument("--only", type=int, help="the number of one problem")
        one.add_argument("--small", action="store_true", help="small problems only")
        one.add_argument("--checked", action="store_true", help="the problems of sanitize")
        one.add_argument("--exact", action="store_true", help="no poisoned room around tensors, judged by the CPU")
        one.add_argument("--first", type=int, default=0)
        one.add_argument("--last", type=int)
    return made


if __name__ == "__main__":
    given = parser().parse_args()
    sys.exit(given.verb(given))
