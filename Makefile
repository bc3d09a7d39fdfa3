# What a reader and a contributor need; `make` alone lists it. Everything is installed into VENV by PYTHON (3.10 or newer):
#   make test PYTHON=python3.12 VENV=.venv312
# A stamp inside VENV says what was installed; it is done again only when pyproject.toml or the version of Python changes.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.PHONY: help book lab slides assignment outputs lint test site-test bench node clean

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
EXECUTE ?= force
PEERS := .venv-peers
MXNET := .venv-mxnet
CHAPTERS := book/chapters
SITE := book/_build
GRADERS := .venv-graders
REHEARSE := book/teaching/assignment/rehearse.py
SPHINX := $(BIN)/python -m sphinx -E -W --keep-going --color
ASK := import sys; print("%d.%d" % sys.version_info[:2])
VERSION := $(shell $(PYTHON) -c '$(ASK)')
FOR_BOOK := $(VENV)/.minimx-book-$(VERSION)
FOR_TEST := $(VENV)/.minimx-test-$(VERSION)

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

book: $(FOR_BOOK) ## run the chapters and build the site; `make book EXECUTE=off` takes their stored output
	@echo "== running the chapters and building the site"
	rm -rf $(SITE)/{doctrees,html,jupyter_execute,sections.json,zh}
	$(SPHINX) -D nb_execution_mode=$(EXECUTE) -d $(SITE)/doctrees book $(SITE)/html
	@echo "== building the Chinese site, with the outputs of the chapters that ran"
	$(BIN)/python book/translation.py build zh $(SITE) $(SITE)/zh/source
	$(SPHINX) -t zh -c book -D nb_execution_mode=off -d $(SITE)/zh/doctrees $(SITE)/zh/source $(SITE)/zh/html
	mv $(SITE)/zh/html $(SITE)/html/zh
	@echo "== open book/_build/html/index.html"

lab: $(FOR_BOOK) ## open the chapters in JupyterLab (`make lab ARGS=--no-browser`)
	$(BIN)/python -m jupyterlab $(CHAPTERS) $(ARGS)

slides: $(FOR_BOOK) ## slides of the chapters, or of notebooks (`make slides ARGS=book/chapters/04-hybridize.ipynb`)
	@$(BIN)/python -c 'import sphinx_revealjs' 2> /dev/null || { echo "== installing reveal.js into $(VENV)"; \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps 'sphinx-revealjs>=3.2'; }
	$(BIN)/python book/slides.py $(SITE)/slides $(ARGS)

assignment: $(FOR_BOOK) ## rehearse the assignment: its checks alone, and by nbgrader and Otter-Grader in a venv of their own
	$(BIN)/python $(REHEARSE)
	@test -d $(GRADERS) || { echo "== installing nbgrader and Otter-Grader into $(GRADERS)"; $(PYTHON) -m venv $(GRADERS); \
		$(GRADERS)/bin/python -m pip install --quiet --disable-pip-version-check nbgrader otter-grader --editable . \
		|| { rm -rf $(GRADERS); exit 1; }; }
	$(GRADERS)/bin/python $(REHEARSE) --tool nbgrader
	$(GRADERS)/bin/python $(REHEARSE) --tool otter

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

site-test: $(FOR_TEST) ## click through the site that `make book` has built, in a browser without a window (any Chromium)
	@test -f $(SITE)/html/zh/index.html || { echo "no whole site in $(SITE)/html: run make book first"; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check playwright
	MINIMX_SITE=$(SITE)/html $(BIN)/python -m pytest tests/book/test_site.py

bench: $(FOR_TEST) $(PEERS)/.minimx-peers ## the benchmarks beside other libraries, in venvs of their own (`make bench ARGS=--quick`)
	$(BIN)/python -m minimx bench $(ARGS)

node: $(FOR_TEST) ## ONNX Runtime for JavaScript, for the test that runs a model in Node (which has to be there, with npm)
	npm install --prefix $(VENV)/node --no-save --no-audit --no-fund --loglevel error onnxruntime-web

clean: ## remove all that make made
	rm -rf $(VENV) $(PEERS) $(MXNET) $(GRADERS) book/_build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -not -path './.git/*' -prune -exec rm -rf {} +

# MXNet's wheels end with Python 3.11; without such an interpreter (MXNET_PYTHON=...) it is left out, and the benchmarks say so.
MXNET_PYTHON ?= $(firstword $(foreach minor,11 10 9 8,$(shell command -v python3.$(minor))))

$(PEERS)/.minimx-peers:
	@echo "== installing PyTorch, JAX, MLX and ONNX Runtime into $(PEERS), and MXNet 1.9.1 into $(MXNET)"
	$(PYTHON) -m venv --clear $(PEERS)
	for peer in torch jax 'mlx[cpu]' onnxruntime; do \
		$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check "$$peer" || echo "== $$peer is not to be had here"; done
	$(if $(MXNET_PYTHON),$(MXNET_PYTHON) -m venv --clear $(MXNET),@echo "== no Python 3.11 or older: without MXNet")
	$(if $(MXNET_PYTHON),$(MXNET)/bin/python -m pip install --quiet --disable-pip-version-check mxnet==1.9.1 numpy==1.23.5 || echo "== MXNet is not to be had here")
	@touch $@

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
	$(call install,fast$(comma)book$(comma)dist$(comma)image$(comma)onnxruntime$(comma)site$(comma)test)
