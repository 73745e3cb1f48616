# `make run` is the command of the README; the others are for developers.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

BASE_PYTHON ?= python3
VENV ?= .venv
TRACE ?= traces/fdtd2048.bin

python = $(VENV)/bin/python
pip = $(python) -m pip install --quiet --disable-pip-version-check --progress-bar on
sanitized = build/sanitize
extensions = $(shell find buddysim -name '*.pyx')
sources = buddysim/base/build_flags.py $(shell find buddysim -name '*.pyx' -o -name '*.pxd' -o -name '*.h')
flags = march=$(BUDDYSIM_MARCH) boundscheck=$(BUDDYSIM_BOUNDSCHECK)

.PHONY: help arm notebooks web site wheels sdist check-release run test check test-all test-long lowest bench instructions figures validate-buddy validate docs lint sanitize fuzz laws kills mutants traces lock build develop clean check-machine FORCE

help:
	@echo "make run       build, then replay $(TRACE) (another one: make run TRACE=FILE)"
	@echo "make test      build, then run the tests"
	@echo "make check     build, then run the tests that the change since main can affect, by the last runs of all"
	@echo "make test-all  the slow tests and those of the extras too: installs what they need (apt, PyTorch)"
	@echo "make test-long the tests of minutes: reference machine on many programs, networks trained twice, kills"
	@echo "make lowest    the quick tests with the lowest versions of what buddysim uses"
	@echo "make bench     measure the simulator's speed and memory"
	@echo "make validate  compare both engines with published figures: stores results in docs/validation/"
	@echo "make instructions  count CPU instructions of three replays and a training, store and draw them"
	@echo "make figures   the Buddy Compression study: makes its traces, simulates, draws fig3 to fig13 (make figures SCALE=small)"
	@echo "make web       the page that answers in a browser: out/web (npm and pip bring Pyodide and pydantic)"
	@echo "make arm       cross-build for aarch64; replays of every scheme under qemu equal this machine's (ten minutes)"
	@echo "make notebooks a notebook for each tutorial: out/notebooks"
	@echo "make docs      the site of the documents and the API's reference, links checked: out/site"
	@echo "make lint      ruff, cython-lint, mypy, stubtest; workflows and issue forms by their schemas"
	@echo "make sanitize  the tests on a build with address and undefined-behaviour sanitizers"
	@echo "make fuzz      files of every type from grammars (MINUTES=N or INPUTS=N; SANITIZED=1: that build)"
	@echo "make kills     sweeps whose schedulers, signals and disks fail at random times (half an hour)"
	@echo "make mutants   switch off one mechanism after the other: which tests notice? (up to an hour)"
	@echo "make traces    convert the larger traces into traces/large/ (make traces CAPTURES=FOLDER)"
	@echo "make lock      versions and hashes of what the tests use, as pip resolves them now: tests/requirements.lock"
	@echo "make clean     remove everything that was built"

run: build
	@echo "replaying $(TRACE)"
	$(python) -m buddysim run $(TRACE)

test: develop
	$(python) -m pytest

# An empty list runs nothing; without notes of an earlier run it has every test.
check: develop
	@tests=$$($(python) -m tests.affected); \
	if test -z "$$tests"; then echo "no test is affected"; else $(python) -m pytest $$tests; fi

# The lowest versions that pyproject.toml allows, in an environment of their own. LOWEST_TESTS=tests/trace: a folder.
LOWEST_TESTS ?= tests
lowest: check-machine
	@test -x build/lowest/bin/python || $(BASE_PYTHON) -m venv build/lowest
	build/lowest/bin/python -m pip install --quiet --disable-pip-version-check \
	    $$($(BASE_PYTHON) tools/lowest_versions.py) 'pytest>=8' 'pytest-xdist>=3.6' 'hypothesis>=6.100'
	build/lowest/bin/python setup.py -q build_ext --inplace
	build/lowest/bin/python -m pytest $(LOWEST_TESTS)

# The tests of the extras skip themselves, and say why, where something could not be installed. EXTRAS=required makes
# that an error. The capture of OpenCL is compiled, for a minute, before the time of any test is measured.
compile_capture = from buddysim.capture.opencl import toolchain as t; c = t.find_toolchain(); t.pass_plugin(c); t.runtime_library(c)
test-all: which = not long
test-long: which = long
test-all test-long: develop
	@complete=yes; tools/install_extras.sh $(python) || complete=no; \
	if test "$$complete$(EXTRAS)" = norequired; then exit 1; fi; \
	$(python) -c '$(compile_capture)' 2>/dev/null || true; \
	$(python) -m pytest -m "$(which)" -rs; \
	if test $$complete = no; then \
	    echo "buddysim: warning: some extras could not be installed (named above): their tests were skipped" >&2; fi

