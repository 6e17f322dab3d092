"""The laws of these tests are exact, so they are in float32 wherever they run, and not in the bfloat16 of some
processors or the TensorFloat-32 that cuDNN takes on a GPU; tests/trainer/test_precision.py is about the other."""

import cloudpickle
import pytest
import torch

import tests.trainer
from trainer.nets import heads

# workers need not import the test that made an environment, and torch with it
cloudpickle.register_pickle_by_value(tests.trainer)


@pytest.fixture(autouse=True)
def float32(monkeypatch):
    monkeypatch.setattr(heads, "processor_has_bfloat16", lambda: False)
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
