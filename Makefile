# Every target makes the virtual environment it needs. Part of the benchmarks: make bench BENCH="--only decouple".
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DEMO := runs/demo
BENCH := --markdown benchmarks/RESULTS.md --out benchmarks/results.json

.PHONY: demo test bench lint docs wheel clean

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

# builds the site into site/; the change log stands outside docs/, so its links lose their folder
docs: $(STAMP)
	sed 's#](docs/#](#g' CHANGELOG.md > docs/changes.md
	$(BIN)/zensical build --strict --clean

# Builds dist/: the source archive, and the wheel from that archive, which shows that the archive is complete.
wheel: $(STAMP)
	rm -rf dist
	$(BIN)/python -m hatchling build --target sdist --directory dist
	$(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist dist/*.tar.gz

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit("sarb needs Python 3.11 or newer") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[dev]"
	touch $(STAMP)

clean:
	rm -rf $(VENV) dist runs site docs/changes.md .pytest_cache .mypy_cache .ruff_cache
