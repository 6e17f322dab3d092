#!/usr/bin/env bash
# MuJoCo 3.17.0: what sleeps does not notice that the model under it changes; with sleep on, what is awake does not notice all of it, either.
#
# What one expects: a sleeping box wakes, and falls, when the plate under it becomes intangible, thinner, or is moved
#   away: "the automatic wake criteria are designed so that sleeping islands behave as if they were awake". The
#   documentation names one exception, gravity.
# What happens: no write to the model wakes a sleeper, neither of gravity nor of geom_contype, geom_size, or geom_pos,
#   of the plate or of the box itself. An awake box falls through an intangible or thinner plate, but hovers where a
#   plate was that geom_pos moved: with sleep enabled, poses of static geoms are computed once. Without sleep it
#   falls. What wakes: any write to the sleeper's qpos, or 1e-300 to its qvel.
# Version: mujoco 3.17.0
# Source: https://mujoco.readthedocs.io/en/stable/programming/simulation.html#waking
# Date: 2026-11-29
# Seen:
#     mujoco 3.17.0: how far a box falls in 1 s (m) after a write         sleeps     awake  no sleep
#     nothing                                                             0.00      0.00      0.00
#     gravity to (0, 0, +9.81)                                            0.00     -4.91     -4.91
#     contype and conaffinity of the plate to 0                           0.00      4.91      4.91
#     contype and conaffinity of the box to 0                             0.00      4.91      4.91
#     size of the plate to 1 cm                                           0.00      0.09      0.09
#     pos of the plate 1 m down                                           0.00      0.00      1.00
#     the plate to 0 and qvel of the box to 1e-300                        4.91      4.91      4.91

set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet --disable-pip-version-check mujoco==3.17.0 numpy==2.4.6
cd "$folder"
"$folder/env/bin/python" - <<'PYTHON'
import sys

import mujoco

FILE = """<mujoco><option><flag sleep="{flag}"/></option><worldbody><geom name="plate" type="box" size="1 1 0.1" pos="0 0 -0.1"/>
<body pos="0 0 0.1" sleep="{policy}"><freejoint/><geom name="box" type="box" size="0.1 0.1 0.1"/></body></worldbody></mujoco>"""


def intangible(name):
    def write(model, data):
        model.geom(name).contype = model.geom(name).conaffinity = 0
    return write


def gravity(model, data):
    model.opt.gravity[2] = 9.81


def thinner(model, data):
    model.geom("plate").size[2] = 0.01


def lower(model, data):
    model.geom("plate").pos[2] -= 1.0


def touched(model, data):
    intangible("plate")(model, data)
    data.qvel[2] = 1e-300


print(f"mujoco {mujoco.__version__}: how far a box falls in 1 s (m) after a write         sleeps     awake  no sleep")
right = True
for what, write, wanted in (("nothing", lambda model, data: None, (0, 0, 0)), ("gravity to (0, 0, +9.81)", gravity, (0, -4.91, -4.91)),
                            ("contype and conaffinity of the plate to 0", intangible("plate"), (0, 4.91, 4.91)),
                            ("contype and conaffinity of the box to 0", intangible("box"), (0, 4.91, 4.91)),
                            ("size of the plate to 1 cm", thinner, (0, 0.09, 0.09)), ("pos of the plate 1 m down", lower, (0, 0, 1)),
                            ("the plate to 0 and qvel of the box to 1e-300", touched, (4.91, 4.91, 4.91))):
    fell = []
    for flag, policy in (("enable", "allowed"), ("enable", "never"), ("disable", "auto")):
        model = mujoco.MjModel.from_xml_string(FILE.format(flag=flag, policy=policy))
        data = mujoco.MjData(model)
        mujoco.mj_step(model, data, nstep=1000)
        assert (data.tree_asleep[0] >= 0) == (policy == "allowed")
        before = data.qpos[2]
        write(model, data)
        mujoco.mj_step(model, data, nstep=500)
        fell.append(before - data.qpos[2])
    right &= all(abs(a - b) < 0.02 for a, b in zip(fell, wanted))
    print(f"{what:62}" + "".join(f"{round(value, 2) + 0.0:10.2f}" for value in fell))
sys.exit(not right)
PYTHON
