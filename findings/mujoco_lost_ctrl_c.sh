#!/usr/bin/env bash
# mujoco 4.0.0: a Ctrl-C that arrives while an argument is converted is lost, and the call says that types are wrong.
#
# What one expects: KeyboardInterrupt, wherever it is raised, ends the program or reaches its `except KeyboardInterrupt`.
# What happens: the bindings convert array arguments through numpy and drop any exception of it, to try another overload
#   and at last to raise TypeError, "incompatible function arguments", though every argument is right. The interrupt is
#   neither cause nor context of that error. So a loop that tells stops from failures takes this stop for a failure,
#   and `except TypeError` goes on. Here an argument whose __array__ is Python sends the signal, so that it comes at
#   that moment in every run; the second call, without the signal, shows that such an argument is allowed.
# Version: mujoco 4.0.0, numpy 2.4.6
# Source: https://pypi.org/project/mujoco/4.0.0/, mj_ray
# Date: 2026-11-30
# Seen:
#     interrupted:     TypeError: mj_ray(): incompatible function arguments., cause None, context None
#     not interrupted: 4.0

set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet --disable-pip-version-check mujoco==4.0.0 numpy==2.4.6
cd "$folder"
cat > ray.py <<'PY'
import os
import signal
import sys

import mujoco
import numpy as np

signal.signal(signal.SIGINT, signal.default_int_handler)  # which a background job of a shell would not have
model = mujoco.MjModel.from_xml_string('<mujoco><worldbody><geom size="1"/></worldbody></mujoco>')
data = mujoco.MjData(model)
mujoco.mj_forward(model, data)


class Start:
    def __init__(self, interrupted):
        self.interrupted = interrupted

    def __array__(self, dtype=None, copy=None):
        if self.interrupted:
            os.kill(os.getpid(), signal.SIGINT)
        return np.array([0.0, 0.0, 5.0])


def ray(interrupted):
    return mujoco.mj_ray(model, data, Start(interrupted), np.array([0.0, 0.0, -1.0]), None, 1, -1, np.zeros(1, np.int32))


try:
    ray(True)
    lost = False
except KeyboardInterrupt:
    print("interrupted:     KeyboardInterrupt")
    lost = False
except TypeError as error:
    first = str(error).split(" The following")[0]
    print(f"interrupted:     TypeError: {first}, cause {error.__cause__}, context {error.__context__}")
    lost = error.__cause__ is None and error.__context__ is None
print("not interrupted:", ray(False))
sys.exit(not lost)
PY
"$folder/env/bin/python" ray.py
