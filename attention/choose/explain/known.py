"""What an explanation says of a GPU that nobody measured: the vendor's numbers, and what others published."""

from collections.abc import Iterator

from rich.table import Table
from rich.text import Text

from microbench.console.si import counted, written
from microbench.machine.arch import by_name
from microbench.published.boards import Board, Known
from microbench.published.reported import Reported

KIB = 1024
MEMORY = "from memory, no document was read"
# Heading, column of specs.csv, its factor to the unit, and the unit.
COLUMNS = (
    ("SMs", "sm_count", 1.0, ""),
    ("boost clock", "boost_clock_mhz", 1e6, "Hz"),
    ("DRAM bandwidth", "mem_bw_gbs", 1e9, "B/s"),
    ("L2", "l2_mib", 1024.0 * KIB, "bytes"),
    ("bf16, dense", "tc_bf16_tflops", 1e12, "FLOP/s"),
    ("power", "tdp_w", 1.0, "W"),
)


def known_parts(known: Known) -> Iterator[Text | Table]:
    yield Text(
        f"Known of {known.asked}: {known.generation}, compute capability {known.compute_capability}; {_sm(known)}."
    )
    if known.boards:
        if len(known.boards) == 1 and known.sm_count is None:
            yield Text(f"Ours: unpredicted, because no document that was read counts the SMs of {known.asked}.")
        yield _boards(known)
    if known.reported:
        yield _reported(known.reported)


def _sm(known: Known) -> str:
    limits = by_name(known.arch).limits
    assert limits is not None  # every row of a GPU has them
    rates = {board.tensor_flops_per_clk for board in known.boards}
    (rate,) = rates if len(rates) == 1 else (limits.tensor_f16_flops_per_clk,)
    return (
        f"each SM gives at most {limits.fp32_lanes} FP32 results and {rate:g} FLOP of f16 "
        f"products per clock, and has {limits.smem_bytes // KIB} KiB of shared memory "
        f"({limits.smem_bytes_per_block // KIB} for a block), {limits.registers} registers and {limits.max_warps} warps"
    )


def _boards(known: Known) -> Table:
    from_memory = f"; * is {MEMORY}" if any(board.recalled for board in known.boards) else ""
    table = Table(title=f"The vendor's numbers{from_memory}", title_justify="left")
    for heading in ("board", "chip", "DRAM", *(heading for heading, *_ in COLUMNS), "source"):
        table.add_column(heading, overflow="fold")
    for board in known.boards:
        memory = _marked(board, "mem_size_gb", board.mem_size_gb and f"{board.mem_size_gb} GB")
        cells = (_cell(board, column, factor, unit) for _, column, factor, unit in COLUMNS)
        table.add_row(board.name, board.chip, memory, *cells, board.source)
    return table


def _cell(board: Board, column: str, factor: float, unit: str) -> str:
    value: float | None = getattr(board, column)
    if value is None:
        return ""
    text = written(value * factor, unit) if unit else f"{value:g}"
    return _marked(board, column, text)


def _marked(board: Board, column: str, text: str) -> str:
    return f"{text}*" if text and column in board.recalled else text


def _reported(rows: tuple[Reported, ...]) -> Table:
    title = "Published by others; smscope has not measured it, and no choice uses it"
    table = Table(title=title, title_justify="left")
    for heading in ("constant", "value", "", "best row"):
        table.add_column(heading, overflow="fold")
    for row in rows:
        low, high = written(row.low, row.unit), written(row.high, row.unit)
        value = high if low == high else f"{low} to {high}"
        table.add_row(row.constant, value, counted(row.rows, "row"), row.source)
    return table
