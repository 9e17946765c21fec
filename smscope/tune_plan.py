"""What `smscope tune` would time, and how long that takes: said of a GPU that need not be here."""

import os
from collections.abc import Sequence
from importlib.util import find_spec

from attention.campaign import plan
from attention.campaign.tune import Tuned
from attention.choose.candidates import Candidate
from attention.choose.machine import HOST, named_machine
from attention.errors import ADDS_TORCH
from microbench import console
from microbench.console.progress import say
from microbench.console.si import counted
from microbench.errors import EnvironmentLacks, InputError
from microbench.machine import nvml
from microbench.results.profile import Profile
from smscope.verified import budget


def profile_of(asked: str | None) -> Profile:
    """Of a GPU by the name that somebody typed. Raises NoGpu without a name, UnknownGpu, InputError."""
    if asked is None:
        raise nvml.no_gpu("here", "name one by --gpu, such as --gpu h100-sxm-80gb, and --plan needs none")
    if find_spec("torch") is None:
        raise EnvironmentLacks(f"A plan names torch's kernels, and torch is not here; {ADDS_TORCH}.")
    found = named_machine(asked)
    if found.profile.arch == HOST:
        raise InputError(f"{asked} is a CPU, and tune times kernels of GPUs; name one of those.")
    if found.caution:
        say(f"Caution: {found.caution}.")
    return found.profile


def say_plan(todo: Sequence[Tuned], left_out: Sequence[str], json: bool) -> None:
    expected = plan.estimate([each.job for each in todo], {})
    told = {
        "problems": [
            {
                "problem": str(each.job.posed),
                "calls": each.of.calls,
                "runs": kernel(each.was),
                "candidates": [*(f"{v.path} {c}" for v, c in each.job.tiles), *(p.name for p in each.job.peers)],
            }
            for each in todo
        ],
        "kernels_to_compile": len(expected.missing),
        "compile_s": round(expected.compile_s),
        "timing_s": round(expected.timing_s),
        "left_out": list(left_out),
    }
    lines = [
        f"{each.job.posed}: {counted(len(each.job.tiles), 'configuration')} of ours, {len(each.job.peers)} of torch's."
        for each in todo
    ]
    console.show(json, told, *lines, effort(todo, expected), *(f"Left out: {each}." for each in left_out))


def effort(todo: Sequence[Tuned], expected: plan.Estimate) -> str:
    missing = counted(len(expected.missing), "kernel")
    return (
        f"{counted(len(todo), 'problem')}: {missing} to compile on {os.cpu_count()} cores, "
        f"{budget.told(expected.compile_s)}; timing {budget.told(expected.timing_s)} by the model's predictions."
    )


def kernel(candidate: Candidate) -> str:
    """A kernel, and its configuration where it has one."""
    return f"{candidate.variant} ({candidate.config})" if candidate.config.values else candidate.variant
