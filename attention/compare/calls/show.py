"""What `attention bench --calls` prints: each kind of calls beside torch's function, and whether the promise holds."""

from typing import Any

from attention.compare.calls import results, run
from microbench import console
from microbench.console.si import counted
from microbench.machine.cpu import host_slug


def show(as_json: bool) -> None:
    """Time the calls and print a table of them, or one line of JSON. Raises EnvironmentLacks, DataError."""
    rows = run.timed()
    found = results.by_kind(rows)
    if as_json:
        console.emit({kind: _fields(each) for kind, each in found.items()})
        return
    headings = ("calls", "of torch's speed", "least", f"at {results.USUAL} or more", "by our own kernel")
    table = [
        (f"{each.calls} {kind}", f"{each.median:.3f}", f"{each.least:.3f}", f"{each.share_of_usual:.0%}", each.ours)
        for kind, each in found.items()
    ]
    console.draw(console.table("attention.sdpa beside torch's function on this CPU", headings, table))
    worst = sorted(rows, key=lambda row: row.ratio)[:5]
    console.draw("Slowest beside torch:", *(f"  {row.ratio:.3f}  {row.problem}, {row.variant}" for row in worst))
    holds = "holds" if found["all"].holds else "does not hold"
    console.draw(
        f"The goal {holds} here: {results.USUAL} of torch's speed in {results.SHARE:.0%} of the calls, and "
        f"{results.LEAST} in all."
    )
    disturbed = counted(sum(bool(row.flags) for row in rows), "call")
    console.draw(
        f"Appended to {results.path(host_slug()).name}; the load average was {rows[0].load_average:.1f}, and others "
        f"had the cores, or the clock moved, during {disturbed}."
    )


def _fields(each: results.Verdict) -> dict[str, Any]:
    return {
        "calls": each.calls,
        "median": each.median,
        "least": each.least,
        "share_of_usual": each.share_of_usual,
        "ours": each.ours,
        "holds": each.holds,
    }
