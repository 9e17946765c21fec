"""Lines of `smscope tune` with made-up numbers, and a machine that has the GPU they are of."""

import pytest

from attention.campaign.posed import Posed, parse
from attention.choose import here, learned_key, tunings, tunings_file
from attention.choose.here import Here
from attention.choose.tunings_file import TEXT_DIGITS, Line, TimedCandidate, key_of
from attention.variant import Config
from microbench.results.profile import Profile
from tests.cpu.campaign_rows import GPU, HOPPER

HERE = Here(GPU, "580.95.05", "2.11.0+cu128")
POSED = parse("prefill 4 16 16 4096 4096 128 bf16 causal")
SLOW_TILE = Config((("tile_keys", 64), ("warpgroups", 2), ("stages", 2), ("q_in_registers", 1)))
CUDNN, FLASH, EFFICIENT = "peer/torch_cudnn", "peer/torch_flash", "peer/torch_efficient"


def here_is(monkeypatch: pytest.MonkeyPatch, found: Here | None) -> None:
    """This machine has the GPU of every profile, under that driver and torch; or has it not."""
    monkeypatch.setattr(here, "here_of", lambda profile: found)
    tunings.forget()


def timed(variant: str, *seconds: float, config: Config | None = None, failure: str | None = None) -> TimedCandidate:
    return TimedCandidate(
        variant=variant, config=dict(config.values) if config else {}, seconds=seconds, failure=failure
    )


def line(*candidates: TimedCandidate, posed: Posed = POSED, **changes: object) -> Line:
    """A line that holds here; `changes` are other fields."""
    texts = {HOPPER: learned_key.texts()[HOPPER][:TEXT_DIGITS]}
    told = {"gpu": HERE.gpu, "driver": HERE.driver, "torch": HERE.torch, "texts": texts, "seed": "tune x"}
    when = {"measured_utc": "2027-01-01T00:00:00+00:00", "wall_s": 1.0}
    what = {"key": key_of(posed.problem), "problem": posed.problem, "lengths": posed.lengths, "used": posed.used}
    return Line.model_validate(told | when | what | {"candidates": candidates} | changes)


def h200() -> Profile:
    return Profile.load(GPU)


def stored(*lines: Line) -> None:
    """Appended, as `smscope tune` does."""
    for each in lines:
        tunings_file.append(each)
    tunings.forget()
