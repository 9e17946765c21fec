#!/bin/sh
# environment.sh STEP [LANE] makes .venv ready for STEP: bench, report, dev or lab, each holding the one before it.
# pip installs the packages: uv does not read pip's configuration, which may name an index of torch's CPU wheels.
set -u
cd "$(dirname "$0")/.." || exit 2
step=$1 asked=${2:-any}
python=.venv/bin/python
state=.venv/smscope.state # one line: the LANE asked for, the lane, the step, and a checksum of what decided them

say() { echo "smscope: $1"; }
fail() { say "$1" >&2; exit 2; }
rank() { case $1 in bench) echo 1 ;; report) echo 2 ;; dev) echo 3 ;; lab) echo 4 ;; *) echo 0 ;; esac; }
fits() { "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))' 2>/dev/null; }
# `activate` names the folder that it was made in: the scripts of an environment that was moved still run the old one.
usable() { fits $python && [ -x .venv/bin/pip ] && grep -qF "$PWD/.venv" .venv/bin/activate; }

make_environment() {
  if [ -e .venv ] && [ ! -e .venv/pyvenv.cfg ] && [ -n "$(ls -A .venv)" ]; then
    fail ".venv holds no virtual environment; move it away and run this again."
  fi
  rm -rf .venv
  for name in python3 python3.14 python3.13 python3.12 python3.11 python; do
    if fits $name && $name -m venv .venv >/dev/null 2>&1; then return; fi
  done
  # Ubuntu 22.04 has Python 3.10, and Debian's python3 no venv without python3-venv: uv brings a Python with both.
  rm -rf .venv
  here=$(python3 --version 2>&1) || here="no python3"
  say "here is $here, and none from 3.11 to 3.14 with venv; uv fetches Python 3.12, up to 35 MB."
  uv=$(command -v uv) || uv=.venv-uv/bin/uv
  export UV_PYTHON_INSTALL_DIR="$PWD/.venv-uv/python" UV_PYTHON_PREFERENCE=only-managed
  said=$({
    { [ -x "$uv" ] || python3 -m pip --disable-pip-version-check install --quiet --target .venv-uv --upgrade uv; } &&
      "$uv" venv --quiet --no-project --python 3.12 .venv && $python -m ensurepip --default-pip
  } 2>&1) || fail "here is $here, and uv could not fetch one ($(echo "$said" | grep . | tail -n 1)): \
install one from 3.11 to 3.14 (apt install python3.11 python3.11-venv, say), or name an environment with PYTHON=."
}

# True where pip finds the host lane's torch only as the wheel with CUDA.
torch_has_cuda() {
  version=$(sed -n 's/^torch==\([^ ]*\).*/\1/p' constraints/host.txt)
  [ "$(uname)" = Linux ] && ! $python -m pip index versions torch 2>/dev/null | grep -qwF "$version+cpu"
}

case $asked in any | host | volta | cuda) ;; *) fail "LANE=$asked is none of host, volta and cuda." ;; esac
trap 'fail "interrupted; the same command goes on where this one stopped."' INT
# Two makes at once take turns.
if command -v flock >/dev/null && exec 9<constraints/environment.sh && ! flock -n 9; then
  say "another make is setting up .venv; waiting for it."
  flock 9
fi
usable || make_environment

# pyproject's tables for tools decide nothing. The driver's files tell of another GPU or driver without waking it.
inputs=$({
  sed '/^\[tool/q' pyproject.toml
  cat constraints/*.sh constraints/*.txt /proc/driver/nvidia/version
  ls -d /proc/driver/nvidia/gpus/* /dev/nvidiactl /dev/dxg
  command -v nvidia-smi
} 2>/dev/null | cksum)
held_asked='' held_lane='' held_step='' held_inputs=''
[ ! -e $state ] || read -r held_asked held_lane held_step held_inputs <$state

case "$asked:$held_asked:$held_inputs" in
  any:any:"$inputs") lane=$held_lane ;;
  any:*) lane=$($python constraints/lane.py) || exit 2 ;;
  # The lane of a GPU holds all that the host lane needs.
  host:*) if [ "$(rank "$held_step")" -gt 0 ]; then lane=$held_lane; else lane=host; fi ;;
  *) lane=$asked ;;
esac
if [ "$lane $inputs" = "$held_lane $held_inputs" ] && [ "$(rank "$held_step")" -ge "$(rank "$step")" ]; then exit 0; fi
if [ "$lane" != "${held_lane:-$lane}" ]; then
  say "making .venv anew, since it holds lane $held_lane."
  make_environment
fi

pins=$lane
case $lane:$step in
  host:bench) extras='' size='135 MB' ;;
  host:report) extras=plots size='155 MB' ;;
  host:*) extras=dev,twins size='695 MB'; torch_has_cuda && pins=cuda extras=dev,twins-cuda13 size='3.2 GB' ;;
  *:bench) extras=$lane size='0.5 GB' ;;
  *:report) extras=$lane,plots size='0.5 GB' ;;
  volta:*) extras=$lane,dev size='4.5 GB' ;;
  cuda:*) extras=$lane,dev size='3.3 GB' ;;
esac
[ "$step" != lab ] || extras=$extras,lab
# Tests hold Volta's kernels to the compiler of Volta's lane as well, of which an environment holds one version.
beside=''
case $lane:$step in
  volta:*) ;;
  *:dev | *:lab) [ "$(uname)" != Linux ] || beside=$(sed -n 's/^nvidia-cuda-nvrtc-cu12==\([^ ]*\).*/\1/p' constraints/volta.txt) ;;
esac
# pip leaves a --target that is there as it is, and warns.
bring_beside() {
  [ -z "$beside" ] || [ -d ".venv/nvrtc/$beside" ] || PIP_USER=0 $python -m pip --disable-pip-version-check --no-input \
    install --progress-bar off --no-deps --target ".venv/nvrtc/$beside" "nvidia-cuda-nvrtc-cu12==$beside" 2>&1
}
say "installing for \`$step\` in lane $lane; a first download is of about $size."
echo "$asked $lane begun $inputs" >$state
{
  PIP_USER=0 PYTHONUNBUFFERED=1 $python -m pip --disable-pip-version-check --no-input install --progress-bar off \
    --constraint constraints/$pins.txt --editable ".${extras:+[$extras]}" 2>&1 && bring_beside &&
    echo "$asked $lane $step $inputs" >$state
} | tee .venv/pip.log |
  sed -nE 's/^ *(Downloading .* \(([0-9]{2,}[.0-9]* M|[.0-9]+ G)B\)|Installing collected packages).*/  \1/p'
if ! grep -q " $step " $state; then
  tail -n 15 .venv/pip.log >&2
  fail "pip could not install lane $lane; its last lines stand above, and .venv/pip.log holds all of them."
fi
say ".venv is ready."
