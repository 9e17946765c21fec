"""A run as Markdown: what silicon confirmed, what it refuted, what was not looked at and why, and how to send it."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from microbench.console.si import counted
from smscope.verified.budget import told
from smscope.verified.record import Done, Record

SHOWN = 5  # failures of one part; the file has them all


def page(record: Record, file: Path) -> str:
    """The page of a run whose file is `file`."""
    return "\n".join(_lines(record, file)) + "\n"


def _lines(record: Record, file: Path) -> Iterator[str]:
    who = record.who
    yield f"# {who.name}: what it says of smscope"
    yield ""
    yield from _about(record)
    refuted = [part for part in record.parts if part.verdict == "refuted"]
    confirmed = [part for part in record.parts if part.verdict == "confirmed"]
    tried = [part for part in record.parts if not part.decided]
    yield from ("", "## Refuted", "")
    yield from _refuted(refuted) if refuted else ("Nothing.",)
    yield from ("", "## Confirmed", "")
    yield from _table(confirmed) if confirmed else ("Nothing yet.",)
    yield from ("", "## Not looked at, and why", "")
    yield from _open(record, tried)
    yield from ("", "## Send it", "")
    yield from sending(record, file)


def _about(record: Record) -> Iterator[str]:
    who = record.who
    code = (who.commit or "unknown") + (", with sources changed since" if who.dirty else "")
    seconds = told(sum(part.seconds for part in record.parts))
    state = "finished" if record.finished else f"{len(record.decided)} of {len(record.planned)} parts done so far"
    yield f"- GPU: {who.gpu} ({who.arch}), driver {who.driver or 'unknown'}"
    yield f"- NVRTC: {', '.join(who.nvrtc) or 'none by pip'}"
    yield f"- Commit: {code}"
    extent = "fewer points and problems (--quick)" if who.quick else "every point"
    yield f"- Asked: {extent}, {counted(who.problems, 'random problem')} a kernel, seed {who.seed}"
    yield f"- Run: {record.run_id}, {state}, {seconds} of work in {counted(record.calls, 'call')}"


def _table(parts: Iterable[Done]) -> Iterator[str]:
    yield "| step | part | found | seconds |"
    yield "| --- | --- | --- | --- |"
    for part in parts:
        yield f"| {part.step} | `{part.name}` | {_cell(part.told)} | {part.seconds:.1f} |"


def _refuted(parts: Iterable[Done]) -> Iterator[str]:
    for part in parts:
        yield f"- **{part.step}: `{part.name}`**: {part.told}"
        failures = part.result.failures if part.result else ()
        yield from (f"  - {each.what}: {' '.join(each.reason.split())}" for each in failures[:SHOWN])
        if len(failures) > SHOWN:
            yield f"  - and {len(failures) - SHOWN} more, in the file"


def _open(record: Record, tried: Iterable[Done]) -> Iterator[str]:
    lines = [f"- {gap.told}" for gap in record.gaps]
    by_reason: dict[tuple[str, str], list[str]] = {}
    for part in tried:
        how = "ended without a result" if part.verdict == "broken" else "not done"
        by_reason.setdefault((f"{part.step}, {how}", part.reason), []).append(part.name)
    lines += [f"- {step}: {_names(names)}: {why}" for (step, why), names in by_reason.items()]
    known = {part.key for part in record.parts}
    later = [key for key in record.planned if key not in known]
    lines += [f"- not begun yet: {_names(later)}"] if later else []
    yield from lines or ("Nothing was left out.",)


def sending(record: Record, file: Path) -> Iterator[str]:
    """How the file gets to the project."""
    yield f"Everything is in one file, `{file.name}`. It holds no name of a host, a user or a folder."
    for packed in record.measured:
        yield f"Packed into it is the run {packed.run} of the probes, {packed.lines} lines, as `data/runs` keeps it."
    yield f'Open an issue titled "Verified on {record.who.name}" and attach it, or open a pull request that adds it'
    yield f"and this page to `data/verification/{record.who.gpu}/`. What was refuted is worth as much as the rest."
    if record.measured:
        yield "Whoever has the file makes this GPU's profile of it with `smscope profile --from FILE`."


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())
