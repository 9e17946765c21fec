"""A notebook's table: headings with a stroke between them, and lines of whatever has a text."""

from collections.abc import Iterable

from IPython.display import Markdown

from microbench import report


def table(headings: str, lines: Iterable[Iterable[object]]) -> Markdown:
    names = tuple(name.strip() for name in headings.split("|"))
    return Markdown(report.markdown(names, tuple(tuple(map(str, line)) for line in lines)))  # type: ignore[no-untyped-call]
