"""The figures of one machine, whichever it is: its memory ladder, DRAM by bytes in flight, and shares of bounds."""

import io

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from microbench.console import si
from microbench.report import figures as plots
from microbench.report.figures import Curve, pick
from microbench.report.html import Picture
from microbench.results.profile import Profile
from microbench.results.record import DISTURBANCES

LATENCIES = (("L1", "l1_latency_ns"), ("L2", "l2_latency_ns"), ("L3", "l3_latency_ns"), ("DRAM", "dram_latency_ns"))
# probe, method, and what its chase is called
CHASES = (
    ("host_memory_latency", "host", "one core"),
    ("memory_latency", "nvrtc", "every SM at once"),
    ("l2_visible_size", "nvrtc", "one SM alone"),
)


def behind(profile: Profile, runs: pd.DataFrame, probe: str) -> pd.DataFrame:
    """The rows of `probe` that the profile stands on: of its runs, and undisturbed where enough of them are."""
    if runs.empty:
        return runs
    ids = {run for constant in profile.constants if constant.probe == probe for run in constant.runs}
    rows = runs[(runs["gpu"] == profile.gpu) & (runs["probe"] == probe) & runs["run_id"].isin(ids)]
    disturbed = rows["flags"].map(lambda flags: any(flag in DISTURBANCES for flag in flags)).astype(bool)
    points = [column for column in rows.columns if column.startswith("point.")]
    quiet = rows[~disturbed]
    everywhere = len(quiet[points].drop_duplicates()) == len(rows[points].drop_duplicates())
    return quiet if everywhere else rows


def ladder(profile: Profile, runs: pd.DataFrame) -> Figure | None:
    """Latency against footprint, with the levels that the profile holds; None where no run has the sweep."""
    curves = []
    for probe, method, label in CHASES:
        rows = behind(profile, runs, probe)
        rows = rows if rows.empty else pick(rows, probe, "latency_ns", method=method)
        if len(rows):
            curves.append(Curve(rows, f"{profile.name}, {label}"))
    if not curves:
        return None
    levels = [
        (f"{level}: {si.written(profile.value(name), 'ns')}", profile.value(name))
        for level, name in LATENCIES
        if name in profile and not profile[name].doubtful
    ]
    return plots.ladder(curves, levels)


def dram(profile: Profile, runs: pd.DataFrame) -> Figure | None:
    """A GPU's DRAM bandwidth against bytes in flight; None on a CPU, or where no run has the sweep."""
    rows = behind(profile, runs, "dram_bandwidth")
    if rows.empty or "dram_bandwidth_bytes_per_s" not in profile:
        return None
    curves = [
        Curve(pick(rows, "dram_bandwidth", "bandwidth_bytes_per_s", method="nvrtc", mode=mode), mode)
        for mode in ("read", "write", "copy")
    ]
    bound = profile["dram_bandwidth_bytes_per_s"].bound_upper
    return plots.against_bytes_in_flight(
        [curve for curve in curves if len(curve.rows)], bound, "B/s", f"DRAM of {profile.name}"
    )


def bandwidth_by_threads(profile: Profile, runs: pd.DataFrame) -> Figure | None:
    """A CPU's read bandwidth of each level against the number of threads; None on a GPU, or where no run has it."""
    rows = behind(profile, runs, "host_bandwidth")
    rows = rows if rows.empty else pick(rows, "host_bandwidth", "bandwidth_bytes_per_s", kind="read")
    if rows.empty or rows["point.threads"].nunique() < 2:
        return None
    levels = ("l1", "l2", "l3", "dram")
    curves = [Curve(rows[rows["point.level"] == level], level.upper()) for level in levels]
    figure = plots.lines(
        [curve for curve in curves if len(curve.rows)],
        x="threads",
        xlabel="threads, one to a core",
        ylabel="B/s",
        title=f"Bytes per second from each level of {profile.name}",
    )
    figure.axes[0].yaxis.set_major_formatter(lambda value, _: plots.si(value))
    return figure


def pictures(profile: Profile, runs: pd.DataFrame) -> list[Picture]:
    figures = (
        ("The memory ladder: latency against footprint", ladder(profile, runs)),
        ("DRAM bandwidth against bytes in flight", dram(profile, runs)),
        ("Bandwidth of each level against threads", bandwidth_by_threads(profile, runs)),
        ("Measured values as shares of their physical bounds", _shares(profile)),
    )
    return [Picture(shows, _svg(figure)) for shows, figure in figures if figure is not None]


def _shares(profile: Profile) -> Figure | None:
    return plots.share_of_bound(profile) if plots.rates_with_a_bound(profile) else None


def _svg(figure: Figure) -> bytes:
    drawn = io.BytesIO()
    figure.savefig(drawn, format="svg", metadata={"Date": None})
    plt.close(figure)
    return drawn.getvalue()
