"""Our attention kernels, a row each: compiled for what, emulated, run as source, run and timed where it belongs."""

from collections.abc import Iterable, Iterator

from attention.timed import timings
from attention.variant import Variant, shipped
from attention.verify.build_matrix import AttentionRow
from attention.verify.kernel import KernelResult
from microbench.console.si import counted
from microbench.report import markdown
from microbench.results.profile import available
from microbench.verify import results
from microbench.verify.tables import read_all

HEADERS = ("kernel", "compiled for, SASS held", "emulated", "run as source", "run where it belongs", "timed")


def table() -> str:
    """The block: what is on file, and nothing else."""
    built, ran = read_all(AttentionRow), results.committed(KernelResult)
    return markdown(HEADERS, tuple(_row(variant, built, ran) for variant in _ours()))


def _ours() -> Iterator[Variant]:
    return (variant for variant in shipped() if variant.builds)


def _row(variant: Variant, built: Iterable[AttentionRow], ran: Iterable[KernelResult]) -> tuple[str, ...]:
    mine = [row for row in built if row.kernel.split()[0] == variant.path]
    whole = [arch for arch in variant.archs if (of := [row for row in mine if row.arch == arch]) and _kept(of)]
    results_of = [result for result in ran if result.kernel == variant.path]
    here = [result for result in results_of if result.arch in variant.archs]
    elsewhere = [result for result in results_of if result.arch not in variant.archs]
    timed = [gpu for gpu in _gpus() if any(timing.variant == variant.path for timing in timings.read(gpu)[0])]
    emulated = "yes"  # tests/emulated/test_launchers.py executes random problems of each
    return f"`{variant.path}`", _joined(whole), emulated, _told(elsewhere), _told(here), _joined(timed)


def _kept(rows: Iterable[AttentionRow]) -> bool:
    return all(row.kept == row.builds for row in rows)


def _told(found: Iterable[KernelResult]) -> str:
    """Of each GPU the last full run: its random problems, and what memcheck said of a few more."""
    last = {result.gpu: result for result in sorted(found, key=lambda each: (not each.quick, each.verified_utc))}
    return _joined(f"{_right(result)} on {gpu}{_checked(result)}" for gpu, result in sorted(last.items()))


def _right(result: KernelResult) -> str:
    tried = counted(result.problems, "problem")
    return tried if result.right == result.problems else f"{result.right} of {tried}"


def _checked(result: KernelResult) -> str:
    said = [each for each in result.sanitizer if each.tool == "memcheck"]
    return "" if not said else ", memcheck clean" if all(each.ok for each in said) else ", memcheck complains"


def _joined(parts: Iterable[str]) -> str:
    return ", ".join(parts) or "no"


def _gpus() -> tuple[str, ...]:
    return tuple(available())
