"""What `attention bench` prints of each candidate that it timed."""

from attention.compare.bench import Measured
from attention.seen import flops_seen
from attention.timed.timing import PRODUCTS, Timing
from microbench.console.si import written


def _ratio(each: Measured, measured: list[Measured]) -> float | None:
    """Torch's own kernel's seconds over this candidate's: above 1 is faster than torch."""
    for other in measured:
        if other.problem == each.problem and other.timing and other.candidate.variant.endswith("/torch_sdpa"):
            return other.timing.seconds / each.timing.seconds if each.timing else None
    return None


def _flops_per_s(timing: Timing) -> float:
    return flops_seen(timing.problem) * PRODUCTS[timing.passes] / timing.seconds


def row(each: Measured, measured: list[Measured]) -> dict[str, object]:
    """One candidate for `--json`."""
    timing = each.timing.model_dump(mode="json", exclude_none=True) if each.timing else None
    speed = _flops_per_s(each.timing) / 1e12 if each.timing else None
    return {
        "problem": str(each.problem),
        "candidate": each.name,
        "picked": each.picked,
        "failure": each.failure,
        "torch_over_this": _ratio(each, measured),
        "tflops": speed,
        "timing": timing,
    }


def cells(each: Measured, measured: list[Measured]) -> tuple[object, ...]:
    if each.timing is None:
        return (str(each.problem), each.name, None, None, None, None, None, each.failure)
    predicted = each.timing.predicted_seconds
    ratio = _ratio(each, measured)
    return (
        str(each.problem),
        each.name,
        written(predicted, "s") if predicted else None,
        written(each.timing.seconds, "s"),
        f"{written(each.timing.low, 's')} to {written(each.timing.high, 's')}",
        written(_flops_per_s(each.timing), "FLOP/s"),
        f"{ratio:.2f} x" if ratio else None,
        "picked" if each.picked else None,
    )
