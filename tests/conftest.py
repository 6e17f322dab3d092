"""The order of the tests: `make test` gives whole files to several processes, so the files that take longest come first."""

from __future__ import annotations

LONG = (  # half a minute of processor time or more each; none of them is left for the end, when other processes have nothing to do
    "tests/e2e/test_attacked.py", "tests/e2e/test_ranks.py", "tests/trainer/ranks/test_ranks.py", "tests/eval/test_reproduce.py",
    "tests/trainer/faults/test_faults.py", "tests/docs/test_extend.py", "tests/trainer/test_every_step.py", "tests/trainer/test_loop.py",
    "tests/docs/test_pages.py", "tests/trainer/test_experience.py", "tests/trainer/test_deterministic.py",
)


def pytest_collection_modifyitems(items):
    place = {file: number for number, file in enumerate(LONG)}
    items.sort(key=lambda item: place.get(item.nodeid.partition("::")[0], len(LONG)))
