"""What microbench.cli answers where a profile is misnamed, unreadable or left as it was."""

import pytest

from microbench import paths
from microbench.probes import discover
from microbench.results import derive
from tests.cpu import fake_probes
from tests.cpu.test_cli import QUIET, call, constant, save


def test_a_run_that_changes_nothing_of_the_profile_says_so(data, tmp_path, capsys, monkeypatch):
    only = ("--device", "host", "--only", "steady", "--probes", str(fake_probes.write(tmp_path, "steady")))
    assert call(capsys, "run", *only, "--campaigns", "1", *QUIET)[0] == 0
    (gpu,) = derive.gpus()
    earlier = derive.derive(gpu, discover(tmp_path))  # fixed, for this machine may be busy now and not later
    monkeypatch.setattr(derive, "derive", lambda *_: earlier)
    code, out, _ = call(capsys, "run", *only, "--quick", *QUIET)
    assert code == 0
    assert f"Profile: {data / 'profiles' / f'{gpu}.json'} (unchanged: an earlier run has more)\n" in out


def test_an_unreadable_profile_is_answered_with_what_helps_where_it_lies(data, capsys, monkeypatch):
    save("whole", constant("a_cycles", 10.0))
    file = data / "profiles" / "broken.json"
    file.write_text("{")
    assert f"delete {file}, or measure that machine again with `make bench`." in call(capsys, "show", "broken")[2]
    monkeypatch.setattr(paths, "CHECKOUT", None)
    assert f"delete {file}, or measure that machine again with `smscope bench`." in call(capsys, "show", "broken")[2]
    monkeypatch.setattr(paths, "PACKAGE", data)
    assert f"delete {file}, or install smscope again." in call(capsys, "show", "broken")[2]
    (data / "runs" / "broken").mkdir(parents=True)
    assert "`smscope profile` writes it again from its runs." in call(capsys, "show", "broken")[2]


@pytest.mark.parametrize("typed", ["h200", "sxm", "H200-SXM"])
def test_a_part_of_a_name_is_answered_with_the_names_that_hold_it(data, capsys, typed):
    save("h200-sxm-141gb", constant("a_cycles", 10.0))
    save("v100", constant("a_cycles", 10.0))
    said = f"No profile is called '{typed}'; did you mean h200-sxm-141gb?\n"
    assert call(capsys, "show", typed) == (2, "", said) and call(capsys, "compare", typed) == (2, "", said)
    assert "there are: h200-sxm-141gb, v100" in call(capsys, "show", "")[2]
    assert "either --published, or a second GPU" in call(capsys, "compare", "v100")[2]
