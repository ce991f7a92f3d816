PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
TESTS := $(BIN)/python -m pytest -n 2 --dist worksteal

.PHONY: setup test test-all lint format bench clean

setup: .venv/.done

.venv/.done: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e . pytest pytest-xdist hypothesis ruff pyright
	touch $@

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright

test: lint
	$(TESTS) -m "not slow"

test-all: lint
	$(TESTS)

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: setup
	$(BIN)/python bench/engines.py

clean:
	rm -rf .venv
