# One-word commands. Each sets up its own virtual environment in .venv; `make demo` and `make test` are the README's.

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: demo test lint types check format faults bench clean

demo: $(READY)
	$(BIN)/evalwright demo

test: $(READY)
	$(BIN)/pytest -n 2

lint: $(READY)
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(READY)
	$(BIN)/mypy
	MYPYPATH=src/evalwright/demo/suite $(BIN)/mypy --explicit-package-bases src/evalwright/demo/suite/agent.py

check: lint types test

format: $(READY)
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

faults: $(READY)
	$(BIN)/python scripts/faults

bench: $(READY)
	$(BIN)/python benchmarks/journey.py
	$(BIN)/python benchmarks/bench.py
	$(BIN)/python benchmarks/stores.py
	$(BIN)/python benchmarks/judges.py
	$(BIN)/python benchmarks/code_checks.py
	$(BIN)/python benchmarks/capturing.py
	$(BIN)/python benchmarks/letta.py
	$(BIN)/python benchmarks/agentv.py

clean:
	rm -rf .venv

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Python 3.11 or newer is needed: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $(READY)
