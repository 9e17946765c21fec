"""Lines of data/campaigns with made-up numbers."""

from pathlib import Path

from attention.campaign import rows
from attention.campaign.posed import parse
from attention.campaign.rows import ProblemTiming, TileTiming
from attention.timed.identity import text_sha256
from attention.variant import by_path

GPU = "h100-test"
OURS = "sm90a/forward/warp_specialised"
CONFIG = by_path(OURS).configs()[0]
FREEZE = "a" * 40


def tile(seconds: float, variant: str = OURS, **changes: object) -> TileTiming:
    """A candidate that took `seconds` each time; a kernel of ours in its first configuration."""
    config = dict(CONFIG.values) if variant == OURS else {}
    return TileTiming.model_validate({"variant": variant, "config": config, "seconds": (seconds,) * 3} | changes)


def line(text: str, *tiles: TileTiming, **changes: object) -> ProblemTiming:
    """A problem as it is typed (attention.campaign.posed), with the candidates that were timed on it."""
    posed = parse(text)
    what = {"kind": posed.kind, "problem": posed.problem, "lengths": posed.lengths, "used": posed.used, "tiles": tiles}
    where = {"gpu": GPU, "set": "a", "campaign": 1, "measured_utc": "2026-01-01T00:00:00+00:00", "wall_s": 1.0}
    code = {"commit": None, "dirty": None, "seed": "0", "texts": {OURS: text_sha256(OURS)[:16]}}
    return ProblemTiming.model_validate(what | where | code | {"packages": {"torch": "2.11.0"}} | changes)


def append(text: str, *tiles: TileTiming, **changes: object) -> Path:
    """The same, on file."""
    return rows.append(line(text, *tiles, **changes))
