"""The campaigns on file: sound lines, orders of their own, and a model that did not change under a set B."""

import subprocess
from functools import cache

from attention.campaign import draw, freeze, rows, set_a, set_use
from attention.campaign.rows import ProblemTiming
from microbench import paths
from microbench.machine import stamp
from smscope import regretting

ROOT = stamp.ROOT
FILES = sorted((paths.SHIPPED / rows.FOLDER).glob("*/*.jsonl"))
BESIDE = ("floors", "use")
VERDICTS = {each.freeze: each for each in freeze.verdicts()}


def lines(gpu: str, file_name: str) -> tuple[ProblemTiming, ...]:
    found = rows.FILE.fullmatch(file_name)
    assert found is not None
    (which,) = (each for each in rows.SETS if each == found[1])
    return rows.read(gpu, which, int(found[2]))


def timed_of(frozen: str) -> list[str]:
    """The files of its set b."""
    files = (file for file in FILES if file.name.startswith("b-"))
    return [file.name for file in files if lines(file.parent.name, file.name)[0].freeze == frozen]


# The thirteenth: the model was mended by its first campaign, before a second one could judge it. The seventeenth: one
# of its tiles did not come to an end, and is launched no more. The forty-third: a test found a formula wrong before
# anything was timed.
GIVEN_UP = {"763fb79a64f5": ["b-18.jsonl"], "34dd90e9f370": ["b-23.jsonl"], "9f32c72c71aa": []}
# Timed where the campaigns before were not at hand, under the numbers by which their seeds were drawn.
NUMBERED_ANEW = {
    ("h100-sxm-80gb", "a-13"): "a 1",
    ("h100-sxm-80gb", "a-14"): "a 2",
    ("h100-sxm-80gb", "floors-7"): "floors 1",
}
# Timed from an archive of the commit they name that carried no stamp: nothing in it says whether the tree was dirty.
WITHOUT_STAMP = {("h200-sxm-141gb", "a-20"): 89, ("h200-sxm-141gb", "floors-6"): 52}
THIRTY_SIXTH = "1ef85525c6e6"
# Lines timed from an archive of the commit they name, stamped while the tree it was made beside had other changes.
STAMPED_DIRTY = {("h200-sxm-141gb", "a-23"): range(125, 157)}


def test_the_model_is_what_was_frozen_until_its_verdict() -> None:
    for frozen in freeze.freezes():
        verdict = VERDICTS.get(frozen.commit)
        if verdict is None and frozen.short in GIVEN_UP:
            assert timed_of(frozen.commit) == GIVEN_UP[frozen.short]
            continue
        now = verdict.hashes if verdict else freeze.hashes_of(ROOT, frozen.gpu)
        assert freeze.changed(frozen, now) == ()


def test_every_line_is_of_its_file_and_says_what_ran() -> None:
    for file in FILES:
        found = lines(file.parent.name, file.name)
        assert found and {row.gpu for row in found} == {file.parent.name}
        assert {f"{row.set}-{row.campaign}" for row in found} == {file.stem}
        unstamped = WITHOUT_STAMP.get((file.parent.name, file.stem), 0)
        dirty = STAMPED_DIRTY.get((file.parent.name, file.stem), ())
        assert [row.dirty for row in found] == [None if at < unstamped else at in dirty for at in range(len(found))]
        for row in found:
            drawn_as = NUMBERED_ANEW.get((file.parent.name, file.stem), f"{row.set} {row.campaign}")
            assert row.commit and row.seed.startswith(drawn_as)
            assert "busy" not in row.flags
            for tile in row.tiles:
                assert tile.failure or tile.cubin_sha256 or (tile.is_peer and row.set in BESIDE) or tile.is_door
                assert len(tile.seconds) == len(tile.clock_mhz) == len(tile.power_w)
                assert tile.failure or (tile.error is not None and tile.error <= (tile.allowed_error or 0))
            picked = [tile for tile in row.tiles if tile.picked]
            if row.set == "use":  # each function's pick, where it is one of these
                assert len(picked) <= 2 and any(tile.is_door for tile in row.tiles) and row.use
            else:
                assert len(picked) == (row.set == "floors") and not any(tile.is_peer for tile in picked)
                assert not any(tile.is_door for tile in row.tiles)


@cache
def descends(commit: str, from_one: str) -> bool:
    asked = ["git", "-C", str(ROOT), "merge-base", "--is-ancestor", from_one, commit]
    return subprocess.run(asked, capture_output=True).returncode == 0


@cache
def uses(frozen: str) -> frozenset[tuple[str, str]]:
    return frozenset((str(each.posed), str(each)) for each in set_use.drawn(frozen))


@cache
def problems(frozen: str) -> frozenset[str]:
    """By set A as it was: it has more head dims since the thirty-sixth freeze, which earlier draws did not know."""
    later = () if descends(frozen, THIRTY_SIXTH) else (40, 72, 88)
    known = [each for each in set_a.problems() if each.problem.head_dim not in later]
    return frozenset(str(each) for each in draw.drawn(frozen, known))


def test_a_drawn_set_is_its_freezes_and_was_timed_after_it() -> None:
    frozen = {each.commit for each in freeze.freezes()}
    for file in FILES:
        for row in lines(file.parent.name, file.name) if file.name.startswith(("b-", "use-")) else ():
            assert row.freeze in frozen and row.commit is not None
            assert descends(row.commit, row.freeze), f"{row.commit} does not descend from {row.freeze}"
            if row.set == "use":
                assert (str(row.posed), row.use) in uses(row.freeze)
            elif row.freeze not in VERDICTS:
                assert str(row.posed) in problems(row.freeze)


def test_a_verdict_is_what_its_campaigns_give() -> None:
    """While the model is what was judged: a later one has a freeze of its own."""
    for frozen in freeze.freezes():
        verdict = VERDICTS.get(frozen.commit)
        if verdict is not None and freeze.changed(frozen, freeze.hashes_of(ROOT, frozen.gpu)) == ():
            found, numbers = regretting.tables(frozen.gpu, frozen)
            assert (regretting.lines_of(found), numbers) == (verdict.lines, verdict.campaigns)
