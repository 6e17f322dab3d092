#!/usr/bin/env bash
# Gymnasium's NormalizeObservation keeps its running mean as float32: after some hundred thousand steps it no longer follows what is observed.
#
# What one expects: the mean and the variance are those of all observations so far, whatever type these have. The class that keeps them,
#   RunningMeanStd, takes float64 by default.
# What happens: the wrapper asks it for float32, for one environment and for vectors. A step moves the mean by the observation's distance
#   over the count of steps. Once this is less than half of the gap between two float32 numbers, the mean does not move at all: near 300
#   that is so after 100,000 steps for a distance of 1. The variance, which is taken around that mean, then is too large for all steps to
#   come, so that what a policy sees is neither centred nor of unit variance. Nothing is said. If the same numbers come as float64, the
#   first of them makes the statistics float64, and all is right. More environments in a vector do not help: it is the steps that count.
# Version: gymnasium 1.4.0, numpy 2.4.6
# Source: https://pypi.org/project/gymnasium/1.4.0/, gymnasium/wrappers/stateful_observation.py, NormalizeObservation.__init__, `dtype=` of
#   RunningMeanStd; gymnasium/wrappers/utils.py, update_mean_var_count_from_moments
# Date: 2026-12-01
# Seen (100,000 steps near 293, then 300,000 near 294):
#     observations float32: mean 293.003 and deviation 0.887 of the wrapper, 293.750 and 0.477 of what it has seen
#     observations float64: mean 293.750 and deviation 0.477 of the wrapper, 293.750 and 0.477 of what it has seen

set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check gymnasium==1.4.0 numpy==2.4.6
cat > "$folder/mean.py" <<'PYTHON'
import gymnasium
import numpy
from gymnasium.wrappers import NormalizeObservation


class Thermometer(gymnasium.Env):
    """Shows a temperature in kelvin, with a noise of 0.2."""

    action_space = gymnasium.spaces.Discrete(1)

    def __init__(self, kind):
        self.observation_space, self.kelvin, self.seen = gymnasium.spaces.Box(0, 1000, (1,), kind), 293.0, []

    def look(self):
        shown = numpy.float32(self.kelvin + 0.2 * self.np_random.standard_normal(1))  # the same numbers in both types
        self.seen.append(float(shown[0]))
        return shown.astype(self.observation_space.dtype)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.look(), {}

    def step(self, action):
        return self.look(), 0.0, False, False, {}


print("gymnasium", gymnasium.__version__)
off = {}
for kind in ("float32", "float64"):
    env = NormalizeObservation(Thermometer(kind))
    env.reset(seed=0)
    for _ in range(100_000):
        env.step(0)
    env.unwrapped.kelvin = 294.0
    for _ in range(300_000):
        env.step(0)
    mean, std, seen = env.obs_rms.mean[0], env.obs_rms.var[0] ** 0.5, env.unwrapped.seen
    print(f"observations {kind}: mean {mean:.3f} and deviation {std:.3f} of the wrapper, "
          f"{numpy.mean(seen):.3f} and {numpy.std(seen):.3f} of what it has seen")
    off[kind] = abs(mean - numpy.mean(seen))
raise SystemExit(not (off["float32"] > 0.5 and off["float64"] < 0.001))
PYTHON
"$folder/venv/bin/python" -W ignore "$folder/mean.py"
