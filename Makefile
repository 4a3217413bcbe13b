# One command each. A fresh machine needs Python >= 3.11, git and make; everything else goes into .venv, from requirements.lock.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	command -v $$p >/dev/null && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
DATA ?= data
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input -q
# uv trusts the machine's certificates as pip does, and gives up early: where only pip knows the way to an index, pip takes over
TWO := -n 2 --dist loadfile  # files side by side: most of a test of services is waiting
UV := UV_SYSTEM_CERTS=1 UV_HTTP_TIMEOUT=30 UV_HTTP_RETRIES=1 UV_PYTHON_DOWNLOADS=never $(BIN)/uv --no-progress

.PHONY: help demo test test-all up lint bench proof lock secrets clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "make %-9s %s\n", $$1, $$2}' Makefile

demo: $(READY) ## the whole service once, on bundled trajectories: every verdict beside the expected one
	@$(BIN)/inspector demo

up: $(READY) ## serve on 127.0.0.1 until Ctrl-C; DATA=folder keeps everything
	@$(BIN)/inspector up --data $(DATA)

test: $(READY) ## the test suite, on a real Postgres and a real Redis; ARGS="tests/test_x.py" for less
	@$(BIN)/python -m pytest $(TWO) $(ARGS)

test-all: $(READY) ## with the long proofs: faults, durability, floods
	@$(BIN)/python -m pytest -m "" $(ARGS)

lint: $(READY) ## style, types, import directions
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

bench: $(READY) ## the product and its peers, interleaved; writes benchmarks/results.json
	@$(BIN)/python -m benchmarks $(ARGS)

proof: $(VENV)/.trl ## a real RL run with and without us, several hours on two cores; ARGS="gate --seeds 1 --output DIR" for less
	@$(BIN)/python -m proof $(ARGS)

lock: $(READY) ## resolve pyproject.toml anew into requirements.lock
	@$(UV) pip compile --upgrade --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links \
		--no-annotate --no-header pyproject.toml --extra all --extra dev -o requirements.lock >/dev/null

secrets: ## passwords for compose.yaml, made once, in secrets/
	@[ ! -e secrets ] || { echo "make: secrets/ is there already; the database knows no other passwords" >&2; exit 1; }
	@umask 077 && mkdir secrets && for name in postgres inspector; do $(PYTHON) -c 'import secrets; print(secrets.token_urlsafe(32), end="")' >secrets/$${name}_password; done
	@printf 'postgresql://inspector:%s@postgres:5432/inspector' "$$(cat secrets/inspector_password)" >secrets/database_url
	@$(PYTHON) -c 'import secrets; print("ins_" + secrets.token_urlsafe(32), end="")' >secrets/prober_key
	@$(PYTHON) -c 'import secrets; print(secrets.token_urlsafe(32), end="")' >secrets/webhook_key
	@chmod 0444 secrets/*  # containers read them as their own users; the folder is ours alone

$(VENV)/.trl: $(READY)  # outside the lock: torch alone weighs more than everything else
	@$(PIP) install $$($(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["trl"])') && touch $@

clean: ## remove .venv and caches; data stays
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis

$(READY): requirements.lock pyproject.toml
	@[ -n "$(PYTHON)" ] || { echo "make: no Python >= 3.11 on PATH$$(command -v python3 >/dev/null && echo ", python3 is $$(python3 -V 2>&1)"); name one: make PYTHON=/path/to/python3.12" >&2; exit 1; }
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	@awk '/^[^ ]/ { on = /^uv==/ } on' requirements.lock >$(VENV)/uv.lock
	@$(PIP) install --require-hashes -r $(VENV)/uv.lock || echo "make: no uv here" >&2
	@$(UV) pip sync -q --require-hashes --python $(BIN)/python requirements.lock \
		|| { echo "make: uv could not fetch the lock; pip does, in a minute or two" >&2; $(PIP) install --require-hashes -r requirements.lock; }
	@$(PIP) install --no-deps --no-build-isolation -e .
	@touch $(READY)
