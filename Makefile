# One-word commands. Each sets up its own virtual environment in .venv; `make demo` and `make test` are the README's.
# Another Python beside it: `make test PYTHON=python3.13 VENV=.venv-3.13`.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

# Four workers for two cores, as many tests wait. Compiled tests and source save each worker, and each process that a
# test starts, from compiling them again.
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/pytest -n 4

.PHONY: demo test test-rest test-litellm test-oldest test-all test-quick lint types check format faults mutants bench docs clean

demo: $(READY)
	$(BIN)/evalwright demo

test: $(READY) compiled
	HYPOTHESIS_PROFILE=quick $(PYTEST) -m "not slow" $(OPTIONS)

# What `make test` leaves out: slow tests, and property tests with all their examples.
test-rest: $(READY) compiled
	$(PYTEST) -m "slow or hypothesis" $(OPTIONS)

# litellm wants an older openai than the newest, so its tests have an environment of their own.
LITELLM := .venv-litellm
test-litellm: $(LITELLM)/.ready
	$(LITELLM)/bin/pytest tests/llm/test_real_clients.py -k litellm

$(LITELLM)/.ready: pyproject.toml
	$(PYTHON) -m venv $(LITELLM)
	$(LITELLM)/bin/python -m pip install --quiet --disable-pip-version-check --editable . \
		$$($(PYTHON) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["dependency-groups"]["litellm"])')
	touch $@

# With the oldest packages that pyproject.toml allows. Left out: published schemas and mistakes in options, which older
# versions of pydantic and click word differently.
OLDEST := .venv-oldest
OLDEST_EXTRAS := excel frames judges openinference otel parquet postgres view zstd
OLDEST_ROOMS := acceptance capture files formats importers llm pytest_plugin stores viewer
test-oldest: $(OLDEST)/.ready
	HYPOTHESIS_PROFILE=quick PYTHONDONTWRITEBYTECODE= $(OLDEST)/bin/pytest -n 4 -m "not slow" \
		--ignore tests/formats/native/test_schema.py --ignore tests/acceptance/test_mistakes.py \
		$(OLDEST_ROOMS:%=tests/%)

$(OLDEST)/.ready: pyproject.toml
	$(PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/python -m pip install --quiet --disable-pip-version-check --editable . \
		$$($(PYTHON) scripts/oldest.py $(OLDEST_EXTRAS)) \
		$$($(PYTHON) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["dependency-groups"]["oldest"])')
	touch $@

test-all: test test-rest test-litellm test-oldest

# While editing: without the rooms whose tests start processes.
WITH_PROCESSES := acceptance capture docs examples faults pytest_plugin workspaces
test-quick: $(READY) compiled
	HYPOTHESIS_PROFILE=quick $(PYTEST) -q -m "not slow and not cold" $(WITH_PROCESSES:%=--ignore=tests/%) $(OPTIONS)

.PHONY: compiled
compiled: $(READY) $(VENV)/.collected
	$(BIN)/python -m compileall -q src tests

# pytest rewrites the assertions of a module when it first collects it. In a new clone each of the workers would do so
# with all modules at once; mistakes that this meets are reported by the tests.
COLLECT := PYTHONDONTWRITEBYTECODE= $(BIN)/pytest --collect-only >/dev/null 2>&1
$(VENV)/.collected: | $(READY)
	$(COLLECT) tests/[a-f]* & $(COLLECT) tests/[g-z]*; wait
	touch $@

lint: $(READY)
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(READY)
	$(BIN)/mypy
	MYPYPATH=src/evalwright/demo/suite $(BIN)/mypy --explicit-package-bases src/evalwright/demo/suite/agent.py

check: lint types test-all

format: $(READY)
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

faults: $(READY)
	$(BIN)/python scripts/faults

mutants: $(READY) compiled
	$(BIN)/python scripts/mutants.py $(OPTIONS)

bench: $(READY)
	$(BIN)/python benchmarks/journey.py
	$(BIN)/python benchmarks/bench.py
	$(BIN)/python benchmarks/stores.py
	$(BIN)/python benchmarks/judges.py
	$(BIN)/python benchmarks/code_checks.py
	$(BIN)/python benchmarks/capturing.py
	$(BIN)/python benchmarks/letta.py
	$(BIN)/python benchmarks/agentv.py

# The site of docs/, in build/site. Its generator has an environment of its own, and nothing else needs it.
DOCS := .venv-docs
docs: $(DOCS)/.ready
	$(DOCS)/bin/zensical build --strict --clean --config-file mkdocs.yml
	$(DOCS)/bin/python scripts/llms_txt.py build/site

$(DOCS)/.ready: pyproject.toml
	$(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/python -m pip install --quiet --disable-pip-version-check \
		$$($(PYTHON) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["dependency-groups"]["docs"])')
	touch $@

clean:
	rm -rf .venv .venv-* build

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Python 3.11 or newer is needed: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --editable '.[dev]'
	-$(BIN)/python -m compileall -qq -j 0 $(VENV)/lib  # on all processors: pip takes one
	touch $(READY)