bench: build
	$(python) -m benchmarks

# Appends this commit's counts to benchmarks/instructions.csv, and draws all.
instructions: build
	@command -v valgrind >/dev/null || sudo apt-get install --yes --quiet valgrind
	mkdir -p out/benchmarks
	$(python) -m benchmarks.instructions --store
	$(python) -m benchmarks.instructions --plot out/benchmarks/instructions.png

# Traces that are there are kept; results that the store has aren't simulated again.
SCALE ?= medium
figures: build
	$(python) -m buddysim plot study --run --scale $(SCALE) -o out/figures

# Of what the store has: after `make figures`.
validate-buddy: build
	$(python) tools/validate_buddy.py --scale $(SCALE)

validate: build
	$(python) tools/validate_training.py
	$(python) -m tools.cost_errors
	$(python) -m tools.operator_errors
	$(python) -m buddysim validate -o docs/validation

traces: build
	@test -n "$(CAPTURES)" || { \
	    echo "buddysim: error: make traces CAPTURES=FOLDER: expected the folder whose data/ holds the archives" >&2; exit 2; }
	$(python) tools/make_traces.py --shared "$(CAPTURES)" -o traces/large

# The page's files, Pyodide with them: for any web server, or `python -m buddysim web`.
web: develop
	$(python) tools/make_web.py

# What GitHub Pages serves: the page, and the documents below it.
site: web docs
	rm -rf out/pages
	cp -r out/web out/pages
	cp -r out/site out/pages/documents

# Wheels of every Python of pyproject.toml for this machine: cibuildwheel builds them in containers, repairs and tests them.
wheels:
	$(BASE_PYTHON) -m venv build/wheels
	build/wheels/bin/python -m pip install --quiet cibuildwheel==4.3.5
	build/wheels/bin/python -m cibuildwheel --output-dir out/wheels

sdist:
	$(BASE_PYTHON) -m venv build/wheels
	build/wheels/bin/python -m pip install --quiet build==1.6.1
	build/wheels/bin/python -m build --sdist --outdir out/wheels

check-release:
	$(BASE_PYTHON) tools/check_release.py $(TAG)

# The API's reference is made from the docstrings; every link is followed, those to other sites too.
arm: build
	PYTHON=$(python) tools/aarch64.sh

notebooks: build
	$(python) -m tools.tutorial_notebooks

docs: develop
	@echo "installing Sphinx into $(VENV)"
	@$(pip) 'sphinx>=7' 'myst-parser>=3'
	$(python) -m sphinx -q -W --keep-going -b html docs out/site
	$(python) -m pytest -q -n0 tests/docs/test_commands.py -k links
	@echo "asking other sites whether they have the pages that documents link to"
	@$(python) -m sphinx -q -b linkcheck docs out/site-links || \
	    ! grep broken out/site-links/output.txt | grep -vE "Connection|resol|imed out|unreachable|Proxy|Max retries" || exit 1
	@echo "the site: out/site/index.html"

