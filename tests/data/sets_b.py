"""The sets b that were judged, one a row of sets_b.csv: what the verdict gave, and what today's model loses there.

    python -m tests.data.sets_b

writes what today's model loses anew, and a row for each verdict that has none.

What was judged is history: the model was mended by what a set showed, so that today's is built on all of them but the
last. Sets were timed by the kernels of their day, and problems whose builds are others today are left out:

- before 25: heads of a group share a warpgroup's rows since
- before 36: rows that begin inside of sectors are read from there since

No freeze is 13, 17 or 43: of two there is one campaign each (b-18, b-23), and one was replaced before it was timed. The
first seven were timed behind a memset.
"""

import csv
import dataclasses
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from attention.campaign import choosers, freeze, rows
from attention.campaign.freeze import Verdict
from attention.campaign.regret import Judged, choices, judged, regrets
from attention.kernels.common.family import lead_defines
from attention.kernels.sm90a.packed import packed
from attention.problem import AttentionProblem
from microbench.results.profile import Profile

FILE = Path(__file__).with_suffix(".csv")
SHARED_SINCE, LEADING_SINCE = 25, 36  # numbers of sets
KERNELS = {"all": "", "sm80": "sm80", "sm90a": "sm90a", "software_pipelined": "sm80/forward/software_pipelined"}
MEASURED = "measured constants"
OTHERS = "published and data sheet", "published of a100", "measured on h100-sxm-80gb"
LINE = re.compile(r"all kernels: (.+): ([\d.]+)% / ([\d.]+)%(?: \(([-+][\d.]+)% to ([-+][\d.]+)%\))?")


@dataclass(frozen=True)
class SetB:
    """Percents are of the best configuration; those of an architecture or a kernel are empty where none has a choice.

    `of_this_gpu`, `of_a100` and `of_h100` say whether the verdict told measured constants 'apart' from published ones
    of this GPU, those of an A100, and what was measured on an H100, or found them 'alike'; empty where it did not ask.
    """

    number: int
    freeze: str
    gpu: str
    judged_mean: float
    judged_worst: float
    all: str
    sm80: str
    sm90a: str
    software_pipelined: str
    of_this_gpu: str
    of_a100: str
    of_h100: str

    @property
    def verdict(self) -> Verdict:
        (found,) = (each for each in freeze.verdicts() if each.freeze.startswith(self.freeze))
        return found

    def problems(self) -> tuple[Judged, ...]:
        """Those whose builds are still the same."""
        timed = (rows.read(self.gpu, "b", number) for number in self.verdict.campaigns)
        return judged(*(tuple(row for row in each if self._is_same(row.problem)) for each in timed))

    def loses(self) -> dict[str, str]:
        """Mean and worst regret of today's model by KERNELS, as percents."""
        problems, by_constants = self.problems(), choosers.by_constants(Profile.load(self.gpu))
        told = {}
        for name, kernels in KERNELS.items():
            of = choices(problems, kernels)
            found = regrets(of, by_constants) if of else None
            told[name] = f"{100 * found.mean:.2f} / {100 * found.worst:.1f}" if found else ""
        return told

    def _is_same(self, problem: AttentionProblem) -> bool:
        late = lead_defines(problem) and problem.heads_kv % 2 == 0
        shared = self.number >= SHARED_SINCE or not packed(problem, 2)
        return shared and (self.number >= LEADING_SINCE or not late)


def every() -> tuple[SetB, ...]:
    """All rows, in order."""
    with FILE.open(newline="") as file:
        return tuple(_of(row) for row in csv.DictReader(file))


def given(verdict: Verdict) -> dict[str, re.Match[str]]:
    """By chooser the line of all kernels: mean and worst regret, and where measured constants minus it lie."""
    return {match[1]: match for text in verdict.lines if (match := LINE.fullmatch(text))}


def told(verdict: Verdict, chooser: str) -> str:
    """Whether measured constants are told 'apart' from a chooser, which lost more, or found 'alike'."""
    line = given(verdict).get(chooser)
    return "" if line is None else "apart" if float(line[5]) < 0 else "alike"


def _of(row: dict[str, str]) -> SetB:
    figures = float(row["judged_mean"]), float(row["judged_worst"])
    return SetB(int(row["number"]), row["freeze"], row["gpu"], *figures, *list(row.values())[5:])


def _new(known: tuple[SetB, ...]) -> Iterator[SetB]:
    number = known[-1].number
    for verdict in sorted(freeze.verdicts(), key=lambda each: each.campaigns[-1]):
        gpu = freeze.named(verdict.freeze).gpu
        if not any(verdict.freeze.startswith(each.freeze) for each in known):
            number += 1
            measured, apart = given(verdict)[MEASURED], (told(verdict, name) for name in OTHERS)
            yield SetB(
                number, verdict.freeze[:12], gpu, float(measured[2]), float(measured[3]), *[""] * len(KERNELS), *apart
            )


if __name__ == "__main__":
    known = every()
    written = [dataclasses.replace(each, **each.loses()) for each in (*known, *_new(known))]
    with FILE.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([field.name for field in dataclasses.fields(SetB)])
        writer.writerows(dataclasses.astuple(each) for each in written)
