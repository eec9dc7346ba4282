# Everything lives in .venv; `make demo` and `make test` need only Python >= 3.11 with venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
EXTRAS ?= test
export OMP_WAIT_POLICY = PASSIVE

.PHONY: demo test test-all lint format docs clean

demo: $(VENV)/installed
	$(BIN)/corginet demo --out demo

test: $(VENV)/installed-$(EXTRAS)
	$(BIN)/python -m pytest -n 2 -m "not slow and not browser and not cluster" --cov --cov-report=term:skip-covered --cov-fail-under=90

test-all: test
	$(BIN)/python -m pytest -n 2 -m "slow or browser or cluster"

lint: $(VENV)/installed-$(EXTRAS)
	$(BIN)/ruff check src tests docs
	$(BIN)/ruff format --check src tests docs
	$(BIN)/mypy

format: $(VENV)/installed-$(EXTRAS)
	$(BIN)/ruff check --fix src tests docs
	$(BIN)/ruff format src tests docs

# the pages of results, from the rows in docs/results
docs: $(VENV)/installed
	$(BIN)/python docs/make_results.py

# torch first: on Linux its default wheel brings gigabytes of GPU libraries; the pin is satisfied
# by a CPU build where the machine offers one
$(VENV)/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt torch
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	touch $@

$(VENV)/installed-$(EXTRAS): $(VENV)/installed
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[$(EXTRAS)]"
	touch $@

clean:
	rm -rf $(VENV) demo build dist src/*.egg-info .pytest_cache .mypy_cache .ruff_cache
