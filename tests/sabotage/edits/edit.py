"""What an edit is: a probe's source, its headers or a define, changed as text, and what becomes of it."""

from dataclasses import dataclass, field
from typing import Literal

from microbench.point import Value

Text = tuple[str, str]  # what stands there, and what stands in its place
By = Literal["contract", "results", "nobody"]
KERNEL = ""  # the probe's own .cu
TIMER: Text = ("ptx::clock64()", "(long long)ptx::globaltimer()")
HALF: Text = ("  long long start = ptx::clock64();", "  int half = trips / 2;\n  long long start = ptx::clock64();")


@dataclass(frozen=True)
class Edit:
    """One changed kernel, by its number in the audit where it has one (instrument audit of 2026-11-22, E1 to E20).

    by      who refuses it: the contract on its machine code; its results, when it is executed; nobody, where the
            number stays right
    says    what the reason holds
    """

    what: str
    probe: str
    by: By
    says: str = ""
    point: dict[str, Value] = field(default_factory=dict)
    texts: dict[str, tuple[Text, ...]] = field(default_factory=dict)
    defines: dict[str, int] = field(default_factory=dict)
    build: int = 0
    arch: str = "sm90a"
