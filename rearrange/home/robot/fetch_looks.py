"""What the Fetch looks like to a spectator: shapes on its bodies, beside the few that its physics and its cameras know.

After photographs and the published dimensions; the robot's own meshes are not ours to ship. Frames: of the bodies of
`rearrange.home.robot.fetch`, metres; colours sRGB.
"""

from __future__ import annotations

from rearrange.home.robot.robot import Shape

_SHELL, _GREY, _DARK, _BLACK = (0.93, 0.93, 0.92), (0.55, 0.57, 0.60), (0.21, 0.22, 0.25), (0.06, 0.06, 0.07)
_BLUE, _GLASS, _RED = (0.13, 0.36, 0.66), (0.10, 0.16, 0.30), (0.80, 0.10, 0.08)
_RUBBER = (0.86, 0.44, 0.14)


def _base() -> list[Shape]:
    """A round shell with the laser's slot, two driven wheels, four castors, a dark deck and a charging port's frame."""
    made = [
        Shape("base", "cylinder", (0.235, 0.045), (0.0, 0.0, 0.085), _BLACK),
        Shape("base", "cylinder", (0.275, 0.035), (0.0, 0.0, 0.145), _SHELL),
        Shape("base", "cylinder", (0.262, 0.020), (0.0, 0.0, 0.200), _BLACK),  # the laser looks out of here
        Shape("base", "cylinder", (0.275, 0.039), (0.0, 0.0, 0.259), _SHELL),
        Shape("base", "cylinder", (0.277, 0.006), (0.0, 0.0, 0.304), _BLUE),
        Shape("base", "cylinder", (0.262, 0.018), (0.0, 0.0, 0.322), _DARK),
        Shape("base", "cylinder", (0.045, 0.020), (0.215, 0.0, 0.200), _GREY),
        Shape("base", "box", (0.010, 0.070, 0.030), (0.270, 0.0, 0.255), _DARK),
    ]
    for side in (-1, 1):
        made += [Shape("base", "cylinder", (0.080, 0.022), (0.0, side * 0.270, 0.080), _BLACK, "y"),
                 Shape("base", "cylinder", (0.046, 0.024), (0.0, side * 0.270, 0.080), _GREY, "y"),
                 Shape("base", "cylinder", (0.015, 0.027), (0.0, side * 0.270, 0.080), _BLUE, "y")]
        made += [Shape("base", "cylinder", (0.030, 0.014), (end * 0.19, side * 0.13, 0.030), _DARK, "y")
                 for end in (-1, 1)]
    return made


def _torso() -> list[Shape]:
    """A rounded trunk that slides on a narrower column, with ribs of the bellows in front and a bracket for the arm."""
    made = [
        Shape("base", "box", (0.065, 0.060, 0.205), (-0.085, 0.0, 0.545), _DARK),
        *(Shape("base", "cylinder", (0.065, 0.205), (-0.085, side * 0.060, 0.545), _DARK) for side in (-1, 1)),
        Shape("torso", "box", (0.080, 0.060, 0.205), (0.010, 0.0, 0.325), _SHELL),
        *(Shape("torso", "cylinder", (0.080, 0.205), (0.010, side * 0.060, 0.325), _SHELL) for side in (-1, 1)),
        Shape("torso", "box", (0.072, 0.055, 0.012), (0.010, 0.0, 0.540), _GREY),
        *(Shape("torso", "cylinder", (0.072, 0.012), (0.010, side * 0.055, 0.540), _GREY) for side in (-1, 1)),
        Shape("torso", "box", (0.006, 0.048, 0.085), (0.088, 0.0, 0.205), _BLACK),
        Shape("torso", "cylinder", (0.075, 0.020), (0.1195, 0.0, 0.345), _DARK),
        Shape("torso", "box", (0.050, 0.055, 0.018), (0.085, 0.0, 0.325), _DARK),
        Shape("torso", "box", (0.004, 0.030, 0.012), (-0.071, 0.0, 0.440), _RED),  # the stop button's plate on its back
    ]
    made += [Shape("torso", "box", (0.005, 0.044, 0.004), (0.092, 0.0, 0.135 + 0.02 * k), _DARK) for k in range(8)]
    return made


