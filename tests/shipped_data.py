"""A copy of data/ as git knows it: no run, profile or timing that `make bench` left and nobody added."""

import subprocess
from pathlib import Path

# Where `make bench`, `profile`, `attention bench` and `smscope verify` write, and `make tune`, which git ignores.
MEASURED = ("runs", "profiles", "corrections", "attention", "verification")
TUNED = "tunings"


def lay_out(root: Path, folder: Path) -> Path:
    """`folder`/data: what machines measured as it stands in git's index, all else as it is in the checkout at `root`.

    A tree without git (an archive, a copy on a GPU machine) counts those machines as known that its README names.
    """
    data = folder / "data"
    if not _from_index(root, folder):
        readme = (root / "README.md").read_text(encoding="utf-8")
        for name in MEASURED:
            (data / name).mkdir(parents=True)
            for entry in (root / "data" / name).iterdir():
                if _known(entry, root, readme):
                    (data / name / entry.name).symlink_to(entry)
    for other in (root / "data").iterdir():
        if other.name not in (*MEASURED, TUNED):
            (data / other.name).symlink_to(other)
    return data


def _known(entry: Path, root: Path, readme: str) -> bool:
    if entry.parent.name == "verification":  # a folder is of a machine, but for those of what needs no GPU
        return entry.is_file() or entry.name in ("probes", "kernels") or entry.name in readme
    return _machine(entry, root) in readme


def _machine(entry: Path, root: Path) -> str:
    """The slug of the machine that a file or folder is of; timings may add a word to it."""
    slugs = sorted((file.stem for file in (root / "data" / "profiles").glob("*.json")), key=len, reverse=True)
    return next((slug for slug in slugs if entry.name.startswith(slug)), entry.stem)


def _from_index(root: Path, folder: Path) -> bool:
    """True where git wrote the files; False where there is no git, or `root` lies in a checkout of something else."""
    if not (root / ".git").exists():
        return False
    git = ["git", "-C", str(root)]
    try:
        listed = subprocess.run([*git, "ls-files", "-z", *(f"data/{name}" for name in MEASURED)], capture_output=True)
        if listed.returncode or not listed.stdout:
            return False
        written = [*git, "checkout-index", "-z", "--stdin", f"--prefix={folder}/"]
        return subprocess.run(written, input=listed.stdout).returncode == 0
    except FileNotFoundError:
        return False
