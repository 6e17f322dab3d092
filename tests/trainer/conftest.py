"""The laws of these tests are exact, so they are in float32 wherever they run; tests/trainer/test_precision.py is about the other."""

import cloudpickle
import pytest

import tests.trainer
from trainer.nets import precision

cloudpickle.register_pickle_by_value(tests.trainer)  # workers need not import the test that made an environment, and torch with it


@pytest.fixture(autouse=True)
def processor_without_bfloat16(monkeypatch):
    monkeypatch.setattr(precision, "processor_has_bfloat16", lambda: False)
