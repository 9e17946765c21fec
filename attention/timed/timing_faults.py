"""What is wrong with a timing on file, in words: data advise a call, and never break it."""

import json
import math
from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from attention.errors import ProblemError
from attention.timed.timing import Timing
from attention.variant import Variant
from microbench.faults import first_of

LEAST_SECONDS, MOST_SECONDS = 1e-7, 1e5  # of one call: no launch, and no call into torch, is shorter
# Predicted over measured seconds. What is predicted is a bound, and a small call may be mostly overhead.
LEAST_EFFICIENCY, MOST_EFFICIENCY = 1e-6, 1e2


def of_timing(timing: Timing, file: Path) -> str | None:
    """Why a line cannot be right, whatever kernel was timed."""
    if file.stem != timing.gpu and not file.stem.startswith(f"{timing.gpu}-"):
        return f"gpu: it is of {timing.gpu!r}"
    if not LEAST_SECONDS <= timing.seconds <= MOST_SECONDS:
        return f"seconds: {timing.seconds:g} is no time of a call"
    if not 0 < timing.low <= timing.seconds <= timing.high:
        return f"low, high: [{timing.low:g}, {timing.high:g}] does not hold {timing.seconds:g} seconds"
    if timing.bound_seconds is not None and timing.seconds < timing.bound_seconds:
        return f"seconds: {timing.seconds:g} is less than the {timing.bound_seconds:g} that this GPU needs"
    if timing.n < 1:
        return f"n: {timing.n} calls"
    if min(timing.lengths, default=0) < 0:
        return "lengths: a sequence has fewer than no rows"
    try:
        timing.problem  # noqa: B018
    except ProblemError as error:
        return str(error)
    return None


def of_config(config: Mapping[str, int], variant: Variant) -> str | None:
    """Why a configuration is none of the variant's."""
    axes = dict(variant.space)
    unknown = [axis for axis in config if axis not in axes]
    later = {each.name for each in variant.settled}  # an axis was settled by a rule before
    missing = [axis for axis in axes if axis not in config and axis not in later]
    if unknown or missing:
        return f"config: {variant.path} has no {', '.join(unknown)}" if unknown else f"config: no {', '.join(missing)}"
    wrong = [f"{axis}={value}" for axis, value in config.items() if value not in axes[axis]]
    return f"config: {', '.join(wrong)} is none of {variant.path}'s" if wrong else None


def of_efficiency(efficiency: float) -> str | None:
    """Why predicted over measured seconds can be no efficiency."""
    if math.isfinite(efficiency) and LEAST_EFFICIENCY <= efficiency <= MOST_EFFICIENCY:
        return None
    return f"seconds: predicted over measured is {efficiency:.3g}, and no efficiency is"


def why_unreadable(line: str, error: ValidationError) -> str:
    """What keeps a line from being a timing."""
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return "not valid JSON"
    return first_of(error)
