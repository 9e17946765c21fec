"""Thousands of random attention problems on a GPU, each held against a float64 oracle. `smscope verify` runs them too.

    python -m attention.verify build                 every kernel into the cache; needs NVRTC, no GPU
    python -m attention.verify run OUT.jsonl         a row for each problem; exit status 1 where one fails
    python -m attention.verify sanitize FOLDER       compute-sanitizer over a few small problems
    python -m attention.verify summarise OUT.jsonl SUMMARY.jsonl     for data/verification, on the same machine

A problem is drawn from the seed and its number alone: `run --only N` runs one again. --arch is the GPU's, sm90a unless
said.
"""

import argparse
import sys
import time
from pathlib import Path

from attention.verify.builds import ARCH, builds_of, tuned
from attention.verify.campaign import Campaign
from attention.verify.compiling import compile_together
from attention.verify.problems import Case
from attention.verify.sanitizer import TOOLS, check, tool_path
from microbench.errors import SmscopeError
from microbench.files import text
from microbench.machine.arch import by_name
from microbench.verify.forward import ForwardProblemRow, read


def main(arguments: list[str] | None = None) -> int:
    """Run one verb; its exit status. A failure of ours is one sentence on stderr."""
    given = parser().parse_args(arguments)
    try:
        return int(given.verb(given))
    except SmscopeError as error:
        print(error, file=sys.stderr)
        return error.exit_code


def build(arguments: argparse.Namespace) -> int:
    """Compile what the campaign needs."""
    kernels = (build for variant in _variants(arguments) for build in builds_of(variant, arguments.arch))
    made = compile_together([source for each in kernels for source in each.sources], arguments.jobs)
    sys.stdout.write("".join(f"{error}\n" for error in made.refused))
    sys.stdout.write(f"{made.kernels - len(made.refused)} of {made.kernels} kernels compiled\n")
    return int(bool(made.refused))


def run(arguments: argparse.Namespace) -> int:
    """The campaign, in processes of its own."""
    from attention.verify.supervisor import supervise

    arguments.out.write_text("", encoding="utf-8")
    campaign, cases = campaign_of(arguments), cases_of(arguments)
    supervise(cases, arguments.out, campaign.options)
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
    from attention.verify import worker

    last = arguments.problems if arguments.last is None else arguments.last
    cases = cases_of(arguments)[arguments.first : last]
    return worker.work(cases, arguments.out, arguments.exact, arguments.device)


def sanitize(arguments: argparse.Namespace) -> int:
    """Each tool over a few problems; rows and logs go into a folder."""
    tool = tool_path()
    arguments.out.mkdir(parents=True, exist_ok=True)
    campaign = Campaign(_variants(arguments), seed=arguments.seed, arch=arguments.arch, checked=True, exact=True)
    status = 0
    for name in arguments.tools:
        began = time.monotonic()
        found = check(tool, name, campaign, arguments.out)
        sys.stdout.write(
            f"{name}: {found.complaint or 'nothing found'}; {found.right} of {found.problems} problems right,"
            f" {time.monotonic() - began:.0f} s\n"
        )
        sys.stdout.write("".join(f"{wrong}\n" for wrong in found.wrong))
        status |= int(not found.ok)
    return status


def summarise(arguments: argparse.Namespace) -> int:
    """Rows of one GPU, summed up, and beside them which kernels ran."""
    from attention.verify.summary import cubins, summary

    rows = read(arguments.out, ForwardProblemRow)
    arguments.to.write_text(text(summary(rows)), encoding="utf-8")
    arguments.to.with_suffix(".cubins").write_text(cubins(rows), encoding="utf-8")
    return 0


def campaign_of(arguments: argparse.Namespace) -> Campaign:
    """The campaign of a command line of `run` or `work`."""
    names = ("problems", "seed", "arch", "device", "small", "checked", "exact")
    return Campaign(_variants(arguments), **{name: getattr(arguments, name) for name in names})


def cases_of(arguments: argparse.Namespace) -> list[Case]:
    """Its problems; with --only that one alone."""
    cases = campaign_of(arguments).cases()
    return cases if arguments.only is None else [cases[arguments.only]]


def _variants(arguments: argparse.Namespace) -> tuple[str, ...]:
    return arguments.variants or tuned(arguments.arch)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(prog="python -m attention.verify", description=(__doc__ or "").splitlines()[0])
    verbs = made.add_subparsers(dest="name", required=True)
    for verb in (build, run, work, sanitize, summarise):
        one = verbs.add_parser(verb.__name__, help=(verb.__doc__ or "").splitlines()[0])
        one.set_defaults(verb=verb)
        if verb is not build:
            one.add_argument("out", type=Path)
        if verb is summarise:
            one.add_argument("to", type=Path)
            continue
        one.add_argument("--arch", type=lambda name: by_name(name).name, default=ARCH)
        one.add_argument("--variants", type=lambda names: tuple(names.split(",")), help="all that --arch has")
        if verb is build:
            one.add_argument("--jobs", type=int)
            continue
        one.add_argument("--seed", type=int, default=0)
        if verb is sanitize:
            one.add_argument("--tools", type=lambda names: tuple(names.split(",")), default=TOOLS)
            continue
        one.add_argument("--device", type=int, default=0, help="the GPU's number")
        one.add_argument("--problems", type=int, default=2000)
        one.add_argument("--only", type=int, help="the number of one problem")
        one.add_argument("--small", action="store_true", help="small problems only")
        one.add_argument("--checked", action="store_true", help="the problems of sanitize")
        one.add_argument("--exact", action="store_true", help="no poisoned room around tensors, judged by the CPU")
        one.add_argument("--first", type=int, default=0)
        one.add_argument("--last", type=int)
    return made
