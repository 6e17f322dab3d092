"""A kitchen in MuJoCo's XML: a room, a table, a counter with a drawer, and a fridge that opens the other way round."""

from __future__ import annotations

from pathlib import Path

KITCHEN = """<mujoco model="kitchen">
<compiler angle="radian"/>
<asset><material name="wood" rgba="0.6 0.4 0.2 1"/>
<mesh name="roof" vertex="0.3 0.3 0  -0.3 0.3 0  -0.3 -0.3 0  0.3 -0.3 0  0 0 0.2"/></asset>
<worldbody>
<geom name="floor" type="plane" size="3 3 0.1"/>
<geom name="wall_n" type="box" size="3 0.05 1.2" pos="0 3.05 1.2"/>
<geom name="wall_s" type="box" size="3 0.05 1.2" pos="0 -3.05 1.2"/>
<geom name="wall_e" type="box" size="0.05 3 1.2" pos="3.05 0 1.2"/>
<geom name="wall_w" type="box" size="0.05 3 1.2" pos="-3.05 0 1.2"/>
<body name="table" pos="-1 -1 0">
 <geom type="box" size="0.5 0.3 0.02" pos="0 0 0.6" material="wood"/>
 <geom type="cylinder" size="0.04 0.29" pos="0 0 0.29"/>
 <site name="receptacle_table_top" type="box" size="0.5 0.3 0.1" pos="0 0 0.72"/>
</body>
<body name="apple" pos="-1 -1 0.66"><freejoint/><geom type="sphere" size="0.04"/></body>
<body name="counter" pos="-2.7 1 0">
 <geom type="box" size="0.3 0.4 0.02" pos="0 0 0.88"/>
 <geom type="box" size="0.3 0.02 0.43" pos="0 0.38 0.43"/><geom type="box" size="0.3 0.02 0.43" pos="0 -0.38 0.43"/>
 <site name="receptacle_counter_top" type="box" size="0.3 0.4 0.1" pos="0 0 1.0"/>
 <body name="drawer" pos="0 0 0.6">
  <joint name="slide" type="slide" axis="1 0 0" range="0 0.5" damping="3"/>
  <geom type="box" size="0.01 0.35 0.12" pos="0.31 0 0.12"/>
  <geom type="box" size="0.28 0.33 0.01" pos="0 0 0.01"/>
  <site name="handle_slide" pos="0.32 0.1 0.15"/>
  <site name="receptacle_in_drawer" type="box" size="0.25 0.3 0.05" pos="0 0 0.07"/>
 </body>
</body>
<body name="fridge_a" pos="2.65 0 0" euler="0 0 3.14159265">
 <geom type="box" size="0.02 0.35 0.85" pos="-0.33 0 0.85"/>
 <geom type="box" size="0.33 0.02 0.85" pos="0 0.35 0.85"/><geom type="box" size="0.33 0.02 0.85" pos="0 -0.35 0.85"/>
 <geom type="box" size="0.33 0.35 0.01" pos="0 0 0.7"/>
 <geom type="mesh" mesh="roof" pos="0 0 1.7"/>
 <site name="receptacle_shelf" type="box" size="0.3 0.3 0.1" pos="0 0 0.82"/>
 <body name="door" pos="0.35 0.35 0">
  <joint name="door" type="hinge" pos="0 0.02 0" axis="0 0 -1" range="-2.2 0"/>
  <geom type="box" size="0.02 0.37 0.85" pos="0 -0.35 0.85" group="3"/>
  <geom type="box" size="0.01 0.37 0.85" pos="0 -0.35 0.85" contype="0" conaffinity="0" group="1"/>
 </body>
</body>
</worldbody></mujoco>"""


def make_homes(folder: Path) -> Path:
    """Write `kitchen`, `empty` and a file that is no scene; returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "kitchen.xml").write_text(KITCHEN)
    (folder / "empty.xml").write_text('<mujoco><worldbody><geom type="plane" size="3 3 1"/></worldbody></mujoco>')
    (folder / "textures.xml").write_text("<mujocoinclude/>")
    return folder
