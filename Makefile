# Every target makes the virtual environment it needs. Part of the benchmarks: make bench BENCH="--only decouple".
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DEMO := runs/demo
EXTRAS := .venv-extras
STUDIO := .venv-label-studio
TOOLS := .venv-tools
BACKBONES := .venv-backbones
REMOTE := .venv-remote
BENCH := --markdown benchmarks/RESULTS.md --out benchmarks/results.json

.PHONY: demo test extras faults bench lint docs wheel same-wheel lock advisories clean

demo: $(STAMP)
	$(BIN)/python examples/demo.py --out $(DEMO)

test: $(STAMP)
	$(BIN)/python -m pytest -n 2 --cov --cov-report=term --cov-fail-under=90

BACKBONE_TESTS := tests/extras/test_timm.py tests/extras/test_transformers.py
REMOTE_TESTS := tests/extras/test_object_store.py
OTHER_EXTRAS := tests/extras $(addprefix --ignore=,$(BACKBONE_TESTS) $(REMOTE_TESTS))

# Label Studio itself, cleanlab, datasets and FiftyOne, about 3 GB in two environments of their own. They set bounds of
# their own on many packages, so of constraints.txt only PyTorch's version applies.
extras: $(EXTRAS)/.installed $(STUDIO)/.installed $(BACKBONES)/.installed $(REMOTE)/.installed
	SARB_EXTRAS=1 SARB_LABEL_STUDIO=$(STUDIO)/bin/label-studio $(EXTRAS)/bin/python -m pytest -s $(OTHER_EXTRAS)
	SARB_EXTRAS=1 HF_HUB_OFFLINE=1 $(BACKBONES)/bin/python -m pytest $(BACKBONE_TESTS)
	SARB_EXTRAS=1 $(REMOTE)/bin/python -m pytest $(REMOTE_TESTS)

$(EXTRAS)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(EXTRAS)
	grep '^torch==' constraints.txt > $(EXTRAS)/constraints.txt
	$(EXTRAS)/bin/python -m pip install --quiet -c $(EXTRAS)/constraints.txt -e ".[label-studio,handover]" pytest hypothesis
	touch $@

# timm and transformers, 6 GB. torchvision needs a torch of its own build, so no version is fixed here.
$(BACKBONES)/.installed: pyproject.toml
	$(PYTHON) -m venv $(BACKBONES)
	$(BACKBONES)/bin/python -m pip install --quiet -e ".[timm,transformers,export]" pytest hypothesis
	touch $@

# An object store on this computer. s3fs and moto bound each other's packages so tightly that pip searches for long and
# finds nothing; uv finds versions in seconds.
$(REMOTE)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(REMOTE)
	grep '^torch==' constraints.txt > $(REMOTE)/constraints.txt
	$(REMOTE)/bin/python -m pip install --quiet uv
	VIRTUAL_ENV=$(CURDIR)/$(REMOTE) $(REMOTE)/bin/uv pip install --quiet -c $(REMOTE)/constraints.txt -e ".[remote]" \
		"moto[server]" pytest hypothesis
	touch $@

$(STUDIO)/.installed: Makefile
	$(PYTHON) -m venv $(STUDIO)
	$(STUDIO)/bin/python -m pip install --quiet "label-studio==1.23.*"
	touch $@

# All real faults (tests/faults), hours: one row per case in results/faults/faults.csv, and it goes on where it stopped.
faults: $(STAMP)
	$(BIN)/python -m tests.faults $(FAULTS)

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

# Two builds, in other folders and with other file times, must be the same bytes.
same-wheel: $(STAMP)
	$(BIN)/python scripts/same_wheel.py

$(STAMP): pyproject.toml constraints.txt requirements.lock scripts/install.py
	$(PYTHON) -c 'import sys; sys.exit("sarb needs Python 3.11 or newer") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python scripts/install.py
	touch $(STAMP)

# Hashes of every archive, to be made again whenever constraints.txt changes, and known faults of what it pins.
lock: $(TOOLS)/.installed
	$(TOOLS)/bin/python scripts/lock.py

advisories: $(TOOLS)/.installed
	$(TOOLS)/bin/pip-audit --require-hashes --disable-pip -r requirements.lock --vulnerability-service pypi

$(TOOLS)/.installed: Makefile
	$(PYTHON) -m venv $(TOOLS)
	$(TOOLS)/bin/python -m pip install --quiet pip-tools pip-audit
	touch $@

clean:
	rm -rf $(VENV) $(EXTRAS) $(STUDIO) $(BACKBONES) $(REMOTE) $(TOOLS)
	rm -rf dist runs site docs/changes.md .pytest_cache .mypy_cache .ruff_cache