def _head() -> list[Shape]:
    """A neck that pans, a wide flat head with rounded ends, and the bar of its camera with three lenses."""
    made = [Shape("torso", "cylinder", (0.040, 0.035), (0.045, 0.0, 0.575), _DARK),
            Shape("torso", "cylinder", (0.058, 0.016), (0.045, 0.0, 0.607), _GREY),
            Shape("torso", "box", (0.050, 0.085, 0.036), (0.080, 0.0, 0.658), _SHELL),
            *(Shape("torso", "cylinder", (0.050, 0.036), (0.080, side * 0.085, 0.658), _SHELL) for side in (-1, 1)),
            Shape("torso", "box", (0.034, 0.062, 0.005), (0.070, 0.0, 0.697), _BLUE),
            Shape("torso", "capsule", (0.024, 0.082), (0.142, 0.0, 0.662), _BLACK, "y"),
            Shape("torso", "box", (0.010, 0.060, 0.012), (0.126, 0.0, 0.662), _DARK)]
    for y, radius, rgb in ((-0.055, 0.013, _GLASS), (0.010, 0.013, _GLASS), (0.055, 0.008, _RED)):
        made += [Shape("torso", "cylinder", (radius + 0.004, 0.005), (0.163, y, 0.662), _GREY, "x"),
                 Shape("torso", "cylinder", (radius, 0.006), (0.164, y, 0.662), rgb, "x")]
    return made


def _arm() -> list[Shape]:
    """Dark housings at the joints that flex, with pale caps, and dark rings at those that roll."""
    made = [Shape("shoulder_pan_link", "cylinder", (0.062, 0.030), (0.0, 0.0, 0.0), _DARK)]
    for link, radius, half in (("shoulder_lift", 0.062, 0.062), ("elbow_flex", 0.056, 0.057),
                               ("wrist_flex", 0.050, 0.052)):
        made += [Shape(f"{link}_link", "cylinder", (radius, half), (0.0, 0.0, 0.0), _DARK, "y"),
                 Shape(f"{link}_link", "cylinder", (0.7 * radius, half + 0.004), (0.0, 0.0, 0.0), _SHELL, "y")]
    made += [Shape(f"{link}_link", "cylinder", (radius, 0.010), (0.0, 0.0, 0.0), _DARK, "x")
             for link, radius in (("upperarm_roll", 0.0575), ("forearm_roll", 0.0525), ("wrist_roll", 0.0485))]
    return made


_FLANGE = (Shape("gripper", "cylinder", (0.046, 0.014), (-0.092, 0.0, 0.0), _GREY, "x"),
           Shape("gripper", "cylinder", (0.040, 0.020), (-0.064, 0.0, 0.0), _SHELL, "x"))


def _gripper() -> list[Shape]:
    """A round flange, a wide palm with two short fingers beside the suction cup, and the wrist camera.

    The cup is a stem with two thin folds: the camera at the wrist sees past it where it touches.
    """
    made = [*_FLANGE,
            Shape("gripper", "box", (0.024, 0.066, 0.030), (-0.024, 0.0, 0.0), _DARK),
            Shape("gripper", "box", (0.025, 0.040, 0.006), (-0.024, 0.0, 0.031), _BLUE),
            Shape("gripper", "box", (0.014, 0.018, 0.009), (-0.032, 0.0, 0.046), _BLACK),
            Shape("gripper", "cylinder", (0.016, 0.010), (0.006, 0.0, 0.0), _GREY, "x"),
            Shape("gripper", "cylinder", (0.009, 0.016), (0.031, 0.0, 0.0), _RUBBER, "x"),
            Shape("gripper", "cylinder", (0.017, 0.002), (0.030, 0.0, 0.0), _RUBBER, "x"),
            Shape("gripper", "cylinder", (0.025, 0.003), (0.047, 0.0, 0.0), _RUBBER, "x")]
    made += [Shape("gripper", "box", (0.018, 0.007, 0.011), (0.014, side * 0.056, 0.0), _GREY) for side in (-1, 1)]
    return made


def _parallel_gripper() -> list[Shape]:
    """A round flange, a wide palm with a rail, the wrist camera, and two fingers with pads."""
    made = [*_FLANGE,
            Shape("gripper", "box", (0.020, 0.066, 0.030), (-0.0595, 0.0, 0.0), _DARK),
            Shape("gripper", "box", (0.020, 0.040, 0.004), (-0.0595, 0.0, 0.031), _BLUE),
            Shape("gripper", "box", (0.010, 0.018, 0.009), (-0.055, 0.0, 0.042), _BLACK)]
    for name, side in (("finger_left", 1), ("finger_right", -1)):
        made += [Shape(name, "box", (0.0385, 0.005, 0.0135), (0.0, side * 0.002, 0.0), _GREY),
                 Shape(name, "box", (0.030, 0.002, 0.0125), (0.0085, side * -0.005, 0.0), _BLACK)]
    return made


_WITHOUT_HAND = (*_base(), *_torso(), *_head(), *_arm())
SHAPES: tuple[Shape, ...] = (*_WITHOUT_HAND, *_gripper())
SHAPES_WITH_FINGERS: tuple[Shape, ...] = (*_WITHOUT_HAND, *_parallel_gripper())
INSTEAD_OF: tuple[str, ...] = ("base_body", "base_skirt", "base_deck", "base_column", "base_torso", "base_neck",
                               "base_head", "base_visor", "gripper_palm", "suction_cup")
"""Geoms of the model that these shapes stand for."""
