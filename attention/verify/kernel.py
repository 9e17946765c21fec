"""One attention kernel on this machine's GPU: compiled, run on random problems, judged, and summed up in one result."""

import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

from attention.timed.identity import text_sha256
from attention.verify.campaign import Campaign
from attention.verify.rows import ForwardProblemRow, read
from attention.verify.sanitizer import TOOLS, SanitizerResult, check
from attention.verify.supervisor import supervise
from microbench.compile.together import compile_together
from microbench.console.progress import watching
from microbench.verify.results import Failure, Result
from microbench.verify.tables import stem

UNTRIED = "not tried: too many workers were lost before it"


class KernelResult(Result):
    """An attention kernel on random problems. Ratios are errors over what is allowed, the worst of all problems."""

    folder = "kernels"
    kind: Literal["kernel"] = "kernel"
    kernel: str
    text_sha256: str = ""  # of the kernel's source; rows from before it was noted are of earlier texts
    torch: str
    seed: int
    problems: int
    right: int
    features: Mapping[str, int]  # problems that have each; a problem of two features counts in both
    worst_ratio: float
    worst_block_ratio: float
    worst_lse_ratio: float
    sanitizer: tuple[SanitizerResult, ...] = ()

    @property
    def subject(self) -> str:
        return stem(self.kernel)

    @property
    def told(self) -> str:
        worst = max(self.worst_ratio, self.worst_block_ratio, self.worst_lse_ratio)
        said = (f"; {each.tool}: {each.complaint or 'nothing found'}" for each in self.sanitizer)
        return (
            f"{self.right} of {self.problems} problems right, errors up to {worst} of what they may be{''.join(said)}"
        )

    @property
    def ok(self) -> bool:
        """Whether every problem was right, and no tool has a complaint."""
        return self.right == self.problems and all(each.ok for each in self.sanitizer)


def verify(
    kernel: str, where: Mapping[str, Any], problems: int, device: int = 0, seed: int = 0, tool: str | None = None
) -> KernelResult:
    """Run `problems` of them on the `device`-th GPU, and with `tool`, compute-sanitizer, a few more under it.

    `where` is results.where() of that GPU. Raises DeviceError where no worker starts, EnvironmentLacks without NVRTC.
    """
    campaign = Campaign((kernel,), problems, seed, str(where["arch"]), device)
    few = Campaign((kernel,), seed=seed, arch=campaign.arch, device=device, checked=True, exact=True)
    cases = campaign.cases()
    every = (*cases, *(few.cases() if tool else ()))
    made = compile_together(source for case in every for source in case.build.sources)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "rows.jsonl"
        out.write_text("", encoding="utf-8")
        supervise(cases, out, campaign.options)
        rows = read(out)
        checks = _sanitized(tool, few, Path(folder)) if tool else ()
    untried = [Failure(what=str(case.problem), reason=UNTRIED) for case in cases[len(rows) :]]
    wrong = [Failure(what=f"{row.index}: {row.config}: {row.problem}", reason=row.reason) for row in rows if not row.ok]
    return KernelResult(
        **where,
        kernel=kernel,
        text_sha256=text_sha256(kernel),
        nvrtc=made.nvrtc,
        torch=metadata.version("torch"),
        seed=seed,
        problems=len(cases),
        right=sum(row.ok for row in rows),
        cubins=tuple(sorted({row.cubin for row in rows if row.cubin})),
        features=dict(sorted(Counter(feature for row in rows for feature in row.features).items())),
        **worst_of(rows),
        failures=(*wrong, *untried),
        sanitizer=checks,
    )


def worst_of(rows: Sequence[ForwardProblemRow]) -> dict[str, Any]:
    """The largest error over what is allowed: of whole tensors, of 64 rows, and of lse."""
    ratios = {
        "worst_ratio": (row.error / row.allowed if row.error and row.allowed else 0.0 for row in rows),
        "worst_block_ratio": (row.block_ratio or 0.0 for row in rows),
        "worst_lse_ratio": (row.lse_ratio or 0.0 for row in rows),
    }
    return {name: round(max(found, default=0.0), 4) for name, found in ratios.items()}


def _sanitized(tool: str, few: Campaign, folder: Path) -> tuple[SanitizerResult, ...]:
    found = []
    with watching(len(TOOLS)) as watcher:
        for name in TOOLS:
            watcher.doing("sanitizer", name)
            found.append(check(tool, name, few, folder))
            watcher.finished()
    return tuple(found)
