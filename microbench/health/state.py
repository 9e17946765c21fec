"""What a board says of itself, and which of it is a finding: memory errors, a narrow link, a clock held back."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from microbench.machine.nvml import State
from microbench.results.record import Run

# Idle boards lower their link's generation to save power, never its width.
HOT_C = 85.0
# What no healthy board meets; a power cap every one does under load.
HELD_BACK = {f"throttled:{reason}" for reason in ("hw-slowdown", "sw-thermal", "hw-thermal", "hw-power-brake")}


@dataclass(frozen=True)
class Finding:
    """One thing that is off: which quantity, and a sentence with its numbers."""

    about: str
    text: str

    def __str__(self) -> str:
        return f"{self.about}: {self.text}"


def of_run(run: Run) -> Iterator[Finding]:
    """What the rows say of the board beside their numbers, and lines of which nobody knows what they said."""
    if run.problems:
        yield Finding("file", f"{len(run.problems)} of its lines cannot be read; the first: {run.problems[0]}")
    held = Counter(flag for row in run.records for flag in row.flags if flag in HELD_BACK)
    for flag, count in held.most_common():
        yield Finding("clock", f"NVML said {flag} of {count} rows of {len(run.records)} while they were measured.")
    heat = [row.value for row in run.records if row.metric == "temperature_c" and row.value is not None]
    if heat and max(heat) >= HOT_C:
        yield Finding("temperature", f"{max(heat):.0f} °C under load; look at its cooling.")


def of_state(state: State) -> Iterator[Finding]:
    """What NVML's facts show; a fact that a board does not tell is no finding."""
    if state.ecc is False:
        yield Finding(
            "ECC", "it is off, so that errors of memory go unseen; `nvidia-smi -e 1` and a reboot turn it on."
        )
    if state.ecc_uncorrected:
        yield Finding("ECC", f"{state.ecc_uncorrected} uncorrected errors since the board was made; have it looked at.")
    if state.rows_failed:
        yield Finding("memory", "a row could not be remapped; the board is due for replacement.")
    elif state.rows_pending:
        yield Finding("memory", "a row waits to be remapped; reset the GPU or reboot.")
    if state.link_width and state.link_width_most and state.link_width < state.link_width_most:
        yield Finding(
            "PCIe", f"{state.link_width} of {state.link_width_most} lanes; seat the board anew, or look at its slot."
        )
    held = [reason for reason in state.throttled if reason != "power-cap"]  # which every board meets under load
    if held:
        yield Finding("clock", f"NVML says that it is held back: {', '.join(held)}.")
    if state.temperature_c is not None and state.temperature_c >= HOT_C:
        yield Finding("temperature", f"{state.temperature_c:.0f} °C; look at its cooling.")
    if state.power_limit_w and state.power_limit_usual_w and state.power_limit_w < state.power_limit_usual_w:
        yield Finding("power", f"limited to {state.power_limit_w:.0f} of {state.power_limit_usual_w:.0f} W.")
