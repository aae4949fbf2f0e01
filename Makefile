# make demo       counts the words of real text, kills a worker, and does the same with coreutils
# make test       all tests: about half an hour on two processors
# make test-quick the tests to run before a commit
# make nightly    what takes hours: kills, fuzzing, sanitizers, full disks, other versions of Spark
# make dist       the files of a release, from the commit that is checked out (RELEASE.md)
# make lint       formatting, and what clippy, rustdoc, ruff, mypy, shellcheck, Error Prone and cargo-deny find
# make wheel      the Python package, with the command, as a file that needs no Rust
# make docs       the documentation as a site, in target/docs/site
# make spark-jar  the plugin for the installed Spark, without its tests
#
# Missing tools are installed if this folder can install them; Rust itself must be there.

CARGO ?= cargo
TARGET = $(or $(CARGO_TARGET_DIR),target)
GRISTMILL = $(TARGET)/release/gristmill
SHELL = /bin/bash
.PHONY: nightly dist demo test test-quick test-rust test-questions test-bench test-spark test-python test-docs docs spark-jar wheel lint clean
.DEFAULT_GOAL := demo

demo: $(GRISTMILL)
	@bash ci/demo.sh '$(GRISTMILL)'

# Cargo decides what must be rebuilt.
.PHONY: $(GRISTMILL)
$(GRISTMILL): need-cargo
	$(CARGO) build --release --locked --package gristmill-cli

# Each stage is a target of its own.
STAGES = test-rust test-questions test-bench test-spark test-python test-docs

test:
	@CARGO='$(CARGO)' sh ci/needs.sh rust cc python java valgrind
	@echo 'make test: $(words $(STAGES)) stages, about half an hour on two processors; CONTRIBUTING.md lists them'
	@n=0; for stage in $(STAGES); do \
	  n=$$((n + 1)); echo "make test: $$n of $(words $(STAGES)), $$stage, $$(date +%H:%M)"; \
	  $(MAKE) --no-print-directory $$stage || { echo "make test: $$stage failed; 'make $$stage' runs it alone" >&2; exit 1; }; \
	done

# What changes break most often: the units of every crate, and the engine's programs, deaths and spilling.
test-quick: need-cargo
	$(CARGO) test --workspace --locked --no-fail-fast $(FEATURES) --lib --bins
	$(CARGO) test --locked --package gristmill --test death --test programs --test spill

# All optional features.
FEATURES = --features gristmill-cli/columnar

test-rust: need-cargo
	@set -o pipefail; $(CARGO) test --workspace --locked --no-fail-fast $(FEATURES) 2>&1 | python3 -B ci/alone.py $(FEATURES)

# Every check beyond `cargo test` is a script in ci/ that can be run alone. Add new ones to this list.
QUESTIONS = loom.sh options.sh instructions.sh

test-questions:
	@set -e; for question in $(QUESTIONS); do echo "ci/$$question"; sh "ci/$$question"; done

# Folders that are not in the workspace have a script in ci/.
test-bench test-spark test-python test-docs: test-%:
	@if [ -f ci/$*.sh ]; then echo 'ci/$*.sh'; bash ci/$*.sh; fi

nightly:
	@sh ci/needs.sh python
	@python3 -B ci/nightly.py $(CHECKS)

dist:
	@bash ci/dist.sh

docs:
	@sh ci/needs.sh python
	@sh ci/docs.sh
	@echo 'The documentation: target/docs/site/index.html'

spark-jar:
	@spark/jar.sh

# With a JDK, the wheel has the shuffle for every version of Spark, which pip fetches.
wheel:
	@CARGO='$(CARGO)' sh ci/needs.sh rust cc python
	python3 -m pip wheel --no-deps --wheel-dir $(TARGET)/wheels $(if $(shell command -v javac),-C spark=pypi) .

lint:
	@CARGO='$(CARGO)' sh ci/needs.sh rust cc python java
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked $(FEATURES) -- -D warnings
	RUSTDOCFLAGS='-D warnings' $(CARGO) doc --workspace --no-deps --document-private-items --locked
	CARGO='$(CARGO)' sh ci/supply.sh --quick
	CARGO='$(CARGO)' sh ci/features.sh --quick
	sh ci/lint.sh
	bash ci/java.sh
	python3 -B bench/chart.py --check
	python3 -B -m doctest ci/rooms.py
	python3 -B ci/rooms.py
	python3 -B ci/links.py
	python3 -B -m doctest ci/names.py
	python3 -B ci/names.py
	python3 -B -m doctest ci/words.py
	python3 -B ci/words.py
	python3 -B -m doctest ci/alone.py
	@python3 -B ci/nightly.py --old

clean:
	$(CARGO) clean

.PHONY: need-cargo
need-cargo:
	@CARGO='$(CARGO)' sh ci/needs.sh rust cc
