# Everything a person or CI does in this repository has a target here; `make` lists them.

PYTHON ?= python3
VENV := .venv
VENV_STAMP := $(VENV)/.requirements
PYTHON_SOURCES := $(wildcard python examples bench)

# Arguments for the programs behind the targets, as in: make demo DEMO_ARGS="--runs 80"
DEMO_ARGS ?=
SOAK_ARGS ?=
BENCH_ARGS ?=

export PYTHON

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test soak bench wheel peers instructions lint fmt clean prerequisites python-package

help: ## list the targets
	@grep -E '^[a-z]+:.*## ' Makefile | sed -E 's/^([a-z]+):.*## /  make \1	/' | expand -t 16

demo: python-package ## build everything and run the digest example against a real server
	$(VENV)/bin/python examples/digest/demo.py $(DEMO_ARGS)

test: python-package ## all tests: repository rules, Rust, Python types, Python
	cargo run --quiet -p xtask -- tidy
	cargo test --workspace --exclude mirab-python
	cargo test -p mirab --features sqlite --test durable
	cargo test -p mirab --features sqlite --doc
	$(VENV)/bin/python -m mypy --strict python/src $(wildcard examples/*.py)
	$(VENV)/bin/python -m mypy.stubtest mirab._native
	$(VENV)/bin/python -m pytest python/tests

soak: python-package ## the longer proofs: histories by the million, a billion grants of a bucket, twenty rounds of killing the server, a hundred of a scheduler
	cargo run --release -p mirab-sim --bin soak -- $(SOAK_ARGS)
	cargo test --release -p mirab-core --lib -- --ignored
	MIRAB_SOAK=1 cargo test -p mirab-server --test model
	MIRAB_SOAK=1 cargo test --release -p mirab-sim --test fuzz_names
	MIRAB_SOAK=1 cargo test --release -p mirab-store scheduled_killed
	MIRAB_SOAK=1 cargo test --release -p mirab --features sqlite --test durable killed
	cargo run --release -p mirab --example rate_limited_api
	MIRAB_SOAK=1 $(VENV)/bin/python -m pytest python/tests/test_scheduler_durable.py -k killed
	MIRAB_SOAK=1 $(VENV)/bin/python -m pytest python/tests/test_examples.py
	MIRAB_SOAK=1 $(VENV)/bin/python -m pytest python/tests/served/test_server_killed.py

bench: python-package ## cost of a decision, memory, mixed loads, and latency of served runs
	cargo run --profile dist -p mirab-sim --bin bench-gate -- $(BENCH_ARGS)
	cargo run --profile dist -p mirab-sim --bin bench-gate -- 1000000
	cargo run --profile dist -p mirab-sim --bin gate-figures
	cargo run --release -p mirab-sim --bin mixed-loads
	cargo bench --profile dist -p mirab --bench scheduler
	cargo bench -p mirab-store --bench durable
	$(VENV)/bin/python bench/scheduler.py
	$(VENV)/bin/python bench/served.py

wheel: $(VENV_STAMP) ## the wheel to give to others, in target/wheels
	cd python && env -u CONDA_PREFIX VIRTUAL_ENV="$(CURDIR)/$(VENV)" ../$(VENV)/bin/maturin build --profile dist

peers: ## the gate and the scheduler beside public crates, in a workspace of its own
	cd bench/peers && cargo run --release --bin bench-peers
	cd bench/peers && cargo run --release --bin scheduler

instructions: ## instructions a claim, against the recorded number; names in linear, edits in logarithmic time
	bench/instructions

lint: $(VENV_STAMP) ## formatting and lints of Rust and Python; changes nothing
	@scripts/prerequisites lint
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	cargo clippy -p mirab --features sqlite --all-targets -- -D warnings
	$(VENV)/bin/ruff check $(PYTHON_SOURCES)
	$(VENV)/bin/ruff format --check $(PYTHON_SOURCES)

fmt: $(VENV_STAMP) ## format Rust and Python
	cargo fmt --all
	$(VENV)/bin/ruff check --select I --fix $(PYTHON_SOURCES)
	$(VENV)/bin/ruff format $(PYTHON_SOURCES)

clean: ## remove what was built, the Python environment too
	cargo clean
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache python/src/mirab/_native*.so

prerequisites:
	@scripts/prerequisites

# The stamp keeps a copy of the requirements that are installed, so that an unchanged file installs nothing.
$(VENV_STAMP): python/requirements-dev.txt | prerequisites
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	cp $< $@

# Tests use what cargo has built for them anyway; what is shown or measured is optimised.
demo bench soak: PROFILE := --release

# Cargo knows best what is out of date, so this always asks it. maturin refuses to choose between two environments,
# hence the unset CONDA_PREFIX.
python-package: $(VENV_STAMP)
	cd python && env -u CONDA_PREFIX VIRTUAL_ENV="$(CURDIR)/$(VENV)" ../$(VENV)/bin/maturin develop $(PROFILE)
