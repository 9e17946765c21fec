"""Which machine a notebook opens: the one that is asked for, else the reader's own, else a shipped one, said aloud."""

from dataclasses import dataclass

from microbench.errors import UnknownGpu
from microbench.machine.cpu import host_slug
from microbench.machine.nvml import visible_gpus
from microbench.results import derive
from microbench.results.profile import available

VARIABLE = "SMSCOPE_MACHINE"


@dataclass(frozen=True)
class Opened:
    gpu: str
    why: str


def opened(wanted: str = "") -> Opened:
    """The machine called `wanted`; without a name the reader's own. Raises UnknownGpu where there is none to open."""
    known = [name for name in available() if name in derive.gpus()]
    names = ", ".join(known) or "none yet"
    if wanted:
        if wanted not in known:
            raise UnknownGpu(f"No machine called {wanted!r} has a run and a profile here (there are: {names}).")
        return Opened(wanted, f"This is {wanted}, as {VARIABLE} asks for.")
    own = [*(gpu.slug for gpu in visible_gpus()), host_slug()]
    for name in own:
        if name in known:
            return Opened(name, f"This is {name}, the machine that this notebook runs on.")
    if not known:
        raise UnknownGpu("No machine has a run and a profile here; run `make bench` first.")
    like = [name for name in known if name.startswith("host-") == own[0].startswith("host-")]
    other = (like or known)[0]
    return Opened(other, f"This machine ({own[0]}) has no run yet, so this shows {other}; `make bench` measures yours.")
