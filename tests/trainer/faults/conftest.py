"""Tests that compare what a process holds before a training and after it must not count what a GPU's libraries load
once."""

import pytest
import torch


@pytest.fixture(scope="session", autouse=True)
def libraries_of_the_gpu():
    if torch.cuda.is_available():
        from tests.trainer.faults.fault_tools import config
        from tests.trainer.toys import Pointer
        from trainer import train

        train(Pointer, config(steps=256))
