"""A profile as a table: what was measured, what physics allows, and what others published.

`rows` builds it, `table` draws it for a terminal, `markdown` for a page; report/html.py makes a page that travels.
"""

from dataclasses import dataclass

from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from microbench.console import si
from microbench.published import Published
from microbench.published.verdict import Acceptance, Comparison, accept, compare
from microbench.results.doubt import doubts, told
from microbench.results.profile import Profile
from microbench.results.profile_constant import TWIN_SUFFIX, ProfileConstant

HEADINGS = ("quantity", "value", "min to max of n", "unit", "physical bound", "published", "verdict")
_MEASURED = len(HEADINGS) - 2  # the others are for what somebody has published
_NUMBERS = ("value", "min to max of n", "physical bound")
_WIDE_COLUMNS = 130
_WIDE_MEASURED_COLUMNS = 100
# What a reader asks of a machine first, in words that name the instruction and the unit that executes it.
_RATES = {
    "dram_bandwidth_bytes_per_s": "DRAM, read by every SM",
    "l2_bandwidth_bytes_per_s": "L2, read by every SM: 8 MiB, or what half of it holds",
    "smem_bandwidth_bytes_per_clk_sm": "shared memory, read",
    "dram_latency_cycles": "DRAM, one load after another",
    "l2_latency_cycles": "L2, one load after another",
    "l1_latency_cycles": "L1, one load after another",
    "mufu_ex2_per_clk_sm": "MUFU.EX2: the `2^x` of a softmax",
    "mma_bf16_burst_flops_per_s": "tensor cores by `mma.sync`, bf16",
    "wgmma_bf16_burst_flops_per_s": "tensor cores by `wgmma`, bf16, random numbers",
    "tcgen05_bf16_burst_flops_per_s": "tensor cores by `tcgen05.mma`, bf16, both operands in shared memory",
    "tcgen05_bf16_ts_burst_flops_per_s": "the same with p in tensor memory, as in attention",
    "tcgen05_bf16_pair_burst_flops_per_s": "the same by two SMs together (`cta_group::2`)",
    "tcgen05_e4m3_burst_flops_per_s": "tensor cores by `tcgen05.mma`, fp8",
    "tcgen05_bf16_latency_cycles": "`tcgen05.mma`, bf16, one after another",
    "tmem_load_bytes_per_clk_sm": "tensor memory, loaded into registers",
    "tmem_store_bytes_per_clk_sm": "tensor memory, stored from registers",
    "tmem_copy_bytes_per_clk_sm": "tensor memory, copied from shared memory",
    "tmem_load_latency_cycles": "tensor memory, one load after another",
}
_STYLES = {"agrees": "green", "disagrees": "red", "method differs": "yellow", "no published value": "dim"}


@dataclass(frozen=True)
class Row:
    """One line of the table, as text. A lower bound begins with '≥', an interval in doubt ends with '?'."""

    quantity: str
    value: str
    interval: str
    unit: str
    bound: str
    published: str
    source: str
    verdict: str

    @property
    def cells(self) -> tuple[str, ...]:
        published = f"{self.published} ({self.source})" if self.published else ""
        return self.quantity, self.value, self.interval, self.unit, self.bound, published, self.verdict


def _columns(lines: tuple[Row, ...]) -> int:
    """How many of HEADINGS have anything to say: of a CPU nobody has published these quantities."""
    return len(HEADINGS) if any(line.published for line in lines) else _MEASURED


def rows(profile: Profile, published: Published | None = None) -> tuple[Row, ...]:
    """One row per constant of the profile, in its order. Raises DataError where data/published is damaged."""
    comparisons = compare(profile, published)
    return tuple(_row(constant, found) for constant, found in zip(profile.constants, comparisons, strict=True))


def _row(constant: ProfileConstant, comparison: Comparison) -> Row:
    value, unit = constant.value, constant.unit
    by = si.scale(value, unit)
    at_least = "≥ " if constant.label == "lower bound" else ""
    return Row(
        quantity=constant.name,
        value=at_least + si.digits(value / by.divisor),
        interval=f"{si.interval(constant.low, constant.high, value, unit)} of {constant.n}" + " ?" * constant.doubtful,
        unit=by.unit,
        bound=_bound(constant, by),
        published=_published(comparison, by),
        source=_source(comparison),
        verdict=comparison.verdict,
    )


def _bound(constant: ProfileConstant, by: si.Scale) -> str:
    ends = (("≥", constant.bound_lower), ("≤", constant.bound_upper))
    written = [f"{sign} {si.digits(limit / by.divisor)}" for sign, limit in ends if limit is not None]
    return " and ".join(written) or "unknown"


def _published(comparison: Comparison, by: si.Scale) -> str:
    if comparison.published is None or comparison.published_low is None or comparison.published_high is None:
        return ""
    low, high = (si.digits(end / by.divisor) for end in (comparison.published_low, comparison.published_high))
    return low if low == high else f"{low} to {high}"


def _source(comparison: Comparison) -> str:
    """The best row's source and board, and how many more rows the range is of."""
    if not comparison.rows:
        return ""
    more = f" and {comparison.rows - 1} more" if comparison.rows > 1 else ""
    return f"{comparison.source.split()[0]}, {comparison.gpu}{more}"


