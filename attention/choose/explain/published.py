"""What an explanation says of our kernels by published constants."""

from collections.abc import Iterator

from rich.table import Table
from rich.text import Text

from attention.choose.explain.tables import SHOWN_CANDIDATES, constants
from attention.choose.foreseen import Foreseen, ranks
from attention.choose.prediction import Prediction
from attention.choose.published.ranking import PublishedRanking
from attention.choose.published.table import TheirChoice
from microbench.console.si import written

NEARER = (
    " `smscope estimate` follows this one's machine code, stalls included. Where it orders tiles otherwise it has the "
    "better evidence: it was held against timings of our Ampere kernel on an H200, and the order below against none."
)
FOLLOWED = "sm70"  # whose rates `estimate` has without a profile of measured constants


def published_parts(found: PublishedRanking) -> Iterator[Text | Table]:
    yield Text(
        f"By published constants of {found.kind} ({found.board}), which displace no kernel of torch's. No timing "
        f"corrects them, and a time is the least that a kernel's terms allow.{NEARER if _followed(found) else ''}"
    )
    if found.without:
        yield Text(f"Ours: unpredicted, because {found.without}.")
    else:
        best = found.candidates[0]
        yield Text(f"Ours: {best.variant} ({best.config}), {_said(best)}.")
    yield Text(str(found.beside_torch))
    if found.speed is not None:
        yield Text(str(found.speed))
        if found.speed.cycles is not None:
            yield Text(str(found.speed.cycles))
        for peer in found.speed.peers:
            yield Text(str(peer))
    for each in found.modelled:
        yield Text(f"By the same constants, and its terms alone: {each.variant}, {_said(each)}.")
    if found.candidates:
        yield _candidates(found.candidates, found.theirs)
        if found.theirs is not None:
            yield Text(f"{found.theirs} {_shares(found.candidates)}")
        if found.pair is not None:
            yield Text(str(found.pair))
        best = found.candidates[0]
        if best.known is not None:
            yield _terms(best.known, best.absent)
            yield constants(found.constants, title="Published constants that these terms use")


def _followed(found: PublishedRanking) -> bool:
    return bool(found.candidates) and found.candidates[0].variant.startswith(f"{FOLLOWED}/forward/")


def _said(each: Foreseen) -> str:
    if each.prediction is not None:
        return f"at least {written(each.prediction.seconds, 's')}, bound by {each.prediction.bound_by}"
    least = f"; its other terms take at least {written(each.at_least.seconds, 's')}" if each.at_least else ""
    return f"unpredicted, because {each.unpredicted}{least}"


def _shares(every: tuple[Foreseen, ...]) -> str:
    """The share of the first configuration of each number of blocks: the polynomial's own instructions are priced."""
    first: dict[int, int] = {}
    for each in every:
        values = dict(each.config.values)
        first.setdefault(values.get("cta_group", 1), values.get("polynomial", 0))
    said = " and ".join(f"{first[of]} with {'a pair' if of == 2 else 'one block'}" for of in sorted(first))
    return f"The model, which prices a polynomial's instructions, has {said}."


def _candidates(every: tuple[Foreseen, ...], theirs: TheirChoice | None) -> Table:
    """Equal ranks are ties: the model has nothing that tells them apart."""
    hidden = len(every) - SHOWN_CANDIDATES
    title = "Our configurations, fastest first; of equals the least work to hide, and equal ranks are tied"
    if unpriced := next((each.unpriced for each in every if each.unpriced), ""):
        title += f"; no source prices {unpriced}, so those with it follow all others"
    table = Table(title=title + (f"; {hidden} not shown" if hidden > 0 else ""), title_justify="left")
    for heading in ("rank", "variant", "configuration", "time", "nothing hidden", ""):
        table.add_column(heading, overflow="fold")
    for rank, each in zip(ranks(every), every[:SHOWN_CANDIDATES], strict=False):
        whole = written(each.known.unhidden_seconds, "s") if each.known else ""
        if each.prediction is not None:
            time, remark = f"≥ {written(each.prediction.seconds, 's')}", f"bound by {each.prediction.bound_by}"
        else:
            time, remark = "unpredicted", _said(each).removeprefix("unpredicted, because ")
        remark += f"; without {each.unpriced}" if each.unpriced else ""
        if theirs is not None and theirs.same_share(each.config):
            remark += "; FlashAttention-4's share"
        table.add_row(rank, each.variant, str(each.config), time, whole, remark)
    return table


def _terms(known: Prediction, absent: tuple[str, ...]) -> Table:
    without = f"; without those of {' and '.join(absent)}" if absent else ""
    table = Table(title=f"Terms of the first (those of a phase overlap){without}", title_justify="left")
    for heading in ("phase", "term", "time", "constant"):
        table.add_column(heading, overflow="fold")
    for term in known.terms:
        bound = " (the bound)" if term.term == known.bound_by and not absent else ""
        table.add_row(term.phase, term.term + bound, written(term.seconds, "s"), term.constant)
    return table
