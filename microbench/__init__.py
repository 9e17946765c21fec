"""smscope's measurements: probes, runs and profiles of NVIDIA GPUs and of the CPU beside them."""

from microbench import needs

with needs.one_sentence():
    from microbench.results.frame import load_runs
    from microbench.results.profile import Profile

__all__ = ["Profile", "load_runs"]
# What tells this package from others of its name (smscope/ours.py).
__distribution__ = "smscope"
