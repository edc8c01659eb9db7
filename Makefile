# `make demo`, `make test` and `make bench` make their own virtual environment. `make bench BENCH="--only decouple"`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DEMO := runs/demo
BENCH := --markdown benchmarks/RESULTS.md --out benchmarks/results.json

.PHONY: demo test bench lint clean

demo: $(STAMP)
	$(BIN)/python examples/demo.py --out $(DEMO)

test: $(STAMP)
	$(BIN)/python -m pytest -n 2 --cov --cov-report=term --cov-fail-under=90

bench: $(STAMP)
	$(BIN)/python -m benchmarks.bench $(BENCH)

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit("sarb needs Python 3.11 or newer") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[dev]"
	touch $(STAMP)

clean:
	rm -rf $(VENV) runs .pytest_cache .mypy_cache .ruff_cache
