"""`python -m smscope.readme`: write the generated blocks of every page again, those of both packages.

What holds attention is made here, since microbench, which fills the other blocks, knows nothing of it.
"""

import sys

from attention.compare.results import HOPPER, Result, last_run, mean
from attention.timed.timing import PEER
from attention.verify.build_matrix import AttentionRow
from attention.verify.kernel import KernelResult
from microbench import paths
from microbench.console.si import counted
from microbench.errors import DataError
from microbench.machine.arch import ARCHS
from microbench.report import markdown, readme, verified
from microbench.results.profile import Profile, available
from microbench.verify import results
from microbench.verify.tables import BuildRow, read_all
from smscope import kernel_rows, missed

_COMPARISON, _ASKED = "comparison-", "asked-"
VERIFIED: tuple[type[results.Result], ...] = (results.ProbeResult, results.WrappersResult, KernelResult)


def generated(name: str) -> str:
    """What belongs into the block called `name`. Raises InputError for an unknown name, UnknownGpu, DataError."""
    if name.startswith(_COMPARISON):
        return comparison(name.removeprefix(_COMPARISON))
    if name.startswith(_ASKED):
        return missed.block(name.removeprefix(_ASKED))
    if name == "architectures":
        return architectures()
    if name == "kernels":
        return kernel_rows.table()
    return readme.generated(name)


def architectures() -> str:
    """A generation a row, and how far it is verified. No count of probes is here: a new one would change it."""
    compiled, attention = read_all(BuildRow), {row.arch for row in read_all(AttentionRow)}
    machines = {(profile.gpu, profile.arch) for profile in map(Profile.load, available())}
    machines |= {(row.gpu, row.arch) for kind in VERIFIED for row in results.committed(kind)}
    lines = []
    for generation in dict.fromkeys(arch.generation for arch in ARCHS):
        mine = [arch.name for arch in ARCHS if arch.generation == generation]
        rows = [row for row in compiled if row.arch in mine]
        broken = {row.kernel for row in rows if row.kept < row.builds}
        built = f"not {', '.join(sorted(broken))}" if broken else "yes" if rows else "by Numba"
        served = [f"`{name}`" for name in mine if name in attention]
        if served:
            built += ", attention " + ("too" if len(served) == len(mine) else f"for {', '.join(served)}")
        rate = verified.blind_rate(mine)
        emulated = "; ".join(filter(None, ("yes", rate))) if rows else "no"
        ran = sorted(gpu for gpu, arch in machines if arch in mine)
        measured = f"run on {', '.join(ran)}" if ran else "no"
        lines.append((generation, ", ".join(f"`{name}`" for name in mine), built, emulated, measured))
    return markdown(("generation", "architectures", "compiled", "emulated", "measured"), tuple(lines))


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
        f"**{mean(map(_ratio, cells)):.3f}** over all {len(cells)} on file. "
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

    labels = [each.label for each in candidates(cells) if each.variant.startswith(PEER)]
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
