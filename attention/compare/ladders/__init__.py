"""Ladders: what each idea of a kernel brings, from the simplest right pipeline to the pick, and what was rejected.

One file a kernel. A rung is the committed kernel, built with other defines.
"""

from collections.abc import Callable
from dataclasses import dataclass

from attention.problem import AttentionProblem
from attention.variant import Config
from microbench.results.profile import Profile


@dataclass(frozen=True)
class Rung:
    """One idea, and the configuration that has it.

    `beside` names the rung that has everything but this idea, '' for the first. An `aside` is no step to the whole
    kernel: it is the whole without something, or what was rejected. `lacks` says why a rung is not timed.
    """

    name: str
    beside: str
    config: Config
    aside: bool = False
    lacks: str = ""


@dataclass(frozen=True)
class Ladder:
    """The rungs of one variant (its path under kernels/) for a problem on the machine of a profile, in their order."""

    variant: str
    rungs: Callable[[Profile, AttentionProblem], tuple[Rung, ...]]
