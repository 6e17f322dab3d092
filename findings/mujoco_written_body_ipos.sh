#!/usr/bin/env bash
# MuJoCo 3.17.0: a body_ipos that is written at run time is not read.
#
# What one expects: a centre of mass moved by model.body_ipos (domain randomisation) is that of the next mj_step:
#   xipos is computed in every step. mjlab keeps body_ipos among the fields that are safe to write, for this reason:
#   https://github.com/mujocolab/mjlab/pull/631
# What happens: nothing moves, without a word, for every body whose inertial frame is its own frame when it is
#   compiled (model.body_sameframe == 1, mjSAMEFRAME_BODY), as of any body with one centred geom. body_iquat goes
#   unread with it. body/simple="false" alone changes nothing; mj_setConst alone ends with an error for a body that is
#   "simple"; both together work. A body whose geom is 0.1 mm off its centre reads every write, so that one file has
#   bodies of both kinds.
# Version: mujoco 3.17.0
# Source: https://mujoco.readthedocs.io/en/stable/XMLreference.html#body-simple (tells of mj_setConst, not that a write passes unread)
# Date: 2026-11-29
# Seen:
#     mujoco 3.17.0: angular acceleration (rad/s2) about y by 100 N upwards at the old centre of a 0.2 m box, after body_ipos = (0.3
#     as compiled                          sameframe 1  xipos 0.0     0.00
#     mj_setConst                          FatalError: mj_setConstGroups: body 1 is compiled as simple but sameframe no longer holds
#     simple="false"                       sameframe 1  xipos 0.0     0.00
#     simple="false" and mj_setConst       sameframe 3  xipos 0.3   562.50
#     geom 0.1 mm off the centre           sameframe 3  xipos 0.3   562.50

set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet --disable-pip-version-check mujoco==3.17.0 numpy==2.4.6
cd "$folder"
"$folder/env/bin/python" - <<'PYTHON'
import sys

import mujoco

print(f"mujoco {mujoco.__version__}: angular acceleration (rad/s2) about y by 100 N upwards at the old centre of a 0.2 m box, "
      "after body_ipos = (0.3, 0, 0)")
seen = []
for what, attribute, place, set_const in (("as compiled", "", "0 0 0", False), ("mj_setConst", "", "0 0 0", True),
                                          ('simple="false"', 'simple="false"', "0 0 0", False),
                                          ('simple="false" and mj_setConst', 'simple="false"', "0 0 0", True),
                                          ("geom 0.1 mm off the centre", "", "0.0001 0 0", False)):
    model = mujoco.MjModel.from_xml_string(f"""<mujoco><option gravity="0 0 0"/><worldbody><body {attribute}><freejoint/>
      <geom type="box" size="0.1 0.1 0.1" pos="{place}"/></body></worldbody></mujoco>""")
    data = mujoco.MjData(model)
    model.body_ipos[1] = 0.3, 0.0, 0.0
    try:
        if set_const:
            mujoco.mj_setConst(model, data)
    except mujoco.FatalError as error:
        seen.append("error")
        print(f"{what:36} FatalError: {str(error)[:96]}...")
        continue
    data.qfrc_applied[2] = 100.0
    mujoco.mj_forward(model, data)
    seen.append(bool(abs(data.qacc[4]) > 1.0))
    print(f"{what:36} sameframe {model.body_sameframe[1]}  xipos {data.xipos[1][0]:.1f} {data.qacc[4]:8.2f}")
sys.exit(seen != [False, "error", False, True, True])
PYTHON
