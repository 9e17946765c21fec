"""The figures that README shows: written with the numbers that they draw, so that a test can see whether they hold."""

import io
import json

from matplotlib.figure import Figure
from PIL import Image

from microbench import files, paths
from microbench.results.profile import Profile
from notebooks.ladders import ablation, choice_map, set_a

CHOOSERS, CHOICE_MAP = "choosers.png", "choice_map.png"
MAPPED = "h200-sxm-141gb"
KEY = "Description"  # of a PNG's text
Numbers = dict[str, list[float]]


def save(figure: Figure, name: str, numbers: Numbers) -> None:
    """Write a figure beside the others of README, whole or not at all: tests read it while notebooks run."""
    picture = io.BytesIO()
    figure.savefig(picture, dpi=110, metadata={"Software": None, KEY: json.dumps(numbers)})
    files.put(paths.SHIPPED / "figures" / name, picture.getvalue())


def numbers_in(name: str) -> Numbers:
    """Those that a figure on file draws."""
    with Image.open(paths.SHIPPED / "figures" / name) as picture:
        found: Numbers = json.loads(picture.info[KEY])
    return found


def numbers_of_choosers() -> Numbers:
    """Mean regrets in percent, of each GPU and kernel, in the order of the rows."""
    return {
        f"{gpu} {set_a.SHORT[kernel]}": [round(100 * each.regrets.mean, 3) for each in ablation.costs(gpu, kernel)]
        for gpu in set_a.GPUS
        for kernel in set_a.SHORT
    }


def numbers_of_map() -> Numbers:
    """The tile of each place as 1000 warpgroups + keys, negative where torch's kernel is chosen; row by row."""
    profile = Profile.load(MAPPED)
    return {
        mask: [_number(each) for each in choice_map.places(profile, mask == "causal")] for mask in ("full", "causal")
    }


def _number(place: choice_map.Place) -> float:
    if not place.is_hopper:
        return 0.0
    warpgroups, keys, held = place.tile
    return (1000 * warpgroups + keys + held / 2) * (-1 if place.is_torchs else 1)
