"""The old name of `benchmarks.publish_policy`, for one version."""

import runpy
import warnings

warnings.warn("eval.publish is now benchmarks.publish_policy; the old name works in this version only.",
              DeprecationWarning, stacklevel=2)

if __name__ == "__main__":
    runpy.run_module("benchmarks.publish_policy", run_name="__main__", alter_sys=True)
