"""Lines of a campaign with made-up numbers."""

from attention.campaign import plan
from attention.campaign.posed import Posed, parse
from attention.campaign.rows import ProblemTiming, TileTiming
from attention.variant import Config, Variant, by_path

HOPPER, AMPERE = "sm90a/forward/warp_specialised", "sm80/forward/software_pipelined"
OURS: tuple[Variant, ...] = tuple(map(by_path, (HOPPER, AMPERE)))
GPU = "h200-sxm-141gb"
ONE = parse("prefill 1 8 8 1024 1024 128 bf16 causal")
OTHER = parse("short 4 8 8 256 256 64 bf16")


def tile(keys: int, *seconds: float, variant: str = HOPPER) -> TileTiming:
    """A configuration of the Hopper kernel, or of Ampere's, with so many keys."""
    if variant == AMPERE:
        config = {"warps": 4, "tile_keys": keys}
    else:
        config = {"tile_keys": keys, "warpgroups": 2, "stages": 2, "q_in_registers": 1}
    clocks = (1700.0,) * len(seconds)
    return TileTiming(variant=variant, config=config, seconds=seconds, clock_mhz=clocks, power_w=clocks)


def pick(keys: int, variant: str = HOPPER) -> tuple[str, Config]:
    return tile(keys, 1.0, variant=variant).pick


def line(posed: Posed, *tiles: TileTiming, campaign: int = 1, **changes: object) -> ProblemTiming:
    """A line of a campaign; `changes` are other fields."""
    told = {"gpu": GPU, "set": "a", "campaign": campaign, "commit": "c" * 40, "dirty": False, "seed": "a 1"}
    when = {"measured_utc": "2026-01-01T00:00:00+00:00", "wall_s": 1.0, "texts": plan.texts("sm90a")}
    what = {"kind": posed.kind, "problem": posed.problem, "lengths": posed.lengths, "used": posed.used}
    return ProblemTiming.model_validate(told | when | what | {"tiles": tiles} | changes)
