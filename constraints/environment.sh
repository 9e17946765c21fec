#!/bin/sh
# Makes .venv with a Python from 3.11 to 3.14 (one on PATH, else one that uv fetches: Ubuntu 22.04 has 3.10), and lets
# prepare.py install into it, by pip and pip's own configuration. What is there already stays as it is.
set -u
cd "$(dirname "$0")/.." || exit 2
corner=.venv-uv
OTHER_LANE=3 # prepare.py's exit code: .venv holds another lane's packages, which would stay

fail() { echo "smscope: $1" >&2; exit 2; }
fits() { "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))' 2>/dev/null; }
has_pip() { .venv/bin/python -m pip --version >/dev/null 2>&1; }
last_line() { printf '%s\n' "$1" | grep . | tail -n 1 | sed 's/^ *//'; }
# `activate` names the folder that it was made in: the scripts of an environment that was moved still run the old one.
usable() { fits .venv/bin/python && has_pip && grep -qF "$PWD/.venv" .venv/bin/activate; }

make_environment() {
  if [ -e .venv ] && [ ! -e .venv/pyvenv.cfg ] && [ -n "$(ls -A .venv)" ]; then
    fail ".venv holds no virtual environment; move it away and run this again."
  fi
  found=
  for name in python3 python3.14 python3.13 python3.12 python3.11 python; do
    if fits "$name"; then found=$name; break; fi
  done
  rm -rf .venv
  if [ -n "$found" ] && "$found" -m venv .venv >/dev/null 2>&1 && has_pip; then return; fi

  # No such Python, or one without ensurepip (Debian's python3 without python3-venv).
  old=$(python3 --version 2>&1) || old="no python3"
  needs="Python 3.11 to 3.14 with venv is needed, and here is $old; uv, which fetches one, could not"
  advice="install one (apt install python3.11 python3.11-venv, say), or name an environment with PYTHON=."
  uv=$(command -v uv) || uv=$corner/bin/uv
  if ! "$uv" --version >/dev/null 2>&1; then
    said=$(python3 -m pip --disable-pip-version-check install --quiet --target $corner --upgrade uv 2>&1) ||
      fail "$needs be installed ($(last_line "$said")): $advice"
  fi
  echo "smscope: here is $old; uv makes .venv with ${found:-Python 3.12, up to 35 MB to download}."
  said=$(UV_PYTHON_INSTALL_DIR=$PWD/$corner/python "$uv" venv --quiet --no-project --python "${found:-3.12}" \
    .venv 2>&1) || fail "$needs make .venv ($(last_line "$said")): $advice"
  .venv/bin/python -m ensurepip >/dev/null 2>&1
  has_pip || said=$("$uv" pip install --quiet --python .venv/bin/python pip 2>&1)
  has_pip || fail "$needs install pip ($(last_line "$said")): $advice"
}

# Two makes at once take turns.
if command -v flock >/dev/null && exec 9<"$0" && ! flock -n 9; then
  echo "smscope: another make is setting up .venv; waiting for it."
  flock 9
fi
usable || make_environment
.venv/bin/python constraints/prepare.py "$@"
code=$?
if [ $code -eq $OTHER_LANE ]; then
  make_environment
  .venv/bin/python constraints/prepare.py "$@"
  code=$?
fi
exit $code
