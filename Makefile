# make quickstart   install into .venv, learn to pick (about five minutes), evaluate, write videos
# make test         install into .venv, run the tests, four at a time (JOBS=8: eight)
# make check        what a change needs before it is committed: lint, types, rooms, dead code, links and commands of the docs
# make docs         the pages as a site with a search, in site/
# make test-cluster the tests of launchers and clusters; they start a SLURM of their own (slurm-wlm, munge) where it is installed
# Another Python:   make quickstart PYTHON=python3.12

PYTHON ?= python3
VENV ?= .venv
JOBS ?= 4
BIN := $(VENV)/bin
STAMP := $(VENV)/installed
TEST_STAMP := $(VENV)/installed-for-tests
DOCS_STAMP := $(VENV)/installed-for-docs

.PHONY: help quickstart check docs test test-cluster

help:
	@sed -n '1,6s/^# //p' Makefile

quickstart: $(STAMP)
	$(BIN)/rearrange train experiment=quickstart
	$(BIN)/rearrange eval skill=pick episodes=100 video=2
	@echo
	@echo "Trained:    outputs/train/pick/latest   (curves: $(BIN)/tensorboard --logdir outputs)"
	@echo "Evaluated:  outputs/eval/pick/latest    (videos in videos/, figures in metrics.json)"
	@echo "Next:       source $(BIN)/activate"
	@echo "            rearrange eval hab=tidy_house episodes=4 video=1   trained skills tidy a house: under two minutes on 2 cores"
	@echo "            rearrange train skill=pick              with the depth image, for up to an hour"
	@echo "            rearrange eval skill=pick agent=random video=1"
	@echo "            rearrange train --help                  every setting"

check: $(TEST_STAMP)
	@$(BIN)/ruff check -q .
	@$(BIN)/mypy --no-error-summary & types=$$!; \
	  $(BIN)/python -m pytest -q tests/test_rooms.py tests/test_dead_code.py tests/docs/test_pages.py -k "not python_example"; \
	  tests=$$?; wait $$types && exit $$tests

docs: $(DOCS_STAMP)
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build  # with -q it would not count its warnings
	@echo "built; to read it: python3 -m http.server -d site"

test: $(TEST_STAMP)
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -q -n $(JOBS) --dist loadfile --no-loadscope-reorder --max-worker-restart=0

test-cluster: $(TEST_STAMP)
	$(BIN)/python -m pytest -q -rs -m 'cluster and not slow' tests/cluster

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "rearrange needs Python 3.11 or newer; name one: make $(MAKECMDGOALS) PYTHON=python3.12"; \
	  exit 1; }
	@test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
	  echo "'$(PYTHON) -m venv' failed; on Debian and Ubuntu: sudo apt install python3-venv"; exit 1; }
	@echo "installing into $(VENV); a few minutes the first time"
	@$(BIN)/pip install -q -e .
	@touch $(STAMP)

# What only the tests need, a browser engine among it.
$(TEST_STAMP): $(STAMP)
	@$(BIN)/pip install -q -e '.[test]'
	@touch $(TEST_STAMP)

# What only the site needs.
$(DOCS_STAMP): $(STAMP)
	@$(BIN)/pip install -q -e '.[docs]'
	@touch $(DOCS_STAMP)
