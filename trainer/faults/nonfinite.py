"""The old name of `trainer.faults.nan_dump`, for one version."""

import runpy
import warnings

from trainer.faults.nan_dump import *  # noqa: F403

warnings.warn("trainer.faults.nonfinite is now trainer.faults.nan_dump; the old name works in this version only.",
              DeprecationWarning, stacklevel=2)

if __name__ == "__main__":
    runpy.run_module("trainer.faults.nan_dump", run_name="__main__", alter_sys=True)