lint: develop
	$(python) -m ruff check .
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" cython-lint buddysim
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" cython-lint docs/examples --ignore E302 E305
	$(python) -m check_jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(python) -m check_jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml
	$(python) -m check_jsonschema --builtin-schema vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml
	$(python) -m check_jsonschema --builtin-schema vendor.github-issue-forms \
	    $(filter-out %/config.yml,$(wildcard .github/ISSUE_TEMPLATE/*.yml))
	$(python) -m check_jsonschema --builtin-schema vendor.citation-file-format CITATION.cff
	$(python) -m mypy
	$(python) -m mypy.stubtest --ignore-missing-stub --ignore-disjoint-bases --allowlist tools/stubtest.allow \
	     $(subst /,.,$(extensions:.pyx=))

# The package is built apart, into $(sanitized)/lib, which PYTHONPATH puts before everything else; PYTHONSAFEPATH keeps
# the working directory out. libstdc++ is loaded early because the address sanitizer must find its __cxa_throw.
sanitized_environment = LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libstdc++.so)" \
    ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 \
    PYTHONMALLOC=malloc PYTHONSAFEPATH=1 PYTHONPATH="$$PWD/$(sanitized)/lib" BUDDYSIM_SANITIZED=1

sanitize: develop
	mkdir -p $(sanitized)
	BUDDYSIM_SANITIZE=1 BUDDYSIM_BOUNDSCHECK=1 $(python) setup.py -q build \
	    --build-base $(sanitized) --build-lib $(sanitized)/lib --build-temp $(sanitized)/temp
	for folder in tools benchmarks plots tests traces docs; do \
	    if test -e $$folder; then ln -sfn "$$PWD/$$folder" $(sanitized)/lib/$$folder; fi; done
	$(sanitized_environment) $(python) -c 'import buddysim; assert "$(sanitized)/lib" in buddysim.__file__, buddysim'
	$(sanitized_environment) $(python) -m pytest -W error::pytest.PytestUnraisableExceptionWarning $(SANITIZE_ARGS)

# What breaks the promise of docs/reference/untrusted-files.md is kept in out/fuzz. After `make sanitize`, SANITIZED=1 fuzzes that build.
MINUTES ?= $(if $(INPUTS),,60)
fuzz: develop
	$(if $(SANITIZED),cd $(sanitized)/lib && $(subst $$PWD/$(sanitized),$(CURDIR)/$(sanitized),$(sanitized_environment))) \
	    $(abspath $(python)) -m tests.fuzz $(if $(MINUTES),--minutes $(MINUTES)) $(if $(INPUTS),--inputs $(INPUTS)) --out $(CURDIR)/out/fuzz $(FUZZ_ARGS)

laws: develop
	$(python) -m tests.laws $(LAWS)

# KILLS_ARGS="--schedulers 3 --signals 20 --disks 0": a short run.
kills: develop
	$(python) -m tests.sweep.kills $(KILLS_ARGS)

lock: develop
	$(python) -m tools.lock_environment

mutants: develop
	$(python) -m tools.run_mutants $(MUTANTS_ARGS)

# Compilation and pip's downloads run side by side.
build: $(VENV)/.compiler
	@$(MAKE) --no-print-directory -j2 $(VENV)/.built $(VENV)/.installed

# In addition, what the tests and the checks need. Tests start hundreds of processes, which find the modules compiled
# even where PYTHONDONTWRITEBYTECODE is set.
develop: build
	@$(MAKE) --no-print-directory $(VENV)/.tools
	@$(python) -m compileall -q -j 2 buddysim tools benchmarks plots

# Extensions lie next to their sources; only those that changed are built again.
$(VENV)/.built: $(VENV)/.compiler $(sources) setup.py
	@echo "compiling the simulator: the first time half a minute on two cores"
	@BUDDYSIM_PROGRESS=1 $(python) setup.py -q build_ext --inplace
	@touch $@

$(VENV)/.compiler: pyproject.toml $(VENV)/.flags
	@echo "installing what the build needs, into $(VENV)"
	@$(pip) 'setuptools>=77.0.1' 'Cython>=3.3,<4' 'numpy>=2'
	@touch $@

# Python compiles what it imports at the first import: a fraction of what pip would compile.
$(VENV)/.installed: pyproject.toml $(VENV)/.compiler
	@echo "installing buddysim, and what it uses"
	@BUDDYSIM_COMPILE=later $(pip) --no-compile --no-build-isolation --editable .
	@touch $@

$(VENV)/.tools: pyproject.toml $(VENV)/.installed
	@echo "installing what the tests and checks use"
	@BUDDYSIM_COMPILE=later $(pip) --no-compile --no-build-isolation --editable '.[dev]'
	@touch $@

# Other compiler flags than last time: build everything again.
$(VENV)/.flags: FORCE | check-machine
	@test -x $(python) || { echo "making the virtual environment $(VENV)"; $(BASE_PYTHON) -m venv $(VENV); }
	@if test "$$(cat $@ 2>/dev/null)" != "$(flags)"; then \
	    find buddysim -name '*.so' -delete; echo "$(flags)" > $@; fi

# Names the Debian packages of whatever is missing, all at once.
check-machine:
	@missing=(); \
	if command -v $(BASE_PYTHON) >/dev/null; then \
	    $(BASE_PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	        echo "buddysim: error: $$($(BASE_PYTHON) -V): expected Python 3.11 or newer" >&2; exit 2; }; \
	    $(BASE_PYTHON) -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3-venv); \
	    test -e "$$($(BASE_PYTHON) -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h" \
	        || missing+=(python3-dev); \
	else \
	    missing+=(python3 python3-venv python3-dev); \
	fi; \
	if ! command -v gcc >/dev/null; then missing+=(gcc libc6-dev); \
	elif ! echo '#include <stdlib.h>' | gcc -fsyntax-only -x c - 2>/dev/null; then missing+=(libc6-dev); fi; \
	if (( $${#missing[@]} )); then \
	    echo "buddysim: error: missing on this machine; to install it: apt install $${missing[*]}" >&2; exit 2; \
	fi

clean:
	rm -rf build dist $(VENV) buddysim.egg-info
	find buddysim -name '*.so' -delete
