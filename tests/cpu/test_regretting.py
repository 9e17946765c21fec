"""What `smscope regret` says of the campaigns on file: which tables, of which freeze, and what has changed since."""

import json

import pytest

from attention.campaign import freeze, rows
from smscope import cli
from tests.cpu.commands import called

H100, H200 = "h100-sxm-80gb", "h200-sxm-141gb"
Capture = pytest.CaptureFixture[str]


def last_freeze(gpu: str) -> str:
    commit = rows.read(gpu, "b", rows.campaigns(gpu, "b")[-1])[-1].freeze
    assert commit
    return commit


def test_a_kernel_that_was_not_timed_has_no_table(capsys: Capture) -> None:
    code, out, err = called(capsys, cli.main, "regret", H100, "--brief", "--json")
    found = {each["kernels"]: each["problems"] for each in json.loads(out)}
    assert code == 1 and min(found.values()) > 0
    assert "sm90a/forward/split_keys" not in found and "sm90a/forward/warp_specialised" in found
    assert "other texts of our kernels than today's" in err


def test_by_default_the_last_freeze_that_was_timed_is_judged(capsys: Capture) -> None:
    _, out, err = called(capsys, cli.main, "regret", H100, "--set", "b", "--brief", "--json")
    (verdict,) = (each for each in freeze.verdicts() if each.freeze == last_freeze(H100))
    (line,) = (each for each in verdict.lines if each.startswith("all kernels: measured constants: "))
    assert json.loads(out)[0]["problems"] == 48
    assert f"changed since freeze {verdict.freeze[:12]}" in err and line.rpartition(": ")[2] in err


def test_a_freeze_that_was_timed_once_waits_for_its_second_campaign(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    once, of_set = last_freeze(H100), rows.campaigns
    monkeypatch.setattr(rows, "campaigns", lambda gpu, which: of_set(gpu, which)[: -1 if which == "b" else None])
    _, _, err = called(capsys, cli.main, "regret", H100, "--set", "b", "--brief", "--json")
    assert "Set b: campaign " in err and "changed since freeze " in err and once[:12] not in err
    code, _, err = called(capsys, cli.main, "regret", H100, "--set", "b", "--of", once[:12])
    assert code == 2 and "needs two campaigns" in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((H200, "--set", "b", "--of", last_freeze(H100)[:12]), "timed on h200-sxm-141gb (there are: "),
        ((H200, "--of", "1ef85525c6e6"), "pass --set b with --of"),
        ((H200, "--write"), "pass --set b with"),
        (("a100", "--set", "b"), "No set b was timed on a100"),
        ((H200, "--set", "c"), "no set 'c'"),
    ],
)
def test_what_makes_no_sense_is_refused(capsys: Capture, arguments: tuple[str, ...], said: str) -> None:
    code, out, err = called(capsys, cli.main, "regret", *arguments)
    assert (code, out) == (2, "") and said in err


def test_the_last_set_of_use_is_meant_where_none_is_named(capsys: Capture) -> None:
    last = rows.read(H100, "use", rows.campaigns(H100, "use")[-1])[-1].freeze
    assert last
    told = json.loads(called(capsys, cli.main, "floors", H100, "--set", "use", "--json")[1])
    assert told["freeze"] == last
    code, _, err = called(capsys, cli.main, "floors", H100, "--set", "use", "--of", "nothing")
    assert code == 2 and "names no one freeze" in err and last[:12] in err
