# What a reader and a contributor need; `make` alone lists it. Everything is installed into VENV by PYTHON (3.10 or newer):
#   make test PYTHON=python3.12 VENV=.venv312
# A stamp inside VENV says what was installed; it is done again only when pyproject.toml or the version of Python changes.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.PHONY: help book lab outputs lint test bench clean

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
EXECUTE ?= force
CHAPTERS := book/chapters
ASK := import sys; print("%d.%d" % sys.version_info[:2])
VERSION := $(shell $(PYTHON) -c '$(ASK)')
FOR_BOOK := $(VENV)/.minimx-book-$(VERSION)
FOR_TEST := $(VENV)/.minimx-test-$(VERSION)

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

book: $(FOR_BOOK) ## run the chapters and build the site; `make book EXECUTE=off` takes their stored output
	@echo "== running the chapters and building the site"
	rm -rf book/_build
	$(BIN)/python -m sphinx -E -W --keep-going --color -D nb_execution_mode=$(EXECUTE) -d book/_build/doctrees book book/_build/html
	@echo "== open book/_build/html/index.html"

lab: $(FOR_BOOK) ## open the chapters in JupyterLab (`make lab ARGS=--no-browser`)
	$(BIN)/python -m jupyterlab $(CHAPTERS) $(ARGS)

outputs: $(FOR_BOOK) ## run the chapters and store their output in them, which `make test` compares with
	$(BIN)/python -m nbconvert --to notebook --inplace --execute --ExecutePreprocessor.record_timing=False $(CHAPTERS)/*.ipynb

lint: $(FOR_TEST) ## style, types, directions of imports
	@echo "== ruff"
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@echo "== mypy --strict"
	$(BIN)/mypy
	@echo "== import-linter"
	$(BIN)/lint-imports

test: lint ## lint, and then every test: tests/, the examples in docstrings, the chapters against their stored output
	@echo "== pytest"
	$(BIN)/python -m pytest --doctest-modules --nbval --nbval-current-env tests minimx $(CHAPTERS)

bench: $(FOR_TEST) ## the benchmarks, as a table
	$(BIN)/python -m minimx bench $(ARGS)

clean: ## remove all that make made
	rm -rf $(VENV) book/_build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -not -path './.git/*' -prune -exec rm -rf {} +

# $(call install,extras): an editable install. A VENV made by another version of Python is made anew.
comma := ,
define install
	@$(PYTHON) -c 'import sys; sys.exit("minimx needs Python 3.10 or newer; PYTHON=$(PYTHON) is %d.%d" % sys.version_info[:2] if sys.version_info < (3, 10) else 0)'
	@if [ "$$($(BIN)/python -c '$(ASK)' 2> /dev/null)" != $(VERSION) ]; then \
		echo "== making $(VENV) with Python $(VERSION)"; $(PYTHON) -m venv --clear $(VENV); fi
	@echo "== installing minimx[$(1)] into $(VENV); the first time this takes a few minutes"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$(1)]'
	@touch $@
endef

$(FOR_BOOK): pyproject.toml
	$(call install,fast$(comma)book$(comma)dist$(comma)image$(comma)site)

$(FOR_TEST): pyproject.toml
	$(call install,fast$(comma)book$(comma)dist$(comma)image$(comma)site$(comma)test)
