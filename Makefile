# make demo    install, train the demo, track it, and print the report's path
# make test    everything that CI checks: format, lint, layers, types, docs, tests
# make docs    the documentation, into site/
# make bench   every benchmark
# make clean   remove what the targets above made, .venv and runs/ excepted

PYTHON ?= python3
WORKERS ?= 2
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
# Thread counts change rounding, and two test workers on two cores need one thread each.
ONE_THREAD := OMP_NUM_THREADS=1 MKL_NUM_THREADS=1
# pyright asks a registry for newer versions of itself unless told not to.
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1

.DELETE_ON_ERROR:
.PHONY: demo test lint docs bench clean

# torch comes first, so that the pinned build is there before anything that depends on it.
$(VENV)/.installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.11")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) torch
	$(PIP) -e .
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	$(PIP) -e '.[dev,docs,browser,ray,digits]'
	@touch $@

demo: $(VENV)/.installed
	@$(BIN)/interp-shortcuts demo --out runs/demo

lint: $(VENV)/.installed-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/pyright

docs: $(VENV)/.installed-dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

test: lint docs
	$(ONE_THREAD) $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile

bench: $(VENV)/.installed-dev
	@for script in benchmarks/*.py; do echo "== $$script"; $(BIN)/python "$$script" || exit 1; done

clean:
	rm -rf site build dist *.egg-info .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +
