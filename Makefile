# make setup | demo | test | test-all | lint | golden | bench | docs | clean.  Everything happens in .venv, beside this file.

PYTHON ?= python3
RUN := .venv/bin/python
PYTEST := $(RUN) -m pytest -n 2 --quiet
# What belongs together, such as tests of one server, runs in one process; giving out tests this way takes longer.
GROUPED := $(PYTEST) --dist loadgroup
# Tests compare with them, and let their loaders open what export writes. DeepGNN's decoders and GraphLearn's loaders need nothing
# of what these two packages depend on.
CLIENTS := torch==2.13.0 torch-geometric==2.8.1
GOLDEN := tests/test_golden.py tests/rewrite/test_golden_rewritten.py
PEERS := deepgnn-ge==0.1.66 graphlearn-torch==0.2.4

.PHONY: help python setup setup-all core clients services test-clients test-services test-faults test-gpu test-levels test-lowest demo test test-fast test-all kernels lint coverage mutants golden samples bench bench-full bench-kernels bench-gpu bench-scaling sanitize-gpu docs site wheel dist signatures clean

help:
	@echo "make setup    install graphprep and its tools into .venv"
	@echo "make demo     convert, validate and describe the graphs of sample_data"
	@echo "make test     lint, then the tests that need no more than 700 MB of packages"
	@echo "make test-fast  of these the quick ones, once kernels are compiled"
	@echo "make test-all lint, then every test, also with the trainers' own code: what CI runs"
	@echo "make clients  install DGL and DeepGNN for the tests with their loaders, into .venv/clients"
	@echo "make test-clients  the tests with the trainers' own loaders, also those that take gigabytes to install"
	@echo "make services install the servers of the tests with a real S3 server and a real HDFS: Debian's packages, as root"
	@echo "make test-services  these tests; a server that does not come up is a failure"
	@echo "make test-faults  500 runs on storage that fails and 60 that are killed, each by a seed; other runs take a tenth"
	@echo "make test-gpu what computes on a GPU, on one; a GPU that is missing is a failure"
	@echo "make test-levels  the golden suite at every level of processors of which a wheel brings code; make test-lowest: with the oldest packages"
	@echo "make lint     ruff, mypy and the direction of imports"
	@echo "make coverage the tests, and which lines they reach"
	@echo "make mutants N=150 SEED=1  put small mistakes into the code, and see which of them no test notices"
	@echo "make golden   rewrite tests/golden; review the diff"
	@echo "make samples  rewrite sample_data"
	@echo "make bench    compare with the peers that are there, in a few minutes; bench-full: at full size; bench-kernels; bench-gpu; bench-scaling"
	@echo "make sanitize-gpu  the kernels' tests on a GPU under compute-sanitizer"
	@echo "make docs     write what commands print now into README.md and docs/"
	@echo "make site     the documentation as a site with search, which needs no network, into site/"
	@echo "make wheel    a wheel with compiled kernels, for processors like this one, into dist"
	@echo "make dist     all that goes to PyPI: also the sdist, and a wheel of Python alone, which compiles kernels at first use"
	@echo "make signatures  write anew which kernels come with it"
	@echo "make clean    remove .venv, caches and outputs"

python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "error: $(PYTHON) is older than 3.11"; echo "  fix: make setup PYTHON=python3.11"; exit 1; }

# Modules are compiled when they are first imported: most of what is installed never is.
INSTALL := -m pip install -qq --disable-pip-version-check --no-compile

# Install $(1) into .venv, and note that in .venv/$(2): again only when the folder was moved or pyproject.toml changed.
define install
wanted="$$(pwd) $$(cksum < pyproject.toml)"; \
if [ "$$(cat .venv/$(2) 2>/dev/null)" != "$$wanted" ]; then \
  echo "installing into .venv ..."; \
  $(PYTHON) -m venv .venv && $(RUN) $(INSTALL) --editable '$(1)' && echo "$$wanted" > .venv/$(2); \
fi
endef

# What `make test` needs.
setup: python
	@$(call install,.[dev],installed)

