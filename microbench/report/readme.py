"""Figures in prose come from data/: the text between two markers is generated, and a test says when it is stale.

    <!-- generated: results-h100-sxm-80gb -->
    ...
    <!-- /generated -->

`python -m smscope.readme` writes every block of README.md, docs/ and the README files in data/ again.
"""

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from microbench import paths
from microbench.console import si
from microbench.errors import DataError, InputError
from microbench.published import Published, load
from microbench.report import acceptance, headline, markdown, rates, results, verified
from microbench.report.repeated import repeated
from microbench.results.profile import Profile

_OF_A_GPU = {
    "headline": headline,
    "rates": rates,
    "results": results,
    "acceptance": acceptance,
    "repeated": repeated,
}
_BLOCK = re.compile(r"<!-- generated: (?P<name>[\w.-]+) -->\n(?P<body>.*?)<!-- /generated -->", re.DOTALL)


def blocks(text: str) -> tuple[str, ...]:
    """The names of the generated blocks of `text`, in order."""
    return tuple(match["name"] for match in _BLOCK.finditer(text))


def fill(text: str, name: str, content: str) -> str:
    """`text` with `content` in every block called `name`. Raises InputError where there is none."""
    if name not in blocks(text):
        raise InputError(
            f"No block is called {name!r}; put '<!-- generated: {name} -->' and '<!-- /generated -->' there."
        )

    def written(match: re.Match[str]) -> str:
        if match["name"] != name:
            return match[0]
        return f"<!-- generated: {name} -->\n{content.strip()}\n<!-- /generated -->"

    return _BLOCK.sub(written, text)


def generated(name: str) -> str:
    """What belongs into the block called `name`. Raises InputError for an unknown name, UnknownGpu, DataError."""
    if name in _GENERATORS:
        return _GENERATORS[name]()
    kind, _, gpu = name.partition("-")
    if kind in _OF_A_GPU and gpu:
        return _OF_A_GPU[kind](Profile.load(gpu))
    known = ", ".join([*_GENERATORS, *(f"{kind}-<gpu>" for kind in _OF_A_GPU)])
    raise InputError(f"Nothing generates a block called {name!r}; there are {known}.")


def refreshed(text: str, generate: Callable[[str], str] = generated) -> str:
    """`text` with every block generated again, each by its name."""
    for name in dict.fromkeys(blocks(text)):
        text = fill(text, name, generate(name))
    return text


def stale(text: str, generate: Callable[[str], str] = generated) -> tuple[str, ...]:
    """The names of the blocks whose content is not what data/ gives today."""
    return tuple(name for name in dict.fromkeys(blocks(text)) if fill(text, name, generate(name)) != text)


def published_files() -> str:
    """Every table of data/published and its number of rows."""
    tables = load()
    counts = (
        ("measurements.csv", len(tables.facts), "one published number a row"),
        ("attention.csv", len(tables.attention), "the speed of one attention kernel on one shape"),
        ("specs.csv", len(tables.specs), "vendors' specifications, one board a row"),
        ("cc_limits.csv", len(tables.limits), "what a compute capability has per SM and per thread"),
        ("cc_op_throughput.csv", len(tables.rates), "documented results per clock and SM"),
        ("gpus.csv", len(tables.gpus), "boards as the sources call them: chip, our name, specification"),
        ("sources.csv", len(tables.sources), "citations, what was read, licence"),
        ("quantities.csv", len(tables.quantities), "which published quantity speaks about which of our constants"),
        ("acceptance.csv", len(tables.bands), "bands that our constants must lie in"),
        ("rejected.csv", len(tables.rejected), "numbers that were published and are wrong"),
        ("kinds.csv", len(tables.kinds), "kinds of GPU that have a published profile, and their boards"),
    )
    return markdown(("file", "rows", "holds"), tuple((f"`{name}`", str(n), what) for name, n, what in counts))


def published_coverage() -> str:
    """How many numbers there are of each generation, how many of them are trusted, and of which boards."""
    tables = load()
    generation = {gpu.name: gpu.generation for gpu in tables.gpus}
    every = Counter(generation[fact.gpu] for fact in tables.facts)
    trusted = Counter(generation[fact.gpu] for fact in tables.facts if fact.trusted)
    kernels = Counter(generation[fact.gpu] for fact in tables.attention)
    lines = (
        (name, *(str(count[name]) for count in (every, trusted, kernels)))
        for name in dict.fromkeys(generation.values())
    )
    return markdown(("generation", "measurements", "of them trusted", "attention"), tuple(lines))


def published_sources() -> str:
    """The citations."""
    lines = tuple((s.id, s.citation, s.read, s.trust, s.licence) for s in load().sources)
    return markdown(("id", "citation", "what was read", "trust", "licence"), lines)


def published_bands() -> str:
    """The bands of acceptance.csv."""
    lines = []
    for band in load().bands:
        by = si.scale(next(end for end in (band.low, band.high) if end is not None), band.unit)
        low, high = ("" if end is None else si.digits(end / by.divisor) for end in (band.low, band.high))
        machines = f"{band.gpu} boards" if band.gpu else band.arch
        lines.append((machines, f"`{band.constant}`", low, high, by.unit, band.basis))
    return markdown(("machines", "constant", "low", "high", "unit", "basis"), tuple(lines))


def published_rejected() -> str:
    """The wrong numbers of rejected.csv."""
    tables: Published = load()
    lines = tuple(
        (r.gpu, f"`{r.quantity}`", si.written(r.value, r.unit), r.source, r.gate, r.why) for r in tables.rejected
    )
    return markdown(("machine", "quantity", "published", "source", "gate", "why it is wrong"), lines)


_GENERATORS: dict[str, Callable[[], str]] = {
    "static-latency": verified.static_latency,
    "blind-bugs": verified.blind_bugs,
    "published-files": published_files,
    "published-coverage": published_coverage,
    "published-sources": published_sources,
    "published-bands": published_bands,
    "published-rejected": published_rejected,
}


def pages() -> tuple[Path, ...]:
    """The texts of the checkout that may hold generated blocks. Raises DataError where there is no checkout."""
    if paths.CHECKOUT is None:
        raise DataError("The README files belong to a checkout; clone the project to write them again.")
    candidates = (
        paths.CHECKOUT / "README.md",
        paths.CHECKOUT / "CONTRIBUTING.md",
        *sorted((paths.CHECKOUT / "docs").glob("*.md")),
        paths.SHIPPED / "published" / "README.md",
        paths.SHIPPED / "verification" / "README.md",
    )
    return tuple(file for file in candidates if file.is_file())
