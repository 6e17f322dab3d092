"""The laws of these tests are exact, so they are in float32 wherever they run; tests/trainer/test_precision.py is about the other."""

import pytest

from trainer.nets import precision


@pytest.fixture(autouse=True)
def processor_without_bfloat16(monkeypatch):
    monkeypatch.setattr(precision, "processor_has_bfloat16", lambda: False)
