"""How our pick stands beside peers by the lines of the set of floors, and the floors that were set: pure functions.

Every ratio is a speed of our pick over a speed of something else, so that above 1 ours is faster, and a floor is the
least that is asked. Seconds are medians.

    torch, FlashAttention-4   theirs over ours; of torch's kernels the fastest
    ours                      of our configurations that were timed the fastest, over the pick: at most 1
    unmasked                  our pick without the mask, over that with it
    evenly dealt              the same tokens in sequences of equal length. Skewed they have more scores (2.7 times as
                              many where one of 512 has 8192 of 139,008 tokens), so that seconds of a score are compared
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from attention.campaign.posed import Posed
from attention.campaign.rows import ProblemTiming, TileTiming
from attention.campaign.set_floors import Point, points
from attention.compare.candidates import FLASH_4, TORCHS

Against = Literal["torch", "FlashAttention-4", "ours", "unmasked", "evenly dealt"]
MOST_SKEWED = 1.1  # the cost of skewed packing over that of packing dealt evenly
FLOORS: Mapping[Point, Mapping[Against, float]] = {
    "head dims": {"torch": 1.00, "FlashAttention-4": 0.97},
    "value dims": {"FlashAttention-4": 1.00},
    "packed": {"evenly dealt": 1 / MOST_SKEWED},
    "ranges": {},
    "masks": {"unmasked": 0.80, "torch": 1.00},
    "small": {"torch": 1.00},
}


@dataclass(frozen=True)
class Ratio:
    """Our pick's speed over another's, `by` whom, and the floor where there is one.

    `value` is None where the other was not timed; `refused` where it was asked and gave no right result. `eager`: the
    other's call was in no CUDA graph, so that its seconds hold the host's as well.
    """

    against: Against
    value: float | None
    least: float | None = None
    by: str = ""
    eager: bool = False
    refused: bool = False

    @property
    def met(self) -> bool | None:
        """None where nothing is asked, or nothing was timed."""
        return None if self.least is None or self.value is None else self.value >= self.least


@dataclass(frozen=True)
class Standing:
    """Our pick on one problem. `pick` is None where a line names none; one that failed has no samples."""

    posed: Posed
    point: Point | None
    campaign: int
    pick: TileTiming | None
    ratios: tuple[Ratio, ...]

    @property
    def seconds(self) -> float | None:
        return self.pick.median if self.pick and self.pick.seconds else None

    @property
    def tflops(self) -> float | None:
        return self.posed.flops / self.seconds / 1e12 if self.seconds else None

    def ratio(self, against: Against) -> Ratio:
        return next((each for each in self.ratios if each.against == against), Ratio(against, None))

    @property
    def missed(self) -> tuple[Ratio, ...]:
        return tuple(each for each in self.ratios if each.met is False)

    @property
    def open(self) -> tuple[Ratio, ...]:
        """The floors of which nothing was timed: neither met nor missed. What the other refuses holds for nothing."""
        asked = (each for each in self.ratios if each.least is not None and not each.refused)
        return tuple(each for each in asked if each.value is None)


def standings(lines: Iterable[ProblemTiming]) -> tuple[Standing, ...]:
    """Of every problem its last line, in the order of the set."""
    last = {str(line.posed): line for line in lines}
    order = [*points(), *(name for name in last if name not in points())]
    return tuple(_standing(last[name], last) for name in order if name in last)


def partner(posed: Posed) -> tuple[Against, str] | None:
    """The problem beside which a masked or a skewed one is judged, as a line's own, or None."""
    problem = posed.problem
    if problem.mask != "none":
        plain: dict[str, Any] = {"mask": "none", "mask_dtype": ""}
        return "unmasked", str(replace(posed, problem=replace(problem, **plain)))
    if not posed.lengths or max(posed.lengths) - min(posed.lengths) <= 1:
        return None
    count, tokens = len(posed.lengths), sum(posed.lengths)
    short, longer = tokens // count, tokens % count
    even = (*(short,) * (count - longer), *(short + 1,) * longer)
    dealt: dict[str, Any] = {"seq_q": max(even), "seq_kv": max(even)}
    return "evenly dealt", str(replace(posed, problem=replace(problem, **dealt), lengths=even))


def _standing(line: ProblemTiming, lines: Mapping[str, ProblemTiming]) -> Standing:
    pick, point, beside = _pick(line), points().get(str(line.posed)), partner(line.posed)
    # Of these points a problem that stands beside no other is what others are judged beside.
    judged = point is not None and (beside is not None or point not in ("packed", "masks"))
    asked = FLOORS[point] if point is not None and judged else {}
    found = [
        _beside("torch", pick, [tile for tile in line.tiles if tile.variant.startswith(TORCHS)]),
        _beside("FlashAttention-4", pick, [tile for tile in line.tiles if tile.variant == FLASH_4]),
        _beside("ours", pick, [tile for tile in line.tiles if tile.is_ours]),
    ]
    if beside is not None:
        against, name = beside
        other = lines.get(name)
        scores = line.posed.flops / other.posed.flops if other and against == "evenly dealt" else 1.0
        found.append(_beside(against, pick, [tile for tile in other.tiles if tile.picked] if other else [], scores))
    ratios = tuple(replace(each, least=asked.get(each.against)) for each in found)
    return Standing(line.posed, point, line.campaign, pick, ratios)


def _pick(line: ProblemTiming) -> TileTiming | None:
    return next((tile for tile in line.tiles if tile.picked), None)


def _beside(against: Against, pick: TileTiming | None, others: Sequence[TileTiming], scores: float = 1.0) -> Ratio:
    """The pick beside the fastest of others; `scores`: how many times as many the pick has."""
    other = min((tile for tile in others if tile.seconds), key=lambda tile: tile.median, default=None)
    if other is None or pick is None or not pick.seconds:
        return Ratio(against, None, refused=bool(others) and other is None)
    return Ratio(against, scores * other.median / pick.median, by=other.variant, eager=not other.captured)
