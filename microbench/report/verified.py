"""The tables of data/verification as text: what was compiled for each architecture, and ptxas' own latencies."""

from microbench.arch import ARCHS
from microbench.report import markdown
from microbench.verification.tables import BuildRow, LatencyRow, read


def build_matrix() -> str:
    """One line per architecture: kernels compiled, contracts kept, and the most that a kernel occupies."""
    lines = []
    rows = read(BuildRow)
    for arch in ARCHS:
        here = [row for row in rows if row.arch == arch.name]
        if here:
            cells = (
                len(here),
                sum(row.builds for row in here),
                sum(row.kept for row in here),
                max(row.registers_max for row in here),
                max(row.smem_bytes_max for row in here),
                max(row.spill_bytes_max for row in here),
                max(row.instructions_max for row in here),
            )
            compilers = " ".join(sorted({row.nvrtc for row in here}))
            lines.append((f"{arch.generation} `{arch.name}`", *map(str, cells), compilers))
    headings = ("architecture", "probes", "kernels compiled", "contracts kept", "most registers")
    return markdown((*headings, "static smem B", "spilled B", "most instructions", "NVRTC"), tuple(lines))


def static_latency() -> str:
    """One line per instruction, one column per architecture: cycles, or that a scoreboard decides; * where both do."""
    rows = read(LatencyRow)
    columns = [arch.name for arch in ARCHS if any(row.arch == arch.name for row in rows)]
    cells = {(row.instruction, row.arch): _cycles(row) for row in rows}
    lines = tuple(
        (f"`{name}`", *(cells.get((name, column), "") for column in columns))
        for name in dict.fromkeys(row.instruction for row in rows)
    )
    return markdown(("instruction", *columns), lines)


def _cycles(row: LatencyRow) -> str:
    if row.scoreboard == "yes":
        return "scoreboard"
    return row.cycles.replace(" ", " or ") + ("*" if row.scoreboard == "in part" else "")
