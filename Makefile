# Every target first brings .venv to what it needs (constraints/environment.sh): made once, instant after that.
#   PYTHON=/path/to/python   use that environment as it is: nothing is installed
#   LANE=host                measure the CPU of a machine that has a GPU (or volta, cuda: instead of what was found)
#   ARGS="--quick"           goes on to the program behind the target
.DEFAULT_GOAL := help
PYTHON ?=
LANE ?=
ARGS ?=

ifeq ($(strip $(PYTHON)),)
BIN := .venv/bin/
RUN := .venv/bin/python
READY = constraints/environment.sh $* "$(LANE)"
else
RUN := $(PYTHON)
BIN = $(shell $(PYTHON) -c 'import sysconfig; print(sysconfig.get_path("scripts"))')/
OLD = $(shell $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || echo old)
READY = $(if $(OLD),$(error PYTHON=$(PYTHON) is no Python 3.11 or newer; name one that is),$(RUN) -c \
	'import numpy, psutil, pydantic, rich, typer' 2>/dev/null || { echo 'smscope: PYTHON=$(PYTHON) lacks packages \
	that smscope needs; `$(PYTHON) -m pip install -e .` here installs them.' >&2; exit 2; })
endif

DEVICE := $(if $(filter host,$(LANE)),--device host)
KERNELS = $(shell find microbench attention notebooks -name '*.cu' -o -name '*.cuh' -o -name '*.hpp' -o -name '*.cpp')
# A file's tests stay in one process, for what they share; each process takes 10 s and half a gigabyte to begin.
CORES := --numprocesses auto --maxprocesses 16 --dist loadfile
UV = $(or $(shell command -v uv),.venv-uv/bin/uv)
LOCK = UV_CUSTOM_COMPILE_COMMAND="make lock" $(UV) pip compile --quiet --universal --python-version 3.11 \
	--annotation-style line --extra parquet $(ARGS) pyproject.toml
NOTEBOOKS = $(wildcard notebooks/[0-9]*.py)

.PHONY: help bench doctor check report tune profile test test-all test-gpu verify-gpu lint format lab notebooks wheel lock stamp clean
.PHONY: ready-bench ready-report ready-dev ready-lab
.NOTPARALLEL:

help: ## This list
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  make \1|\2/p' $(firstword $(MAKEFILE_LIST)) | \
		while IFS='|' read -r target text; do printf '%-18s %s\n' "$$target" "$$text"; done
	@sed -n 's/^#   \([A-Z]*=[^ ]*\) *\(.*\)/  \1|\2/p' $(firstword $(MAKEFILE_LIST)) | \
		while IFS='|' read -r name text; do printf '%-26s %s\n' "$$name" "$$text"; done

bench: ready-bench ## Measure this machine: one run, its profile, and the kernels it picks
	@$(RUN) -m smscope bench $(DEVICE) $(ARGS)

doctor: ready-bench ## Is this GPU healthy? Half a minute against others of its kind; exit code 1 where something is off
	@$(RUN) -m microbench doctor $(ARGS)

check: ready-dev ## Compile every kernel for every architecture and read its SASS; ARGS=<gpu> compares its methods
	@$(RUN) -m smscope check $(ARGS)

report: ready-report ## A page of every profile, figures inside, in reports/, and every generated block of the pages
	@$(RUN) -m microbench report $(ARGS)
	$(if $(ARGS),,@$(RUN) -m smscope.readme)

tune: ready-dev ## Time the top few kernels on your problems, 3 minutes: ARGS=calls.jsonl, which smscope.record wrote
	@$(RUN) -m smscope tune $(ARGS)

profile: ready-bench ## Derive every profile again from data/runs, and data/corrections from data/attention
	@$(RUN) -m smscope profile $(ARGS)

test: ready-dev ## Every test that needs no GPU, on all cores: 45 minutes of one
	@$(RUN) -m pytest -q $(CORES) -m "not slow and not gpu" $(ARGS)

test-all: ready-dev ## Those, and the slow ones
	@$(RUN) -m pytest -q $(CORES) -m "not gpu" $(ARGS)

test-gpu: ready-dev ## The tests that need an NVIDIA GPU
	@$(RUN) -m pytest -q -m gpu $(ARGS)

verify-gpu: ready-dev ## What this GPU confirms and refutes: one file to send; ARGS="--budget 9m" stops in time, and goes on
	@$(RUN) -m smscope verify $(ARGS)

lint: ready-dev ## ruff, mypy --strict, clang-format, import contracts
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy
	$(BIN)clang-format --dry-run --Werror $(KERNELS)
	$(BIN)lint-imports --no-logo

format: ready-dev ## Write what lint asks of format
	$(RUN) -m ruff check --fix-only .
	$(RUN) -m ruff format .
	$(BIN)clang-format -i $(KERNELS)

lab: ready-lab ## JupyterLab on the notebooks
	@$(BIN)jupyter lab --notebook-dir notebooks $(ARGS)

notebooks: ready-dev ## Execute every notebook from data/, on the CPU
	$(BIN)jupytext --to ipynb --update $(NOTEBOOKS)
	@$(RUN) notebooks/execute.py $(NOTEBOOKS:.py=.ipynb)

# pip fetches hatchling into an environment of its own, so that no lane need hold it.
wheel: ready-bench ## The wheel, in dist/
	@$(RUN) -m pip --disable-pip-version-check --quiet wheel --no-deps --wheel-dir dist $(ARGS) .
	@ls -t dist/smscope-*.whl | head -n 1

lock: ## Pin every package of every lane, also what others need, for Python 3.11 to 3.14; ARGS=--upgrade takes newer ones
	@$(UV) --version >/dev/null 2>&1 || python3 -m pip install --quiet --target .venv-uv --upgrade uv
	$(LOCK) constraints/host.in --extra dev --extra twins --extra lab --extra oracles \
		--overrides constraints/host.overrides -o constraints/host.txt
	$(LOCK) constraints/volta.in --extra dev --extra volta --extra lab -o constraints/volta.txt
	$(LOCK) constraints/cuda.in --extra dev --extra cuda --extra lab --extra oracles -o constraints/cuda.txt

stamp: ## Write which commit this is, for copies of the tree without .git
	@$(or $(PYTHON),python3) -I microbench/machine/stamp.py

clean: ## Remove caches and build output; .venv and data/ stay
	rm -rf build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find smscope microbench attention constraints notebooks tests -name __pycache__ -type d -prune -exec rm -rf {} +

# A run records its commit also where the tree was copied without .git: each target renews the stamp.
ready-bench ready-report ready-dev ready-lab: ready-%:
	@$(READY)
	@$(RUN) -I microbench/machine/stamp.py >/dev/null
