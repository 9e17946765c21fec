"""`python -m smscope.readme`: write the generated blocks of every page again, those of both packages.

The comparison with other libraries is made here, since microbench, which fills the blocks, knows nothing of attention.
"""

import sys

from attention.compare.results import HOPPER, Result, last_run, mean
from microbench import paths
from microbench.console.si import counted
from microbench.errors import DataError
from microbench.report import markdown, readme

_COMPARISON = "comparison-"


def generated(name: str) -> str:
    """What belongs into the block called `name`. Raises InputError for an unknown name, UnknownGpu, DataError."""
    if name.startswith(_COMPARISON):
        return comparison(name.removeprefix(_COMPARISON))
    return readme.generated(name)


def comparison(gpu: str) -> str:
    """The last run beside the peers: TFLOPS of ours and, in brackets, the fastest peer's time over ours, cell by cell.

    Raises DataError where there is no such run.
    """
    cells = [each for each in last_run(gpu) if not each.cell.few and each.ratio(HOPPER) is not None]
    grid = [each for each in cells if each.cell.grid]
    if not grid:
        raise DataError(f"No comparison with peers is on file for {gpu}; `smscope bench-attention --peers` makes one.")
    lengths = sorted({each.cell.problem.seq_q for each in grid})
    rows: dict[tuple[int, bool], dict[int, str]] = {}
    for each in grid:
        problem = each.cell.problem
        rows.setdefault((problem.head_dim, problem.causal), {})[problem.seq_q] = _cell(each)
    lines = tuple(
        (str(dim), "causal" if causal else "full", *(by_length.get(length, "") for length in lengths))
        for (dim, causal), by_length in sorted(rows.items())
    )
    table = markdown(("head dim", "mask", *(f"{length:,} tokens" for length in lengths)), lines)
    return f"{table}\n\n{_summary(grid, cells)} {_peers(cells)}"


def _ratio(result: Result) -> float:
    return result.ratio(HOPPER) or 0.0


def _cell(result: Result) -> str:
    ours = result.of(HOPPER)
    return f"{result.tflops(ours):.0f} ({_ratio(result):.3f})" if ours else ""


def _summary(grid: list[Result], cells: list[Result]) -> str:
    least = min(cells, key=_ratio)
    return (
        f"Geometric mean of the ratio: **{mean(map(_ratio, grid)):.3f}** over these {counted(len(grid), 'cell')}, "
        f"**{mean(map(_ratio, cells)):.3f}** over all {len(cells)} of the run. "
        f"Least: **{_ratio(least):.3f}** ({least.cell}).{_sustained(cells)}"
    )


def _sustained(cells: list[Result]) -> str:
    """The same of a second of each alone, where power holds every kernel back."""
    ratios = [ratio for each in cells if (ratio := each.sustained_ratio(HOPPER)) is not None]
    if len(ratios) < len(cells):
        return ""
    return f" After a second of each alone, where power limits all: **{mean(ratios):.3f}**, least {min(ratios):.3f}."


def _peers(cells: list[Result]) -> str:
    """Who took part, with versions, in the figure's words."""
    from attention.compare.figure import candidates  # needs matplotlib

    labels = [each.label for each in candidates(cells) if each.variant.startswith("peer/")]
    measured = max(timing.measured_utc for each in cells for timing in each.timings)[:10]
    return f"Peers, in the same run on {measured}: {', '.join(labels)}."


def main() -> None:
    """Write every generated block again, and say which files changed."""
    for file in readme.pages():
        before = file.read_text(encoding="utf-8")
        after = readme.refreshed(before, generated)
        if after != before:
            file.write_text(after, encoding="utf-8")
            place = file.relative_to(paths.CHECKOUT) if paths.CHECKOUT else file.name
            sys.stdout.write(f"{place}: written again\n")


if __name__ == "__main__":
    main()
