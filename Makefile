# Every target first brings .venv to what it needs (constraints/prepare.py): made once, instant after that.
#   PYTHON=/path/to/python   use that environment as it is: nothing is installed, what it lacks is named
#   LANE=host                measure the CPU of a machine that has a GPU (or volta, cuda: instead of what was found)
#   ARGS="--quick"           goes on to the program behind the target
.DEFAULT_GOAL := help
PYTHON ?=
LANE ?=
ARGS ?=

ifeq ($(strip $(PYTHON)),)
BIN := .venv/bin/
RUN := .venv/bin/python
# The first interpreter that is new enough; prepare.py looks further where the lane asks for an older one.
BOOT = $(shell for p in python3 python3.13 python3.12 python3.11 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
PREPARE = $(or $(BOOT),$(error smscope needs Python 3.11 or newer, and neither python3 nor python3.11 to python3.13 \
	is one; install it, or name an environment with PYTHON=/path/to/python)) constraints/prepare.py --lane "$(LANE)"
else
RUN := $(PYTHON)
BIN = $(shell $(PYTHON) -c 'import sysconfig; print(sysconfig.get_path("scripts"))')/
OLD = $(shell $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || echo old)
PREPARE = $(if $(OLD),$(error PYTHON=$(PYTHON) is no Python 3.11 or newer; name one that is),$(PYTHON)) \
	constraints/prepare.py --check --lane "$(LANE)"
endif

DEVICE := $(if $(filter host,$(LANE)),--device host)
KERNELS = $(shell find microbench attention -name '*.cu' -o -name '*.cuh' -o -name '*.hpp' -o -name '*.cpp')
NOTEBOOKS = $(wildcard notebooks/[0-9]*.py)

.PHONY: help bench check report profile test test-all test-gpu lint format lab notebooks wheel stamp clean
.PHONY: ready-bench ready-report ready-dev ready-lab
.NOTPARALLEL:

help: ## This list
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  make \1|\2/p' $(firstword $(MAKEFILE_LIST)) | \
		while IFS='|' read -r target text; do printf '%-18s %s\n' "$$target" "$$text"; done
	@sed -n 's/^#   \([A-Z]*=[^ ]*\) *\(.*\)/  \1|\2/p' $(firstword $(MAKEFILE_LIST)) | \
		while IFS='|' read -r name text; do printf '%-26s %s\n' "$$name" "$$text"; done

bench: ready-bench ## Measure this machine: one run, its profile, and the kernels it picks
	@$(RUN) -m microbench run $(DEVICE) $(ARGS)
	$(if $(or $(findstring --json,$(ARGS)),$(findstring --quick,$(ARGS)),$(findstring --only,$(ARGS))),,\
		@$(RUN) -m attention bench --after-run $(if $(findstring host,$(DEVICE) $(ARGS)),host,any))
	$(if $(findstring --json,$(ARGS)),,@$(RUN) -m attention picks $(if $(findstring host,$(DEVICE) $(ARGS)),--gpu host))

check: ready-dev ## Compile every kernel for every architecture and read its SASS; ARGS=<gpu> compares its methods
	@$(RUN) -m microbench check $(ARGS)
	$(if $(ARGS),,@$(RUN) -m attention check)

report: ready-report ## A page and a figure of every profile, in reports/
	@$(RUN) -m microbench report $(ARGS)

profile: ready-bench ## Derive every profile again from data/runs
	@$(RUN) -m microbench profile $(ARGS)

test: ready-dev ## Every test that needs no GPU, under 10 minutes
	@$(RUN) -m pytest -q -m "not slow and not gpu" $(ARGS)

test-all: ready-dev ## Those, and the slow ones
	@$(RUN) -m pytest -q -m "not gpu" $(ARGS)

test-gpu: ready-dev ## The tests that need an NVIDIA GPU
	@$(RUN) -m pytest -q -m gpu $(ARGS)

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

wheel: ready-dev ## The wheel, in dist/
	@$(RUN) -m hatchling build -t wheel

stamp: ## Write which commit this is, for copies of the tree without .git
	@$(or $(PYTHON),$(BOOT)) -I microbench/stamp.py

clean: ## Remove caches and build output; .venv and data/ stay
	rm -rf build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find microbench attention constraints notebooks tests -name __pycache__ -type d -prune -exec rm -rf {} +

# A run records its commit also where the tree was copied without .git: each target renews the stamp.
ready-bench ready-report ready-dev ready-lab: ready-%:
	@$(PREPARE) $*
	@$(RUN) -I microbench/stamp.py >/dev/null