# What `make test-all` needs beside the trainers, and other targets, too.
setup-all: setup
	@$(call install,.[test-all],installed-all)

# graphprep alone, without what its tests need.
core: python
	@[ -e .venv/installed ] || { $(call install,.,core); }

demo: core
	@sh sample_data/demo.sh

test: lint kernels
	@$(PYTEST) -m "not client and not heavy and not long" $(PYTEST_FLAGS)
	@echo "make test-all adds: the trainers' own code (PyTorch, PyG, DGL, GraphLearn, DeepGNN), SciPy, pandas, S3, simulated GPUs, and all that takes longer (memory limits, killed runs, random graphs)"

test-fast: lint kernels
	@$(PYTEST) -m "not client and not heavy and not slow" --ignore=tests/docs $(PYTEST_FLAGS)

test-all: clients lint kernels
	@$(GROUPED) $(PYTEST_FLAGS)

# Trainers, whose own loaders open what export writes. DGL and DeepGNN's engine cannot live in .venv.
clients: setup-all
	@wanted="$$(pwd) $(CLIENTS) $(PEERS)"; \
	if [ "$$(cat .venv/clients/installed 2>/dev/null)" != "$$wanted" ]; then \
	  echo "installing $(CLIENTS) $(PEERS) into .venv ..."; \
	  { $(RUN) $(INSTALL) $(CLIENTS) && \
	    $(RUN) $(INSTALL) --no-deps $(PEERS) && \
	    mkdir -p .venv/clients && echo "$$wanted" > .venv/clients/installed; } || \
	    echo "note: not all of them for this machine; the tests against them are skipped"; \
	fi
	@$(call environment,dgl)
	@$(call environment,deepgnn)

# GraphBolt wants an older torch still, with 5 GB of CUDA libraries: not in CI.
test-clients: clients
	@$(call environment,graphbolt)
	@$(RUN) -m pytest --quiet tests/clients $(PYTEST_FLAGS)

# Ceph's S3 gateway from Debian's packages, and Hadoop's JARs into .venv/services.
services: setup-all
	@$(RUN) tests/services/install.py .venv/services

test-services: services
	@GRAPHPREP_REQUIRE_SERVICES=1 GRAPHPREP_SERVICE_RUNS=all $(GROUPED) tests/services $(PYTEST_FLAGS)

test-faults: setup-all
	@GRAPHPREP_FAULT_SCHEDULES=$(or $(N),500) GRAPHPREP_KILLS=60 $(RUN) -m pytest --quiet tests/faults $(PYTEST_FLAGS)

# The kernels' contract, the golden suite, commands and functions over arrays on a GPU: docs/cuda.md.
test-gpu: setup-all
	@GRAPHPREP_REQUIRE_GPU=1 $(RUN) -m pytest --quiet -m gpu $(PYTEST_FLAGS)

# The golden suite with the code that a wheel brings, for each level of processors that this machine has.
test-levels: setup
	@for level in $$($(RUN) -c 'from graphprep.kernels.compiler.levels import of_this_processor; print(*of_this_processor())'); do \
	  echo "GRAPHPREP_CPU=$$level" && GRAPHPREP_CPU=$$level $(RUN) -m pytest -n 2 --quiet $(GOLDEN) $(PYTEST_FLAGS) || exit 1; \
	done

# With the lowest versions that pyproject.toml allows of what graphprep needs, in an environment of its own.
test-lowest: python
	@$(PYTHON) -m venv .venv/lowest
	@$(PYTHON) tests/packaging/lowest.py > .venv/lowest/constraints.txt
	@.venv/lowest/bin/python -m pip install -qq --disable-pip-version-check --editable .[http] pytest pytest-timeout pytest-xdist \
	  hypothesis networkx pandas scipy --constraint .venv/lowest/constraints.txt
	@.venv/lowest/bin/python -m pytest -n 2 --quiet $(GOLDEN) tests/cli tests/decoders $(PYTEST_FLAGS)

# Install tests/clients/$(1)-requirements.txt into .venv/clients/$(1), unless that is done.
define environment
wanted="$$(pwd) $$(cksum < tests/clients/$(1)-requirements.txt)"; \
if [ "$$(cat .venv/clients/$(1)/installed 2>/dev/null)" != "$$wanted" ]; then \
  echo "installing $(1) into .venv/clients/$(1) ..."; \
  { $(PYTHON) -m venv .venv/clients/$(1) && \
    .venv/clients/$(1)/bin/python $(INSTALL) -r tests/clients/$(1)-requirements.txt && \
    echo "$$wanted" > .venv/clients/$(1)/installed; } || \
    echo "note: no $(1) for this machine; the tests with its loaders are skipped"; \
fi
endef

# Compiled once for all processes of the tests.
kernels: setup
	@$(RUN) -m graphprep kernels build

lint: setup
	@$(RUN) -m ruff check .
	@$(RUN) -m ruff format --check .
	@$(RUN) -m mypy
	@$(RUN) -c 'from importlinter.cli import lint_imports_command; lint_imports_command()' --no-logo

# Compiled kernels do not show in coverage.
coverage: clients
	@$(GROUPED) --cov=graphprep --cov-report=term:skip-covered $(PYTEST_FLAGS)

# A run of the tests finds out which of them reach which mutants; MUTANT_FLAGS="--first 30" goes on without.
mutants: setup-all
	@$(RUN) tests/mutants/run.py --count $(or $(N),20) --seed $(or $(SEED),0) $(MUTANT_FLAGS)

golden: setup
	@$(RUN) tests/golden/rewrite.py $(CASES)

signatures: setup-all
	@$(RUN) tests/kernels/signatures.py

samples: setup
	@$(RUN) sample_data/make.py

# BENCH_FLAGS="--only text --peer-python peers/bin/python": see benchmarks/README.md.
bench: setup-all
	@$(RUN) benchmarks/run.py $(BENCH_FLAGS)

bench-full: setup-all
	@$(RUN) benchmarks/run.py --size full --json .benchmarks/full.json $(BENCH_FLAGS)

bench-kernels: setup-all
	@$(RUN) -m pip install -qq --disable-pip-version-check pytest-benchmark
	@$(RUN) -m pytest -q benchmarks/micro --benchmark-columns=min,median,rounds --benchmark-sort=name $(BENCH_FLAGS)

# Needs a GPU and one of the extras cuda12 and cuda13: docs/cuda.md. BENCH_FLAGS=--toy runs it on the simulator.
bench-gpu: setup-all
	@$(RUN) benchmarks/gpu $(BENCH_FLAGS)

# How much faster 2, 4, 8 and 16 threads are, as far as there are cores. BENCH_FLAGS="--scale 20 --threads 1 2".
bench-scaling: setup-all
	@$(RUN) benchmarks/scaling.py $(BENCH_FLAGS)

# Needs a GPU and NVIDIA's compute-sanitizer: docs/cuda.md.
sanitize-gpu: setup-all
	@$(RUN) tests/kernels/sanitize.py $(SANITIZE_FLAGS)

docs: setup-all
	@$(RUN) docs/generated.py
	@$(RUN) -m cogapp -I docs -r docs/cli.md docs/python.md
	@$(RUN) docs/sessions.py

# Of the Markdown as it lies there, in the order of docs/README.md. A link that leads nowhere is an error.
site: setup
	@$(RUN) -c 'import furo, myst_parser, sphinx' 2>/dev/null || $(RUN) -m pip install -qq --disable-pip-version-check '.[docs]'
	@$(RUN) -m sphinx -W --keep-going -q -c docs/site -d build/doctrees . site
	@echo "site/index.html"

# For PyPI: with the kernels' machine code for every level of processors that this machine has. dist/
wheel: setup-all
	@GRAPHPREP_WHEEL_KERNELS=all $(RUN) -m build --wheel --no-isolation

dist: wheel
	@$(RUN) -m build --no-isolation

clean:
	rm -rf .venv out site build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage* .benchmarks .mutants
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
