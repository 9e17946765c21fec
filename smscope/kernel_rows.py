"""Our attention kernels, a row each: compiled, linted, emulated, run as source, run and timed on its own generation."""

from collections.abc import Iterable, Iterator

from attention.timed import cubins, timings
from attention.timed.identity import text_sha256
from attention.timed.timing import Timing
from attention.variant import Variant, shipped
from attention.verify.build_matrix import AttentionRow
from attention.verify.kernel import KernelResult
from microbench.console.si import counted
from microbench.machine.arch import by_name
from microbench.report import markdown
from microbench.results.profile import available
from microbench.verify import results
from microbench.verify.tables import read_all

HEADERS = ("kernel", "compiled for, SASS held", "linted", "emulated", "run as source", "run on its generation", "timed")
# By tests/emulated/test_launchers.py: `make test` executes random problems of each kernel, and misses none.
EMULATED = "yes"
EARLIER = " (an earlier text)"


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
    here = [result for result in results_of if _generation(result.arch) == _generation(variant.path.split("/")[0])]
    elsewhere = [result for result in results_of if result not in here]
    linted = _linted(mine)
    return f"`{variant.path}`", _joined(whole), linted, EMULATED, _told(elsewhere), _told(here), _timed(variant)


def _generation(arch: str) -> str:
    """The major compute capability: what is compiled for sm80 has been at home on an sm89, and not on an sm90."""
    return by_name(arch).capability.partition(".")[0]


def _linted(rows: list[AttentionRow]) -> str:
    """What ptxas said of any build: bytes spilled, and its notes."""
    spilled, said = max((row.spill_bytes_max for row in rows), default=0), {row.notes for row in rows} - {""}
    found = (*([f"{spilled} bytes spilled"] if spilled else []), *sorted(said))
    return "; ".join(found) or ("no spill, no note" if rows else "no")


def _timed(variant: Variant) -> str:
    """On which GPUs, those of today's machine code first."""
    code, text = cubins.current(variant), text_sha256(variant.path)

    def of_today(timing: Timing) -> bool:
        return timing.source_sha256 == text or bool(timing.cubins and code.issuperset(timing.cubins))

    of = {gpu: [each for each in timings.read(gpu)[0] if each.variant == variant.path] for gpu in _gpus()}
    today = [gpu for gpu, every in of.items() if any(map(of_today, every))]
    earlier = [gpu for gpu, every in of.items() if every and gpu not in today]
    return _joined((*today, *(f"{gpu} (earlier builds)" for gpu in earlier)))


def _kept(rows: Iterable[AttentionRow]) -> bool:
    return all(row.kept == row.builds for row in rows)


def _told(found: Iterable[KernelResult]) -> str:
    """Of each GPU its fullest run: random problems, and what compute-sanitizer last said of a few more."""
    every = sorted(found, key=lambda each: (not each.quick, each.verified_utc))
    gpus = sorted({result.gpu for result in every})
    return _joined(_told_of([result for result in every if result.gpu == gpu]) for gpu in gpus)


def _told_of(results_of_gpu: list[KernelResult]) -> str:
    """A run has several parts, each of problems of its own: those of one commit are counted together.

    Of several runs one of today's text counts before others, then the one of most problems, and the last of these: a
    later one may have been cut short, or have had compute-sanitizer look at a few problems of the same seed.
    """
    gpu, kernel = results_of_gpu[-1].gpu, results_of_gpu[-1].kernel
    runs: dict[tuple[bool, str | None], dict[int, KernelResult]] = {}
    for each in results_of_gpu:
        of_run = runs.setdefault((not each.quick, each.commit), {})
        if each.seed not in of_run or each.problems >= of_run[each.seed].problems:
            of_run[each.seed] = each
    last = {key: number for number, each in enumerate(results_of_gpu) for key in [(not each.quick, each.commit)]}
    todays = {key: {each.text_sha256 for each in of.values()} == {text_sha256(kernel)} for key, of in runs.items()}
    problems_of = {key: sum(each.problems for each in of.values()) for key, of in runs.items()}
    fullest = max(runs, key=lambda key: (key[0], todays[key], problems_of[key], last[key]))
    parts = runs[fullest].values()
    problems, right = problems_of[fullest], sum(each.right for each in parts)
    tried = counted(problems, "problem")
    earlier = "" if todays[fullest] else EARLIER
    checked = next((each for each in reversed(results_of_gpu) if each.sanitizer), results_of_gpu[-1])
    before = EARLIER if checked.sanitizer and todays[fullest] and checked.text_sha256 != text_sha256(kernel) else ""
    return f"{tried if right == problems else f'{right} of {tried}'} on {gpu}{earlier}{_checked(checked)}{before}"


def _checked(result: KernelResult) -> str:
    return "".join(
        f", {each.tool} {'clean' if each.ok else 'complains'} on {each.problems}" for each in result.sanitizer
    )


def _joined(parts: Iterable[str]) -> str:
    return ", ".join(parts) or "no"


def _gpus() -> tuple[str, ...]:
    return tuple(available())
