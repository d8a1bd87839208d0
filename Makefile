# Two commands set everything up on a fresh machine: `make demo` and `make test`. `make check` is the inner loop.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin

.PHONY: demo examples test check lint paper bench fuzz figures outputs tutorials docs site-test sanitize release lowest clean

# One environment for everything; made again when its ingredients change.
$(VENV)/ready: pyproject.toml constraints.txt $(shell find native -type f)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $@

demo: $(VENV)/ready
	$(BIN)/kofn demo --force

examples: $(VENV)/ready
	for example in examples/*.py; do $(BIN)/python $$example || exit 1; done

test: $(VENV)/ready
	$(BIN)/python -m pytest -n 2 --dist worksteal

# Under two minutes on two cores: all that is fast. What needs a browser, the paper's data or patience is left out.
check: lint
	$(BIN)/python -m pytest -q -n 2 --dist worksteal -m "not slow and not browser and not data"

lint: $(VENV)/ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/clang-format --dry-run --Werror native/src/* native/include/*

# The paper's tables; what has a record is not run again: make paper TABLE=llp JOBS=4 OPTIONS="--seeds 1"
TABLE ?= all
JOBS ?= 2
paper: $(VENV)/ready
	$(BIN)/python -m paper $(TABLE) --jobs $(JOBS) --report $(OPTIONS)

bench: $(VENV)/ready
	$(BIN)/python -m bench

fuzz: $(VENV)/ready
	$(BIN)/python -m bench.fuzz

figures: $(VENV)/ready
	$(BIN)/python docs/figures/make.py

# The report of the README's model, as a picture; needs Chromium.
photographs: $(VENV)/ready
	$(BIN)/python docs/figures/photograph.py

# What the blocks of pages print, under them: make outputs PAGES=docs/guides/noisy.md
outputs: $(VENV)/ready
	$(BIN)/python docs/hooks/outputs.py $(PAGES)

# The notebooks of docs/tutorials/, from its pages: make tutorials PAGES=votes
tutorials: $(VENV)/ready
	$(BIN)/python docs/hooks/run_notebooks.py $(PAGES)

docs: $(VENV)/ready
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	$(BIN)/python docs/hooks/check_reference.py

# The site that `make docs` built, in a browser, and the figures of its pages.
site-test: $(VENV)/ready
	KOFN_SITE=site $(BIN)/python -m pytest docs/tests

# The core under the address and undefined-behaviour sanitizers, through the engine's edge, fuzz and thread tests.
sanitize: $(VENV)/ready
	cmake -S native -B build/sanitize -DKOFN_SANITIZE=ON
	cmake --build build/sanitize --parallel 2
	LD_PRELOAD="$$(gcc -print-file-name=libasan.so):$$(gcc -print-file-name=libstdc++.so.6)" \
	ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
	KOFN_LIBRARY=build/sanitize/libkofn.so \
	$(BIN)/python -m pytest -q -p no:cacheprovider tests/counts tests/classes \
	-k "(native or large or shared) and not compiler and not compile"

# Every file of a release, built from the last commit and checked, in dist/; nothing is published.
release: build/release/tools/ready
	build/release/tools/bin/python -m release

build/release/tools/ready: release/requirements.txt
	$(PYTHON) -m venv build/release/tools
	build/release/tools/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	touch $@

# The fast tests with the oldest versions that pyproject.toml allows: make lowest TORCH=torch==2.13.0. What checks
# pages is left out: tools of the documentation ask for newer versions, and pages show what today's print.
TORCH ?=
LOWEST = KOFN_NATIVE=1 build/lowest/bin/python -m pip install --quiet --disable-pip-version-check
lowest:
	$(PYTHON) -m venv --clear build/lowest
	$(LOWEST) --no-deps packaging .
	build/lowest/bin/python -m release.lowest $(TORCH) > build/lowest/constraints.txt
	$(LOWEST) -c build/lowest/constraints.txt ".[test]"
	build/lowest/bin/python -m pytest -q -n 2 --dist worksteal -m "not slow and not browser and not data" \
		$(addprefix --ignore=tests/test_,reference.py layers.py readme_evidence.py documents.py) tests

clean:
	rm -rf $(VENV) build dist site .hypothesis .mypy_cache .pytest_cache .ruff_cache kofn-demo
