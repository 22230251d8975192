# The recipes that a person types. CI calls the same ones.

SHELL := /bin/bash
.DEFAULT_GOAL := help
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet install --require-hashes

# What is said on the command line goes before the environment; DATA alone in the environment is somebody else's.
define setting
ifeq ($$(origin $(1)),command line)
export VOLCANO_UI_$(1) := $$($(1))
endif
endef
$(foreach name,PORT API_PORT DATA NODES,$(eval $(call setting,$(name))))

.PHONY: help
help: ## Show this list
	@echo "make up [PORT=8000] [API_PORT=8443] [DATA=./data] [NODES=0]"
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: up
up: .venv/runtime ## Start everything; Ctrl-C stops it
	@exec $(BIN)/python manage.py up

.PHONY: kubeconfig
kubeconfig: .venv/runtime ## Write FILE=./kubeconfig for kubectl; PORT and DATA as of `make up`
	@$(BIN)/python manage.py kubeconfig --file "$(or $(FILE),kubeconfig)" $(ARGS)
	@echo "export KUBECONFIG=$(abspath $(or $(FILE),kubeconfig))"

.PHONY: test
test: .venv/dev ## Run the tests (ARGS="-k name" for some of them)
	@echo "• tests, two at a time"
	@$(BIN)/pytest -n 2 --ignore=tests/programs $(ARGS)

.PHONY: programs
programs: .venv/dev ## Try jobs with MPI, Ray, TensorFlow and PyTorch, as root; says which of them a machine lacks
	@$(MAKE) --no-print-directory .cache/programs/installed || echo "requirements-programs.txt could not be installed"
	@$(BIN)/pytest tests/programs $(ARGS)

.PHONY: campaign
campaign: .venv/dev ## Try what `make test` tries for longer: random requests and histories
	@echo "• campaign, two at a time"
	@CAMPAIGN=1 $(BIN)/pytest -n 2 -m campaign $(ARGS)

.PHONY: simulate
simulate: .venv/dev ## Play the whole cluster on a virtual clock: SEED=n, HOURS=4 cluster-hours; STORY=file plays one again
	@$(BIN)/python -m tests.simulation $(if $(STORY),--story $(STORY) --tell,--processes 2 --hours $(or $(HOURS),4) $(if $(SEED),--seed $(SEED))) $(ARGS)

.PHONY: check
check: .venv/dev ## Lint, types, layers, templates, JavaScript and CSS
	@$(MAKE) --no-print-directory -j 2 types lint

.PHONY: types lint
types lint: export VOLCANO_UI_DATA := $(CURDIR)/.cache/check
types: .venv/dev
	@echo "• mypy"; $(BIN)/mypy
lint: .venv/dev
	@echo "• ruff"; $(BIN)/ruff check . && $(BIN)/ruff format --check .
	@echo "• import-linter"; $(BIN)/lint-imports
	@echo "• djlint"; $(BIN)/djlint --lint --quiet templates
	@echo "• migrations"; $(BIN)/python manage.py makemigrations --check --dry-run
	@echo "• API reference"; $(BIN)/python manage.py apidocs --check
	@echo "• biome"; $(BIN)/python manage.py assets --check

.PHONY: fmt
fmt: .venv/dev ## Format and fix what can be fixed
	@$(BIN)/ruff check --fix-only --quiet . && $(BIN)/ruff format .
	@$(BIN)/python manage.py assets --fix

.PHONY: conformance
conformance: .venv/dev ## Write docs/conformance-jobs.md: what is as in Volcano, and which test shows it
	@$(BIN)/python -m tests.conformance

.PHONY: bench
bench: .venv/dev ## Measure the whole system on a state directory of its own
	@$(BIN)/python -m tests.load.bench $(ARGS)

.PHONY: screenshots
screenshots: .venv/dev ## Take the README's pictures from a running system
	@$(BIN)/python -m tests.browser.screenshots

.PHONY: assets
assets: .venv/runtime ## Build the front end, if its source changed
	@$(BIN)/python manage.py assets

.PHONY: lock
lock: ## Resolve requirements*.in again, with hashes
	@$(PYTHON) -m venv .cache/pip-tools && .cache/pip-tools/bin/python -m pip install --quiet "pip-tools==7.6.2"
	@for name in requirements requirements-dev requirements-programs; do echo "• $$name.txt"; \
	  CUSTOM_COMPILE_COMMAND="make lock" .cache/pip-tools/bin/pip-compile --quiet --upgrade --allow-unsafe --strip-extras --generate-hashes \
	    --no-emit-index-url --no-emit-trusted-host --no-emit-find-links --output-file $$name.txt $$name.in || exit 1; done

.PHONY: clean
clean: ## Remove everything that was built or installed; the state directory stays
	rm -rf .venv node_modules static/build .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Installed anew only when the lock changed.

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed, and $(PYTHON) is %d.%d. Choose another: make PYTHON=python3.13" % sys.version_info[:2])'
	@echo "• virtual environment with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv .venv || { rm -rf .venv; echo "$(PYTHON) cannot make a virtual environment; on Debian and Ubuntu install the package python3-venv."; exit 1; }

.venv/runtime: requirements.txt | .venv/bin/python
	@echo "• installing requirements.txt (once; about a minute)"
	@$(PIP) -r requirements.txt
	@touch $@

.venv/dev: requirements-dev.txt .venv/runtime
	@echo "• installing requirements-dev.txt (once; about a minute)"
	@$(PIP) -r requirements-dev.txt
	@touch $@

# Two gigabytes that only `make programs` wants, and that may be missing: apart from everything else.
.cache/programs/installed: requirements-programs.txt
	@echo "• installing requirements-programs.txt (once; some minutes)"
	@$(PYTHON) -m venv .cache/programs
	@.cache/programs/bin/python -m pip --disable-pip-version-check --quiet install --require-hashes -r requirements-programs.txt
	@touch $@