class ResultTable(Table):
    """The rows on a terminal: one line each where the columns fit, else two lines of four columns."""

    def __init__(self, title: str, lines: tuple[Row, ...]) -> None:
        super().__init__(title=title, title_justify="left")
        self.lines, self.count = lines, _columns(lines)
        for heading in HEADINGS[: self.count]:
            self.add_column(heading, justify="right" if heading in _NUMBERS else "left", overflow="fold")
        for line in lines:
            cells = (*map(Text, line.cells[:-1]), Text(line.verdict, _STYLES[line.verdict]))
            self.add_row(*cells[: self.count])

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Fewer columns where the terminal is narrow."""
        wanted = _WIDE_COLUMNS if self.count > _MEASURED else _WIDE_MEASURED_COLUMNS
        shown = self if options.max_width >= wanted else self._narrow()
        return Table.__rich_console__(shown, console, options)

    def _narrow(self) -> Table:
        published = self.count > _MEASURED
        drawn = Table(title=self.title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
        drawn.add_column("quantity, published, verdict" if published else "quantity", overflow="fold")
        for heading in _NUMBERS:
            drawn.add_column(heading.removeprefix("physical "), justify="right", overflow="fold")
        for line in self.lines:
            verdict = Text(f"  {line.verdict}", _STYLES[line.verdict])
            below = Text(f": {line.published}" if line.published else "", "dim")
            first = Text.assemble(line.quantity, "\n", verdict, below) if published else Text(line.quantity)
            drawn.add_row(first, Text(f"{line.value} {line.unit}"), Text(line.interval), Text(line.bound))
        return drawn


def table(profile: Profile, published: Published | None = None) -> ResultTable:
    return ResultTable(f"{profile.name} ({profile.gpu})", rows(profile, published))


def legend(profile: Profile) -> tuple[str, ...]:
    """What the signs of the table mean, where it has any that does not speak for itself."""
    return ("?: in doubt, so no pick uses it.",) if profile.doubtful else ()


def markdown(headings: tuple[str, ...], lines: tuple[tuple[str, ...], ...]) -> str:
    body = [headings, tuple("---" for _ in headings), *lines]
    return "\n".join("| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |" for line in body)


def results(profile: Profile, published: Published | None = None) -> str:
    lines = rows(profile, published)
    count = _columns(lines)
    return markdown(HEADINGS[:count], tuple(row.cells[:count] for row in lines))


def headline(profile: Profile, published: Published | None = None) -> str:
    """The rows that a reader looks for first: rates, and what somebody else has published, by the first method."""
    shown = (
        row.cells
        for row in rows(profile, published)
        if not row.quantity.endswith(TWIN_SUFFIX) and (row.published or row.quantity.endswith("_per_s"))
    )
    return markdown(HEADINGS, tuple(shown))


def rates(profile: Profile, published: Published | None = None) -> str:
    """What a reader asks for first, in words, as a Markdown table."""
    found = {row.quantity: row for row in rows(profile, published)}
    shown = ((what, *found[name].cells) for name, what in _RATES.items() if name in found)
    lines = tuple((what, f"{value} {unit}", interval, *rest) for what, _, value, interval, unit, *rest in shown)
    return markdown(("what", "measured", "min to max of n", "physical bound", "published", "verdict"), lines)


def acceptance(profile: Profile, published: Published | None = None) -> str:
    """What the profile must lie in (data/published/acceptance.csv), as a Markdown table."""
    lines = tuple(_accepted(found) for found in accept(profile, published))
    return markdown(("quantity", "value", "band", "unit", "verdict", "basis"), lines)


def _accepted(found: Acceptance) -> tuple[str, ...]:
    by = si.scale(next(v for v in (found.value, found.low, found.high) if v is not None), found.unit)
    low, high = ("" if end is None else si.digits(end / by.divisor) for end in (found.low, found.high))
    band = f"{low} to {high}" if low and high else f"≥ {low}" if low else f"≤ {high}"
    value = "" if found.value is None else si.digits(found.value / by.divisor)
    return found.constant, value, band, by.unit, found.verdict, found.basis


def page(profile: Profile, published: Published | None = None) -> str:
    gigahertz = f", {profile.clock_hz / 1e9:.3g} GHz at most" if profile.clock_hz else ""
    units = "cores" if profile.arch == "host" else "SMs"
    head = f"# {profile.name}\n\n`{profile.gpu}`, {profile.arch}, {profile.sm_count} {units}{gigahertz}.\n"
    parts = [head, "## Results\n", results(profile, published) + "\n"]
    parts += ["\n".join(f"- {sentence}" for sentence in told(doubts(profile))) + "\n"] if profile.doubtful else []
    parts += ["## Bounds\n", _whys(profile) + "\n"]
    bands = accept(profile, published)
    if bands:
        parts += ["## Acceptance\n", acceptance(profile, published) + "\n"]
    differing = [found for found in compare(profile, published) if found.verdict in ("disagrees", "method differs")]
    if differing:
        parts += ["## Where publications say otherwise\n", "\n".join(map(_difference, differing)) + "\n"]
    return "\n".join(parts)


def _difference(found: Comparison) -> str:
    where = f"{found.gpu} ({found.source}; {found.conditions or 'no conditions'})"
    return f"- `{found.constant}` against {where}: {found.verdict}, {found.why}."


def _whys(profile: Profile) -> str:
    lines = tuple((c.name, c.bound_why, c.probe, c.method, str(c.n), ", ".join(c.flags)) for c in profile.constants)
    return markdown(("quantity", "what limits it", "probe", "method", "campaigns", "flags"), lines)
