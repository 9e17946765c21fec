"""The small line under a figure that says whose numbers it draws, so that the picture says it by itself."""

import textwrap
from collections.abc import Iterable

from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties

TABLES = "ids of data/published/sources.csv"
GREY = "#5c6670"
WIDTH = 150  # characters of a line, 7 points high, under a figure of 9.5 inches


def sourced(figure: Figure, own: Iterable[str], pale: Iterable[str] = ()) -> Figure:
    """Write it. Each source is an id, or several with commas between; `pale` are those of what is drawn pale."""
    said = f"Sources: {_listed(own)}"
    if others := _listed(pale):
        said += f". Pale: {others}"
    lines = textwrap.fill(f"{said} ({TABLES}).", WIDTH)
    if figure.legends:  # has the lower edge, and makes room for a title
        figure.legends[0].set_title(lines, prop=FontProperties(size=7))
        figure.legends[0].get_title().set_color(GREY)
    else:
        figure.supxlabel(lines, x=0.01, ha="left", fontsize=7, color=GREY)
    return figure


def _listed(sources: Iterable[str]) -> str:
    every = (each.strip() for several in sources for each in several.split(","))
    return ", ".join(dict.fromkeys(each for each in every if each))
