# Everything runs in a virtual environment that is made on the first call: .venv, or another one with VENV=…
# Python 3.11 or newer is looked for; PYTHON=… names one. ARGS=… is handed on to pytest or to the demo.

VENV ?= .venv
ARGS ?=
BIN := $(VENV)/bin
READY := $(VENV)/.dsched-installed
VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)

.DEFAULT_GOAL := help
.PHONY: help demo test test-all e2e lint format-check ruff types contract audit docs package image pins rules install clean

help: ## Show this list.
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(READY) ## Run a whole system for a moment: 12 nodes, about 60 pods, what fits where and what does not, and why.
	@$(BIN)/python -m dsched demo $(ARGS)

test: $(READY) ## Run the tests, side by side (ARGS='-k queue' for some of them), but for campaigns and what needs something built.
	@$(BIN)/python -m pytest -n auto -m 'not built and not campaign' $(ARGS)

test-all: $(READY) ## Run all tests; skipped is what needs something that has not been built here: see tests/README.md.
	@$(BIN)/python -m pytest -n auto $(ARGS)

e2e: $(READY) ## Run the tests against a Kubernetes API server, which is built on the first call (needs Go, takes minutes).
	@assets="$${KUBEBUILDER_ASSETS:-$$(tests/e2e/build-assets)}" && KUBEBUILDER_ASSETS="$$assets" $(BIN)/python -m pytest tests/e2e $(ARGS)

lint: format-check ruff types contract ## Check format, lint rules, types and who may import whom.

format-check: $(READY)
	$(BIN)/ruff format --check .

ruff: $(READY)
	$(BIN)/ruff check .

types: $(READY)
	$(BIN)/mypy

contract: $(READY)
	$(BIN)/lint-imports

audit: $(READY) ## Look the installed packages up in the database of known vulnerabilities (needs the network).
	@deploy/audit '$(VENV)'

docs: $(READY) ## Build the documentation as a site, into the folder site.
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo 'site/index.html'

package: $(READY) ## Build wheel and source distribution, into the folder dist.
	@$(BIN)/python -m hatchling build

image: ## Build the container image dsched:VERSION (REVISION=… and CREATED=… for its labels; git is asked otherwise).
	docker build --file deploy/Dockerfile --tag dsched:$(VERSION) \
	    --build-arg PYTHON_IMAGE --build-arg PIP_INDEX_URL --build-arg PIP_TRUSTED_HOST \
	    --build-arg DSCHED_VERSION=$(VERSION) \
	    --build-arg DSCHED_REVISION="$${REVISION-$$(git describe --always --dirty --abbrev=40 --exclude='*')}" \
	    --build-arg DSCHED_CREATED="$${CREATED-$$(git log -1 --format=%cI)}" .

pins: $(READY) ## Bring the image's pinned requirements up to date with pyproject.toml (needs the network; ARGS=--upgrade).
	@deploy/pin-requirements '$(BIN)/uv' $(ARGS)

rules: ## Bring the PrometheusRule of deploy/kubernetes up to date with deploy/monitoring/rules.yml.
	@deploy/prometheus-rule

install: $(READY) ## Make the virtual environment and install dsched into it.

# Another Python, a broken environment or a changed pyproject.toml: made again, or brought up to date.
$(READY): pyproject.toml deploy/make-venv
	@PYTHON='$(PYTHON)' deploy/make-venv '$(VENV)'
	@touch $@

clean: ## Remove .venv and everything that tools have left.
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .benchmarks build dist site
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +
