# The recipes that a person types. CI calls the same ones.

SHELL := /bin/bash
.DEFAULT_GOAL := help
# The python3 that is found first, unless it was built without optimizations, as pyenv does when nothing is said: with it everything
# takes a third longer. Then that of the distribution, where there is one that can be used.
PYTHON ?= $(or $(shell for each in python3 /usr/bin/python3; do $$each -c $(IS_FAST) 2>/dev/null && echo $$each && break; done),python3)
IS_FAST := 'import ensurepip, sys, sysconfig; found = sys.base_prefix == "/usr" or "--enable-optimizations" in (sysconfig.get_config_var("CONFIG_ARGS") or ""); sys.exit(sys.version_info < (3, 11) or not found)'
# Without it each of a system's processes, and each of the tests', would compile all modules anew.
unexport PYTHONDONTWRITEBYTECODE
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet install --require-hashes

# What a Kubernetes is made of, each built of the modules that its own go.mod names.
KUBERNETES := $(patsubst %,.cache/kubernetes/%/built,etcd kwok kubernetes)

# What is said on the command line goes before the environment; DATA alone in the environment is somebody else's.
define setting
ifeq ($$(origin $(1)),command line)
export VOLCANO_UI_$(1) := $$($(1))
endif
endef
$(foreach name,PORT API_PORT DATA NODES RUNNING KUBECONFIG CONTEXT WAY WEBHOOKS WEBHOOK_PORT CLUSTERS,$(eval $(call setting,$(name))))

.PHONY: help
help: ## Show this list
	@echo "make up [PORT=8000] [API_PORT=8443] [DATA=./data] [NODES=0] [RUNNING=leave|wait|end]"
	@echo "make up KUBECONFIG=~/.kube/config [CONTEXT=name] [WAY=read-only|beside]  shows that cluster"
	@echo "make up CLUSTERS=home=embedded,dev=~/.kube/config#dev  shows several, with a menu to go from one to another"
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-19s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: up
up: .venv/runtime ## Start everything; Ctrl-C stops it, and running pods go on unless RUNNING says wait or end
	@exec $(BIN)/python manage.py up

.PHONY: loginlink
loginlink: .venv/runtime ## Print a one-time link that logs the administrator in, or USER=name; DATA as of `make up`
	@$(BIN)/python manage.py loginlink $(if $(filter command line,$(origin USER)),"$(USER)") $(ARGS)

ifneq ($(and $(filter kubeconfig,$(MAKECMDGOALS)),$(filter command line,$(origin KUBECONFIG))),)
$(error KUBECONFIG=$(KUBECONFIG) names a cluster for the pages to show, and what is to be written is FILE. Type: make kubeconfig FILE=$(KUBECONFIG))
endif

.PHONY: kubeconfig
kubeconfig: .venv/runtime ## Write FILE=./kubeconfig for kubectl; DATA as of `make up`
	@$(BIN)/python manage.py kubeconfig --file "$(or $(FILE),kubeconfig)" $(ARGS)
	@echo "export KUBECONFIG=$(abspath $(or $(FILE),kubeconfig))"

.PHONY: test
test: .venv/dev ## Run the tests (ARGS="-k name" for some of them)
	@echo "• tests, three at a time: some wait while others compute"
	@$(BIN)/pytest -n 3 -m "not clusters" $(foreach name,programs package clusters drills kubernetes,--ignore=tests/$(name)) $(ARGS)
	@echo "Not run: drills (make test-drills), tests with other clusters (make test-clusters) and with a real kube-apiserver (make test-kubernetes)"

.PHONY: test-drills
test-drills: .venv/dev ## Run the tests that stop, restart, hang and join whole systems
	@echo "• drills, two at a time"
	@$(BIN)/pytest -n 2 tests/drills $(ARGS)

.PHONY: test-clusters
test-clusters: .venv/dev ## Run the tests in which one system works on the cluster of another
	@echo "• clusters, two at a time"
	@$(BIN)/pytest -n 2 -m clusters $(addprefix tests/,clusters system browser jobs queues scheduler invariants) $(ARGS)

.PHONY: kubernetes-programs
kubernetes-programs: $(KUBERNETES) ## Build kube-apiserver, etcd and kwok for the next two; needs Go, once some ten minutes

.PHONY: test-kubernetes
test-kubernetes: .venv/dev $(KUBERNETES) ## Run the tests with a real kube-apiserver
	@echo "• kubernetes, two at a time"
	@$(BIN)/pytest -n 2 tests/kubernetes $(ARGS)

.PHONY: kubernetes
kubernetes: .venv/dev $(KUBERNETES) ## Start a Kubernetes of NODES=3 played nodes to try `make up KUBECONFIG=...` with
	@$(BIN)/python -m tests.kubernetes $(ARGS)

# Of a checkout that somebody has, since the Go module proxy does not have Volcano's modules. Go builds anew only what changed.
VOLCANO_MAINS := controller-manager:vc-controller-manager scheduler:vc-scheduler webhook-manager:vc-webhook-manager cli:vcctl

.PHONY: volcano-programs
volcano-programs: ## Build Volcano's own programs of the checkout VOLCANO=path, to test and measure beside them; needs Go
	@command -v go >/dev/null || { echo "This machine lacks Go, which builds Volcano's programs; install Go 1.26 or newer (https://go.dev/dl)."; exit 1; }
	@test -f "$(VOLCANO)/installer/volcano-development.yaml" || { echo "VOLCANO=$(VOLCANO) is no checkout of Volcano: git clone https://github.com/volcano-sh/volcano, then make volcano-programs VOLCANO=./volcano"; exit 1; }
	@mkdir -p .cache/volcano
	@for each in $(VOLCANO_MAINS); do echo "• building $${each#*:} (the first time some minutes)"; \
	  (cd "$(VOLCANO)" && CGO_ENABLED=0 nice go build -trimpath -ldflags "-s -w" -o "$(CURDIR)/.cache/volcano/$${each#*:}" ./cmd/$${each%%:*}) || exit 1; done
	@cp "$(VOLCANO)/installer/volcano-development.yaml" .cache/volcano/install.yaml

# Waits of three minutes and more are cut to one: a spec that cannot pass here would wait for ten.
VOLCANO_SUITES := vcctl jobp jobseq schedulingbase schedulingaction schedulinggates admission cronjob
VOLCANO_WAITS := test/e2e/util/util.go
VOLCANO_CONFIGURES := test/e2e/util/configmap.go

# Of Volcano's programs its suites call this one alone.
volcano-e2e: VOLCANO_MAINS := cli:vcctl
.PHONY: volcano-e2e
volcano-e2e: .venv/dev $(KUBERNETES) volcano-programs ## Run Volcano's own end-to-end suites of the checkout VOLCANO=path against this system (two hours)
	@mkdir -p .cache/volcano-e2e
	@sed -E 's/(Three|Five|Ten)Minute( *)= [0-9]+ \* time.Minute/\1Minute\2= time.Minute/' "$(VOLCANO)/$(VOLCANO_WAITS)" > .cache/volcano-e2e/util.go
	@sed -E 's/(Name: *)name,/\1"volcano-scheduler-configmap",/; s/volcano-scheduler-ci\.conf/volcano-scheduler.conf/' "$(VOLCANO)/$(VOLCANO_CONFIGURES)" > .cache/volcano-e2e/configmap.go
	@cp "$(VOLCANO)/installer/helm/chart/volcano/config/volcano-scheduler-ci.conf" .cache/volcano-e2e/
	@printf '{"Replace": {"%s": "%s", "%s": "%s"}}' "$$(cd "$(VOLCANO)" && pwd)/$(VOLCANO_WAITS)" "$(CURDIR)/.cache/volcano-e2e/util.go" "$$(cd "$(VOLCANO)" && pwd)/$(VOLCANO_CONFIGURES)" "$(CURDIR)/.cache/volcano-e2e/configmap.go" > .cache/volcano-e2e/overlay.json
	@for suite in $(VOLCANO_SUITES); do echo "• building $$suite (the first time some minutes)"; \
	  (cd "$(VOLCANO)" && CGO_ENABLED=0 nice go test -c -trimpath -ldflags "-s -w" -overlay "$(CURDIR)/.cache/volcano-e2e/overlay.json" -o "$(CURDIR)/.cache/volcano-e2e/$$suite.test" ./test/e2e/$$suite) || exit 1; done
	@git -C "$(VOLCANO)" rev-parse --short=12 HEAD > .cache/volcano-e2e/commit
	@$(BIN)/python -m proof.kubernetes.e2e $(ARGS)

.PHONY: programs
programs: .venv/dev ## Try jobs with MPI, Ray, Spark, TensorFlow and PyTorch, as root; says which of them a machine lacks
	@$(MAKE) --no-print-directory .cache/programs/installed || echo "requirements-programs.txt could not be installed"
	@$(BIN)/pytest tests/programs $(ARGS)

.PHONY: package
package: .venv/dev ## Build the wheel, install it into an empty environment and home, and run a job with it
	@echo "• package"
	@$(BIN)/pytest tests/package $(ARGS)

.PHONY: campaign
campaign: .venv/dev ## Try what `make test` tries for longer: random requests and histories
	@echo "• campaign, two at a time"
	@CAMPAIGN=1 $(BIN)/pytest -n 2 -m campaign $(ARGS)

.PHONY: escapes
escapes: .venv/dev ## Try every way out of a container that is known here, behind each wall and with each engine that this machine has
	@echo "• escapes, two at a time"
	@ESCAPES=1 $(BIN)/pytest -n 2 tests/node/test_security.py tests/node/test_roots.py tests/node/test_mounts.py tests/node/test_behind_the_wall.py::TestCheckWall $(ARGS)

.PHONY: cgroups
cgroups: .venv/dev ## Run the tests of control groups; KERNEL=vmlinuz MODULES=lib/modules/… does it in a virtual machine that has them
	@$(if $(KERNEL),proof/escapes/in_vm "$(KERNEL)" "$(MODULES)" )$(BIN)/pytest -rs -p no:cacheprovider tests/node/test_control_groups.py $(ARGS)

.PHONY: simulate
simulate: .venv/dev ## Play the whole cluster on a virtual clock: SEED=n, HOURS=4 cluster-hours; STORY=file plays one again
	@$(BIN)/python -m proof.simulation $(if $(STORY),--story $(STORY) --tell,--processes 2 --hours $(or $(HOURS),4) $(if $(SEED),--seed $(SEED))) $(ARGS)

.PHONY: stories
stories: .venv/dev ## Play the kept stories of the simulation: each finds the defect that was planted for it
	@echo "• stories"
	@$(BIN)/python -m proof.simulation.stories

.PHONY: mutants
mutants: .venv/dev ## Make 300 small defects in rules and controllers, and see who finds each; docs/mutants.md (some two hours)
	@$(BIN)/python -m proof.mutants $(ARGS)

.PHONY: check
check: .venv/dev ## Lint, types, layers, templates, JavaScript and CSS
	@$(MAKE) --no-print-directory -j 2 types lint

.PHONY: ci
ci: ## Run all that a change has to pass, in a fresh clone of HEAD; logs and times go to .cache/ci
	@$(PYTHON) .ci/clone.py

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
	@echo "• conformance"; $(BIN)/python -m proof.conformance --check
	@echo "• quality scale"; DJANGO_SETTINGS_MODULE=proof.settings $(BIN)/python -m proof.quality --check
	@echo "• biome"; $(BIN)/python manage.py assets --check

.PHONY: fmt
fmt: .venv/dev ## Format and fix what can be fixed
	@$(BIN)/ruff check --fix-only --quiet . && $(BIN)/ruff format .
	@$(BIN)/python manage.py assets --fix

.PHONY: conformance
conformance: .venv/dev ## Write docs/conformance-*.md: what is as in Volcano, and which test shows it
	@$(BIN)/python -m proof.conformance

