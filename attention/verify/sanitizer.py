"""compute-sanitizer over the few problems of few.py.

memcheck finds accesses outside of an allocation, racecheck two threads at a place of shared memory. It knows mbarriers
and cp.async, but not what TMA writes and wgmma reads: of the Hopper kernel it sees the slots of its schedule.
synccheck is not among the tools: it wants every phase of an mbarrier waited for, and the last ones of a ring are not;
nor initcheck: results and inputs lie amid NaN in the campaign.
"""

import re
import shutil
import subprocess
from pathlib import Path

from attention.verify.campaign import Campaign
from attention.verify.rows import read
from attention.verify.supervisor import WORKER, environment
from microbench.errors import EnvironmentLacks
from microbench.files import Frozen

TOOLS = ("memcheck", "racecheck")
KERNELS = "attention_forward"  # begins the name of every kernel that the tools shall look at


class SanitizerResult(Frozen):
    """What one tool of compute-sanitizer said of a few problems; no complaint is ''."""

    tool: str
    problems: int
    right: int
    complaint: str

    @property
    def ok(self) -> bool:
        """Whether the tool looked, found nothing, and every result was right."""
        return not self.complaint and self.right == self.problems


def tool_path() -> str:
    """Where compute-sanitizer lies. Raises EnvironmentLacks."""
    found = shutil.which("compute-sanitizer")
    if found is None:
        raise EnvironmentLacks(
            "compute-sanitizer is not on the PATH; install the CUDA toolkit, which brings it, or leave sanitizing out."
        )
    return found


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
    return [*made, *WORKER, *work]


def check(tool: str, name: str, campaign: Campaign, folder: Path) -> SanitizerResult:
    """Run one tool over a campaign; rows and the tool's log go into a folder.

    torch gives every tensor an allocation of its own, whose bounds the tool knows.
    """
    log, rows = folder / f"{name}.txt", folder / f"{name}.jsonl"
    log.unlink(missing_ok=True)
    rows.write_text("", encoding="utf-8")
    options = subprocess.run([tool, "--help"], capture_output=True, text=True, check=False).stdout
    line = command(tool, options, name, log, [str(rows), *campaign.options])
    own = environment() | {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
    done = subprocess.run(line, env=own, stdout=subprocess.DEVNULL, check=False)
    said = log.read_text("utf-8", errors="replace") if log.exists() else ""
    found = read(rows)
    wrong = [f"{row.index}: {row.problem}: {row.reason}" for row in found if not row.ok]
    told = complaint(done.returncode, said) or "; ".join(wrong)
    return SanitizerResult(tool=name, problems=len(campaign.cases()), right=len(found) - len(wrong), complaint=told)


def complaint(status: int, said: str) -> str:
    """What a tool found, given its exit status and its log. Without a summary it did not look, whatever the status."""
    counts = [int(count) for count in re.findall(r"SUMMARY: (\d+) ", said)]
    if counts and not any(counts) and status == 0:
        return ""
    return f"exit status {status}; " + " | ".join(said.strip().splitlines()[-12:])
