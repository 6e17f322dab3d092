"""One SLURM for the tests of this folder that ask for it; they are skipped with the reason where it is not
installed."""

from __future__ import annotations

import pytest

from tests.cluster import slurm as small


def pytest_collection_modifyitems(items):
    reason = small.missing()
    for item in items:
        if "tests/cluster" in item.nodeid:
            item.add_marker(pytest.mark.cluster)
            if reason and "slurm" in item.fixturenames:
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def slurm(tmp_path_factory):
    with small.Slurm(tmp_path_factory.mktemp("slurm")) as running:
        yield running