.PHONY: scale
scale: .venv/dev ## Write docs/quality-scale.md: what each kind, page, action and reason has, and what it lacks for which reason
	@DJANGO_SETTINGS_MODULE=proof.settings $(BIN)/python -m proof.quality

.PHONY: bench
bench: .venv/dev ## Measure the whole system on a state directory of its own
	@$(BIN)/python -m proof.benches.bench $(ARGS)

.PHONY: screenshots
screenshots: .venv/dev ## Take the README's pictures from a running system
	@$(BIN)/python -m proof.pictures.screenshots

.PHONY: assets
assets: .venv/runtime ## Build the front end, if its source changed
	@$(BIN)/python manage.py assets

.PHONY: wheel
wheel: assets ## Build dist/volcano_ui-*.whl, which needs no clone, make or Node
	@$(BIN)/python -m hatchling build --target wheel

.PHONY: lock
lock: ## Resolve requirements*.in again, with hashes
	@$(PYTHON) -m venv .cache/pip-tools && .cache/pip-tools/bin/python -m pip install --quiet "pip-tools==7.6.2"
	@for name in requirements requirements-build requirements-dev requirements-programs; do echo "• $$name.txt"; \
	  CUSTOM_COMPILE_COMMAND="make lock" .cache/pip-tools/bin/pip-compile --quiet --upgrade --allow-unsafe --strip-extras --generate-hashes \
	    --no-emit-index-url --no-emit-trusted-host --no-emit-find-links --output-file $$name.txt $$name.in || exit 1; done

.PHONY: clean
clean: ## Remove everything that was built or installed; the state directory stays
	rm -rf .venv node_modules static/build dist .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Installed anew only when the lock changed.

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed, and $(PYTHON) is %d.%d. Choose another: make PYTHON=python3.13" % sys.version_info[:2])'
	@echo "• virtual environment with $$($(PYTHON) --version), $$($(PYTHON) -c 'import sys; print(sys.executable)')"
	@$(PYTHON) -m venv .venv || { rm -rf .venv; echo "$(PYTHON) cannot make a virtual environment; on Debian and Ubuntu install the package python3-venv."; exit 1; }

.venv/runtime: requirements.txt requirements-build.txt | .venv/bin/python
	@echo "• installing requirements.txt and requirements-build.txt (once; about a minute)"
	@$(PIP) -r requirements.txt -r requirements-build.txt
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

# Some ten minutes on two cores at the first time. CGO would want a C compiler, and gives nothing here.
GO_BUILD = CGO_ENABLED=0 nice go build -trimpath -ldflags "-s -w $(LDFLAGS)"
.cache/kubernetes/kubernetes/built: private LDFLAGS = -X k8s.io/component-base/version.gitVersion=$$(awk '$$1 == "k8s.io/kubernetes" { print $$2 }' go.mod)
# What is built is kept for this user's other clones, under a hash of all that it is made of. `make clean` leaves it; remove
# the folder to empty it. It is built beside its place and then renamed, since two clones may build at once.
KEPT := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/volcano-ui/kubernetes
.cache/kubernetes/%/built: proof/kubernetes/programs/%/go.mod proof/kubernetes/programs/%/go.sum
	@command -v go >/dev/null || { echo "This machine lacks Go, which builds $*; install Go 1.26 or newer (https://go.dev/dl), or the package golang of your distribution."; exit 1; }
	@mkdir -p $(@D) "$(KEPT)"
	@cd $(<D) && inputs=$$({ cat go.mod go.sum; go version; echo $(GO_BUILD); } | sha256sum) && kept="$(KEPT)/$*-$${inputs%% *}" && \
	  if [ ! -d "$$kept" ]; then \
	    echo "• building $* (once; some minutes)"; \
	    new=$$(mktemp -d "$$kept.XXXXXX") && trap 'rm -rf "$$new"' EXIT && \
	    $(GO_BUILD) -o "$$new/" tool && { mv -T "$$new" "$$kept" || [ -d "$$kept" ]; }; \
	  fi && { cp -fl "$$kept"/* $(abspath $(@D)) 2>/dev/null || cp -f "$$kept"/* $(abspath $(@D)); }
	@touch $@
