PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
TESTS := $(BIN)/python -m pytest -n 2 --dist worksteal

.PHONY: quickstart setup test test-all test-processes lint format docs bench clean

# Four methods, three seeds, on digits dealt to 100 clients by a Dirichlet of 0.1: a setting fixed before any result,
# and as many rounds as two slow cores do in a minute.
quickstart: .venv/.run
	@test ! -e runs/quickstart || mv runs/quickstart runs/quickstart-$$(date +%Y%m%d-%H%M%S)
	$(BIN)/holdfast compare --methods "fedavg; scaffold; feddyn; specgradfilter" --seeds 3 --rounds 30 --epochs 5 \
	  --data digits --split "dirichlet(alpha=0.1, clients=100)" --model cnn --cohort 10 --lr 0.1 --out runs/quickstart

.venv/.run: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	touch $@

setup: .venv/.done

.venv/.done: .venv/.run
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt \
	  -e ".[data,flower,flower-simulation,privacy]" pytest pytest-xdist hypothesis scipy ruff pyright sphinx myst-parser furo
	touch $@

docs: setup
	$(BIN)/sphinx-build --fail-on-warning --keep-going -q -b html docs docs/_build

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright

test: lint
	$(TESTS) -m "not slow and not processes"

test-all: lint
	$(TESTS) -m "not processes"

# Servers, nodes and workers as processes of their own, killed at random moments. They wait for time-outs of Flower and Ray
# that no test can shorten, so they are run by hand and not beside the others.
test-processes: setup
	$(BIN)/python -m pytest -m processes

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: setup
	$(BIN)/python bench/engines.py

clean:
	rm -rf .venv
