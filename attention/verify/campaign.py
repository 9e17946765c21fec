"""What one campaign is: which problems of which kernels, and the words by which a worker draws the same."""

from dataclasses import dataclass

from attention.verify.builds import ARCH
from attention.verify.few import checked
from attention.verify.problems import Case, drawn


@dataclass(frozen=True)
class Campaign:
    """Random problems of some kernels on one architecture; any process draws the same."""

    variants: tuple[str, ...]
    problems: int = 2000
    seed: int = 0
    arch: str = ARCH
    device: int = 0  # the GPU's number, as CUDA counts
    checked: bool = False  # the problems of the sanitizer instead
    exact: bool = False  # no poisoned room around tensors, judged by the CPU

    def cases(self) -> list[Case]:
        """Its problems, in order."""
        if self.checked:
            return checked(self.variants, self.seed, self.arch)
        return drawn(self.variants, self.problems, self.seed, arch=self.arch)

    @property
    def options(self) -> list[str]:
        """The same on the command line of a worker."""
        named = {"problems": self.problems, "seed": self.seed, "arch": self.arch, "device": self.device}
        words = [word for name, value in named.items() for word in (f"--{name}", str(value))]
        flags = [f"--{flag}" for flag in ("checked", "exact") if getattr(self, flag)]
        return [*words, "--variants", ",".join(self.variants), *flags]
