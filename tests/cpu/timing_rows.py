"""Rows of data/attention with made-up numbers."""

from attention.timed.timing import Timing


def made_up(seconds: float, variant: str, **changes: object) -> Timing:
    """A forward on a CPU that took `seconds` each time; `changes` are other fields."""
    what = {"shape": (1, 8, 8, 1024, 1024, 64, 64), "dtype": "float32", "causal": False, "variant": variant}
    found = {"seconds": seconds, "low": seconds, "high": seconds, "n": 11, "error": 0.0, "allowed_error": 1.0}
    where = {"gpu": "host-test-4c", "measured_utc": "2026-01-01T00:00:00+00:00", "threads": 1}
    return Timing.model_validate(what | found | where | changes)
