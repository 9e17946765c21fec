"""What `import smscope` says where something else is called `attention` or `microbench`."""

import shutil
import subprocess
from pathlib import Path

import pytest

from smscope import ours
from tests import elsewhere
from tests.elsewhere import ROOT

REACHED = "import smscope; print('reached')"


def python(cwd: Path, path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return elsewhere.python(*arguments, cwd=cwd, PYTHONPATH=str(path), PYTHONDONTWRITEBYTECODE="1")


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder of installed packages that holds this smscope, and both packages as far as it looks at them."""
    folder = tmp_path / "site"
    shutil.copytree(ROOT / "smscope", folder / "smscope", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ours.PACKAGES:
        (folder / name).mkdir()
        shutil.copy(ROOT / name / "__init__.py", folder / name)
    return folder


def install_over(site: Path, name: str, *files: str) -> None:
    """What pip does with a distribution of the same import name: it replaces files, and lists them."""
    listed = site / f"{name}_else-5.0.0.dist-info"
    listed.mkdir()
    (listed / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}-else\nVersion: 5.0.0\n")
    (listed / "RECORD").write_text("".join(f"{file},,\n" for file in files))
    for file in files:
        (site / file).parent.mkdir(exist_ok=True)
        (site / file).write_text("raise SystemExit('this must not run')\n")


@pytest.mark.parametrize("name", ours.PACKAGES)
@pytest.mark.parametrize("form", ["{}.py", "{}/__init__.py"])
def test_a_file_or_folder_of_ones_own_is_named_and_not_run(tmp_path: Path, name: str, form: str) -> None:
    file = tmp_path / "own" / form.format(name)
    file.parent.mkdir(parents=True)
    file.write_text("raise SystemExit('this must not run')\n")
    what = file if file.name != "__init__.py" else file.parent
    told = python(tmp_path / "own", ROOT, "-c", REACHED)
    said = f"smscope needs its own package '{name}', and {what} hides it: rename that, or start Python where"
    assert (told.returncode, told.stdout) == (1, "") and f"smscope.ours.ShadowedError: {said}" in told.stderr


def test_a_script_of_the_same_name_is_named(tmp_path: Path) -> None:
    (tmp_path / "attention.py").write_text(REACHED)
    told = python(ROOT, ROOT, str(tmp_path / "attention.py"))
    assert (told.returncode, told.stdout) == (1, "") and f"{tmp_path / 'attention.py'} hides it" in told.stderr


def test_one_that_is_imported_already_is_named(tmp_path: Path) -> None:
    (tmp_path / "attention.py").write_text("")
    code = "import sys; import attention; sys.path.remove(''); sys.path_importer_cache.clear(); " + REACHED
    told = python(tmp_path, ROOT, "-c", code)
    assert (told.returncode, told.stdout) == (1, "") and f"{tmp_path / 'attention.py'} hides it" in told.stderr


def test_the_command_says_it_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "attention.py").touch()
    told = python(tmp_path, ROOT, "-m", "smscope", "list")
    assert (told.returncode, told.stdout, told.stderr.count("\n")) == (1, "", 1)
    assert str(tmp_path / "attention.py") in told.stderr


@pytest.mark.parametrize("name", ours.PACKAGES)
def test_a_distribution_installed_over_ours_is_named(tmp_path: Path, site: Path, name: str) -> None:
    install_over(site, name, f"{name}/__init__.py", f"{name}/layers.py")
    told = python(tmp_path, site, "-c", REACHED)
    assert (told.returncode, told.stdout) == (1, "")
    assert f"{site / name / '__init__.py'}, installed by the distribution '{name}-else', replaces it" in told.stderr
    assert f"`pip uninstall {name}-else`, then install smscope again" in told.stderr


def test_a_distribution_elsewhere_on_the_path_is_named(tmp_path: Path, site: Path) -> None:
    (tmp_path / "before").mkdir()
    install_over(tmp_path / "before", "attention", "attention.py")
    told = python(tmp_path / "before", site, "-c", REACHED)
    assert "installed by the distribution 'attention-else', replaces it" in told.stderr


def test_ours_overwritten_by_hand_or_gone_asks_for_another_installation(tmp_path: Path, site: Path) -> None:
    # -S: the environment of these tests may hold our packages too.
    (site / "attention" / "__init__.py").write_text("")
    assert "is not smscope's any more: install smscope again" in python(tmp_path, site, "-S", "-c", REACHED).stderr
    (site / "attention" / "__init__.py").unlink()
    assert "is not there: install smscope again" in python(tmp_path, site, "-S", "-c", REACHED).stderr


def test_nothing_is_said_where_both_are_ours(tmp_path: Path, site: Path) -> None:
    told = python(tmp_path, site, "-c", REACHED)
    assert (told.returncode, told.stdout, told.stderr) == (0, "reached\n", "")


def test_a_folder_of_data_by_the_same_name_hides_nothing(tmp_path: Path) -> None:
    (tmp_path / "attention").mkdir()
    (tmp_path / "attention" / "maps.npy").touch()
    assert python(tmp_path, ROOT, "-c", REACHED).stdout == "reached\n"


def test_attention_alone_names_what_stands_in_the_place_of_microbench(tmp_path: Path, site: Path) -> None:
    (tmp_path / "microbench.py").touch()
    told = python(tmp_path, site, "-c", "import attention")
    said = f"ImportError: attention needs smscope's microbench, and {tmp_path / 'microbench.py'} has its name; "
    assert said in told.stderr
    shutil.rmtree(site / "microbench")
    (tmp_path / "microbench.py").unlink()
    assert "and it is not there; `import smscope` says" in python(tmp_path, site, "-S", "-c", "import attention").stderr
