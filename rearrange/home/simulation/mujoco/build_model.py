"""A layout and its objects as a MuJoCo model.

Collision classes (contype, conaffinity): a pair touches when the type of one meets the affinity of the other.
    static 1/0, articulated 2/0, floor 16/0, robot base 4/3, robot arm 4/19, objects 8/31, decoration 0/0
so furniture never collides with furniture nor the robot with itself, and the base does not rub on the floor.
Geom groups: 0 building and furniture, 1 articulated parts, 2 objects, 3 robot, 4 ceiling.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rearrange.home.apartments.floor_plan import WALL_HALF_M
from rearrange.home.apartments.layouts import Layout
from rearrange.home.apartments.objects import OBJECTS, STANDARD_SET, ObjectModel
from rearrange.home.apartments.parts import Body, Part
from rearrange.home.errors import UserError
from rearrange.home.robot import robot_named
from rearrange.home.robot.robot import Robot

if TYPE_CHECKING:
    import mujoco

TIMESTEP_S = 1.0 / 120.0
FRICTION = {"slide": 2.0, "hinge": 0.6}  # N, N m: dry friction of joints of which nothing else is said
PARKING_M = (-20.0, -20.0)
"""Where object 0 waits outside the home; object i waits 0.5 m * i further along x."""

CEILING_M = 0.1  # how thick it is
FLOOR_TYPE = 16  # contype of what the base does not touch: the floor, and in other scenes what lies flat on it
STATIC, ARTICULATED, FLOOR, BASE, ARM, OBJECT, DECORATION = (
    f'contype="{contype}" conaffinity="{conaffinity}"'
    for contype, conaffinity in ((1, 0), (2, 0), (FLOOR_TYPE, 0), (4, 3), (4, 19), (8, 31), (0, 0))
)

# Contacts soften with 1/mass: at MuJoCo's defaults the arm presses a 70 g apple centimetres into a table. These are
# stiffer (impedance 0.999 within 0.5 mm), and `priority` makes them hold whatever an object touches.
OBJECT_CONTACT = 'priority="1" solref="0.0167 1" solimp="0.95 0.999 0.0005"'
# Without rolling friction round things never come to rest and keep their island awake.
ROUND_FRICTION = 'condim="6" friction="0.7 0.01 0.003"'
BOX_FRICTION = 'condim="4" friction="0.7 0.01 0.0001"'

# A light thing that is squeezed has needed 14 to 16 iterations; stopped after 10, it flew off at hundreds of m/s.
HEADER = f"""<mujoco model="home">
<compiler angle="radian" autolimits="true"/>
<option timestep="{TIMESTEP_S:.10f}" solver="Newton" iterations="50" ls_iterations="50" tolerance="1e-6"
 cone="pyramidal" integrator="implicitfast" jacobian="dense" sleep_tolerance="0.005"><flag sleep="enable"/></option>
