"""compute-sanitizer over a few problems that meet every feature, head dims 64, 128 and 256 and both dtypes.

memcheck finds accesses outside of an allocation, racecheck two threads at a place of shared memory. It knows mbarriers
and cp.async, but not what TMA writes and wgmma reads: of the Hopper kernel it sees the slots of its schedule.
synccheck is not among the tools: it wants every phase of an mbarrier waited for, and the last ones of a ring are not;
nor initcheck: results and inputs lie amid NaN in the campaign.
"""

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from tests.gpu.forward_builds import Build, builds_of
from tests.gpu.forward_problems import Case, Limits, case_of

TOOLS = ("memcheck", "racecheck")
KERNELS = "attention_forward"  # begins the name of every kernel that the tools shall look at
BUCKETS = ((1, 64), (97, 128), (193, 256))
# Some tiles of rows and keys, none of them whole, and a ring that comes round; a tool takes a thousand times as long.
FEW = Limits(shortest=385, longest=450, pairs=10**6, elements=2**20)
# More tiles of rows than an H100 has SMs: blocks that stay take a second one.
MANY = replace(FEW, heads=(1, 4, 12), pairs=10**7, elements=2**23)


def checked(variants: tuple[str, ...], seed: int) -> list[Case]:
    """A few cases of each variant, numbered in order. The last of a variant has many heads."""
    chosen = [(build, build is found[-1]) for variant in variants for found in [covering(variant)] for build in found]
    return [case_of(build, i, seed, MANY if many else FEW) for i, (build, many) in enumerate(chosen)]


def covering(variant: str) -> list[Build]:
    """Few builds of the sample that have everything in it; packed ones first, whose sequences are short."""
    sample = [build for build in builds_of(variant) if build.bucket in BUCKETS]
    wanted = set().union(*(_traits(build) for build in sample))
    chosen: list[Build] = []
    while wanted:
        chosen.append(max(sample, key=lambda build: len(_traits(build) & wanted)))
        wanted -= _traits(chosen[-1])
    return sorted(chosen, key=lambda build: not build.asked.varlen)


def _traits(build: Build) -> set[object]:
    asked = {name for name, value in vars(build.asked).items() if value} or {"no feature"}
    others = {(name, value) for name, value in build.config.values if name != "tile_keys"}
    return {build.bucket, build.dtype, *asked, *others}


def command(tool: str, options: str, name: str, log: Path, work: list[str]) -> list[str]:
    """The command line of one tool `name`; `options` is its help, since a release renamed one of them.

    Modules take long to load under the tool, hence the timeout. Child processes, which torch starts to look for
    libraries, are none of ours.
    """
    filtering = "--kernel-name" if "--kernel-name " in options else "--kernel-regex"
    made = [tool, "--tool", name, filtering, f"kns={KERNELS}", "--error-exitcode", "9", "--log-file", str(log)]
    made += ["--target-processes", "application-only", "--launch-timeout", "120"]
    made += ["--show-backtrace", "no", "--print-limit", "20"]
    made += [] if name == "racecheck" else ["--report-api-errors", "no"]
    return [*made, sys.executable, "-m", "tests.gpu.random_forward", "work", *work, "--checked", "--exact"]


def check(tool: str, name: str, work: list[str], folder: Path) -> str:
    """Run one tool; what it has against the kernels, or ''. torch gives every tensor an allocation of its own."""
    log = folder / f"{name}.txt"
    log.unlink(missing_ok=True)
    options = subprocess.run([tool, "--help"], capture_output=True, text=True, check=False).stdout
    line = command(tool, options, name, log, work)
    sys.stdout.write(" ".join(line) + "\n")
    sys.stdout.flush()
    status = subprocess.run(line, env=os.environ | {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}, check=False).returncode
    said = log.read_text("utf-8", errors="replace") if log.exists() else ""
    return complaint(status, said)


def complaint(status: int, said: str) -> str:
    """What a tool found, given its exit status and its log. Without a summary it did not look, whatever the status."""
    counts = [int(count) for count in re.findall(r"SUMMARY: (\d+) ", said)]
    if counts and not any(counts) and status == 0:
        return ""
    return f"exit status {status}; " + " | ".join(said.strip().splitlines()[-12:])
