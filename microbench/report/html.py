"""The page of one machine as one file: its figures travel inside it, so that it can be mailed, and opens anywhere.

HTML, and not Markdown with its pictures inside: what shows Markdown (GitHub, editors, mail) leaves data URIs out. The
figures are SVG images, which stay sharp and keep their ids to themselves.
"""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from microbench import files
from microbench.errors import DataError
from microbench.published import Published
from microbench.report import page
from microbench.results.profile import Profile

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; max-width: 1080px; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; font-size: 13px; display: block; overflow-x: auto; }
th, td { border-bottom: 1px solid #ddd; padding: 0.25rem 0.6rem; text-align: left; vertical-align: top; }
th { border-bottom: 2px solid #999; }
figure { margin: 1.5rem 0; }
img { max-width: 100%; }
"""


@dataclass(frozen=True)
class Picture:
    """A figure as an SVG document, and what it shows, for those who cannot see it."""

    shows: str
    svg: bytes


def html(profile: Profile, pictures: Sequence[Picture], published: Published | None = None) -> str:
    """The whole report of one machine; the pictures stand behind its first paragraph."""
    from markdown_it import MarkdownIt  # comes with rich

    body = MarkdownIt("commonmark", {"html": False}).enable("table").render(page(profile, published))
    head, results, rest = body.partition("<h2>Results</h2>")
    figures = "".join(map(_figure, pictures))
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(profile.name)}</title>'
        f"<style>{STYLE}</style></head>\n<body>\n{head}{figures}{results}{rest}</body></html>\n"
    )


def _figure(picture: Picture) -> str:
    shows, data = escape(picture.shows), base64.b64encode(picture.svg).decode()
    return f'<figure><img alt="{shows}" src="data:image/svg+xml;base64,{data}"></figure>\n'


def write(profile: Profile, pictures: Sequence[Picture], folder: Path, published: Published | None = None) -> Path:
    """Write the page to `folder`/<gpu>.html, whole or not at all, and return its path. Raises DataError."""
    file = folder / f"{profile.gpu}.html"
    try:
        files.put(file, html(profile, pictures, published))
    except OSError as error:
        text = f"Could not write {file}: {error.strerror}. Free some space or name another folder."
        raise DataError(text) from error
    return file