<size memory="16M"/>
<visual><global offwidth="1280" offheight="1280"/><map znear="0.01" zfar="30"/></visual>
<statistic extent="1" center="5 4 1"/>
<default><geom friction="0.7 0.005 0.0001" solref="0.02 1"/></default>"""


def things_of_shell(layout: Layout) -> list[str]:
    """What the first geoms of a home are, in the order of `home_mjcf`; the parts of its layout follow."""
    return ["floor"] if layout.ceiling_m is None else ["floor", "ceiling"]


def compile_home(layout: Layout, objects: tuple[str, ...] = STANDARD_SET, robot: Robot | None = None) -> mujoco.MjModel:
    """The MuJoCo model of a home with these objects (names of `OBJECTS`), parked outside it in a row, and a robot."""
    import mujoco

    return mujoco.MjModel.from_xml_string(home_mjcf(layout, objects, robot))


def home_mjcf(layout: Layout, objects: tuple[str, ...] = STANDARD_SET, robot: Robot | None = None) -> str:
    """The home as an MJCF document. robot: None for the usual one.

    It is text, not `mujoco.MjSpec`: each line reads as MuJoCo's manual has it, and rounded numbers make the same model,
    bit for bit, on every machine.
    """
    unknown = [name for name in objects if name not in OBJECTS]
    if unknown:
        raise UserError(f"no object called '{unknown[0]}'; choose from: {', '.join(OBJECTS)}")
    models = [OBJECTS[name] for name in objects]
    robot = robot or robot_named()
    there = robot.mjcf(BASE, ARM)
    x, y = layout.size_m
    discs = {_disc_name(part): part.half_size_m for part in layout.parts if _is_disc(part)}
    s = [HEADER, there.option, f"<asset>{there.assets}{''.join(map(_prism, discs, discs.values()))}</asset><worldbody>",
         '<light pos="5 4 6" dir="0 0 -1" directional="true"/>']
    beyond = layout.ground_m + 2 * WALL_HALF_M
    middle, flat = f"{x / 2:.5g} {y / 2:.5g}", f"{x / 2 + beyond:.5g} {y / 2 + beyond:.5g}"
    s.append(f'<geom name="floor" type="plane" size="{flat} 0.1" pos="{middle} 0" rgba="{_rgba(layout.floor_rgb)}" '
             f'{FLOOR}/>')
    if layout.ceiling_m is not None:
        half = CEILING_M / 2
        s.append(f'<geom name="ceiling" type="box" size="{flat} {half}" pos="{middle} {layout.ceiling_m + half}" '
                 f'rgba="0.95 0.95 0.95 1" group="4" {DECORATION}/>')
    for part in layout.parts:
        s.append(_part(part, DECORATION if _is_disc(part) or not part.solid else STATIC, 'group="0"'))
        if _is_disc(part):
            s.append(f'<geom type="mesh" mesh="{_disc_name(part)}" pos="{" ".join(f"{v:.6g}" for v in part.center_m)}" '
                     f'rgba="0 0 0 0" {STATIC}/>')
    s += [_body(body) for body in layout.bodies]
    s.append(there.body)
    s += [_object(i, model) for i, model in enumerate(models)]
    s.append("</worldbody>")
    s += ["<equality>", there.equalities, *_grasps(layout, len(models), robot), "</equality>"]
    s += ["<actuator>", there.actuators, "</actuator></mujoco>"]
    return "\n".join(s)


# MuJoCo 3.17 finds contacts of a lying can with a wide flat cylinder that are as deep as the cylinder is wide: one in a
# thousand, and the can flies off. With a prism it finds none. The cylinder is drawn, the prism is touched.
DISC_SIDES = 32


def _is_disc(part: Part) -> bool:
    return part.solid and part.shape == "cylinder" and part.half_size_m[1] < 0.2 * part.half_size_m[0]


def _disc_name(part: Part) -> str:
    return "disc_" + "_".join(f"{v:.5g}" for v in part.half_size_m)


def _prism(name: str, half_size_m: tuple[float, ...]) -> str:
    radius, half = half_size_m
    around = [2 * math.pi * k / DISC_SIDES for k in range(DISC_SIDES)]
    corners = (f"{radius * math.cos(a):.6g} {radius * math.sin(a):.6g} {z:.5g}" for a in around for z in (-half, half))
    return f'<mesh name="{name}" vertex="{" ".join(corners)}"/>'


def _part(part: Part, bits: str, extra: str) -> str:
    """One primitive as a geom."""
    name = f'name="{part.name}" ' if part.name else ""
    size = " ".join(f"{v:.5g}" for v in part.half_size_m)
    x, y, z = part.center_m
    turn = ""
    if part.shape == "capsule" and part.axis == "y":
        turn = f'xyaxes="{math.cos(part.yaw_rad):.7g} {math.sin(part.yaw_rad):.7g} 0 0 0 -1"'
    elif part.yaw_rad:
        turn = f'euler="0 0 {part.yaw_rad:.7g}"'
    return (f'<geom {name}type="{part.shape}" size="{size}" pos="{x:.6g} {y:.6g} {z:.6g}" {turn} '
            f'rgba="{_rgba(part.rgb)}" {extra} {bits}/>')


def _body(body: Body) -> str:
    """A drawer or door with its joint, its parts and the site on its handle.

    Damping and dry friction keep it where it is left; HAB drives the same joints with a weak velocity motor.
    """
    x, y, z = body.position_m
    low, high = body.range_m_or_rad
    friction = FRICTION[body.joint] if body.friction_n_or_nm is None else body.friction_n_or_nm
    if body.joint == "slide":
        joint = f'type="slide" axis="1 0 0" damping="6" frictionloss="{friction:.4g}" armature="0.2"'
    else:
        joint = f'type="hinge" axis="0 0 {body.hinge_sign:g}" damping="2" frictionloss="{friction:.4g}" armature="0.2"'
    s = [
        f'<body name="{body.name}" pos="{x:.6g} {y:.6g} {z:.6g}" euler="0 0 {body.yaw_rad:.7g}">',
        f'<joint name="{body.name}" {joint} range="{low} {high}"/>',
    ]
    extra = f'group="1" density="{body.density_kg_m3:.4g}"'
    s += [_part(part, ARTICULATED if part.solid else DECORATION, extra) for part in body.parts]
    handle = handle_part(body)
    s.append(f'<site name="{handle.name}" pos="{" ".join(f"{v:.6g}" for v in handle.center_m)}" size="0.01"/></body>')
    return "".join(s)


def handle_part(body: Body) -> Part:
    """The handle among the parts of a drawer or door."""
    return next(part for part in body.parts if part.name == f"{body.name}_handle")


def _object(index: int, model: ObjectModel) -> str:
    """A free object, parked and asleep."""
    size = " ".join(f"{v:.5g}" for v in model.half_size_m)
    friction = BOX_FRICTION if model.shape == "box" else ROUND_FRICTION
    x, y = PARKING_M[0] + 0.5 * index, PARKING_M[1]
    return (
        f'<body name="object_{index}" pos="{x} {y} {model.half_height_m:.5g}" sleep="init">'
        f'<freejoint name="object_{index}"/>'
        f'<geom name="object_{index}" type="{model.shape}" size="{size}" mass="{model.mass_kg}" '
        f'rgba="{" ".join(f"{v:.4g}" for v in model.rgba)}" group="2" {OBJECT_CONTACT} {friction} {OBJECT}/></body>'
    )


def _grasps(layout: Layout, count: int, robot: Robot) -> list[str]:
    """What a hold by suction switches on: a weld for each object, a ball joint at each handle."""
    if robot.hand.kind != "suction":
        return []
    return [
        f'<weld name="hold_object_{i}" body1="{robot.hand.body}" body2="object_{i}" active="false" solref="0.0167 1" '
        'solimp="0.95 0.999 0.0005"/>'
        for i in range(count)
    ] + [
        f'<connect name="hold_{body.name}" body1="{robot.hand.body}" body2="{body.name}" anchor="0.05 0 0" '
        'active="false" solref="0.02 1"/>'
        for body in layout.bodies
    ]


def _rgba(rgb: tuple[float, float, float]) -> str:
    return f"{rgb[0]:.3g} {rgb[1]:.3g} {rgb[2]:.3g} 1"
