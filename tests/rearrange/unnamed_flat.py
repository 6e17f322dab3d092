"""A flat in MuJoCo's XML without a name or a receptacle: a turned table, a shelf, a chest of drawers, a cupboard."""

from __future__ import annotations

from pathlib import Path


def _box(x: float, y: float, z: float, size: tuple[float, float, float]) -> str:
    """A box by its middle and half sizes."""
    return f'<geom type="box" size="{size[0]} {size[1]} {size[2]}" pos="{x} {y} {z}"/>'


def drawer(z: float, opens_m: float = 0.449999988, bar: bool = True) -> str:
    """A drawer at a height, 0.5 m deep and 0.6 m wide, which opens along x and is damped as for a motor."""
    handle = _box(0.03, 0.1, 0.06, (0.015, 0.08, 0.008)) if bar else ""
    return (f'<body pos="0.28 0 {z}"><joint type="slide" axis="1 0 0" range="0 {opens_m}" damping="1000"/>'
            f'{_box(0, 0, 0.06, (0.01, 0.3, 0.09))}{_box(-0.26, 0, 0, (0.25, 0.28, 0.008))}'
            f'{_box(-0.26, 0.27, 0.04, (0.25, 0.01, 0.04))}{_box(-0.26, -0.27, 0.04, (0.25, 0.01, 0.04))}{handle}'
            '</body>')


TABLE = f"""<body pos="0 0 0" euler="0 0 30">{_box(0, 0, 0.58, (0.5, 0.3, 0.02))}
<geom type="cylinder" size="0.04 0.28" pos="0 0 0.28"/></body>"""
SHELF = f"""<body pos="-2.6 -1 0">{_box(-0.16, 0, 0.6, (0.01, 0.4, 0.6))}{_box(0, 0.4, 0.6, (0.15, 0.01, 0.6))}
{_box(0, -0.4, 0.6, (0.15, 0.01, 0.6))}{_box(0, 0, 0.04, (0.15, 0.39, 0.01))}{_box(0, 0, 0.5, (0.15, 0.39, 0.01))}
{_box(0, 0, 0.9, (0.15, 0.39, 0.01))}{_box(0, 0, 0.98, (0.15, 0.39, 0.01))}{_box(0, 0, 1.6, (0.15, 0.39, 0.01))}
</body>"""
CHEST = f"""<body pos="-2.6 1.5 0">{_box(0, 0.33, 0.35, (0.29, 0.02, 0.35))}{_box(0, -0.33, 0.35, (0.29, 0.02, 0.35))}
{_box(0, 0, 0.72, (0.3, 0.35, 0.02))}{_box(-0.2, 0, 0.8, (0.05, 0.35, 0.06))}{drawer(0.5)}{drawer(0.2)}</body>"""
CUPBOARD = f"""<body pos="2.6 0 0" euler="0 0 180">{_box(-0.27, 0, 0.8, (0.02, 0.35, 0.8))}
{_box(0, 0.35, 0.8, (0.27, 0.01, 0.8))}{_box(0, -0.35, 0.8, (0.27, 0.01, 0.8))}{_box(0, 0, 0.9, (0.25, 0.34, 0.01))}
{_box(0, 0, 1.6, (0.27, 0.35, 0.02))}
<body pos="0.3 0.35 0"><joint type="hinge" axis="0 0 1" range="0 100" damping="100"/>
{_box(0, -0.35, 0.8, (0.015, 0.35, 0.8))}{_box(0.04, -0.62, 1.0, (0.02, 0.01, 0.12))}</body></body>"""
WALLS = f"""{_box(0, 3.05, 1.2, (3, 0.05, 1.2))}{_box(0, -3.05, 1.2, (3, 0.05, 1.2))}
{_box(3.05, 0, 1.2, (0.05, 3, 1.2))}{_box(-3.05, 0, 1.2, (0.05, 3, 1.2))}"""


def write_flat(file: Path, *furniture: str, floor: str = '<geom type="plane" size="3 3 0.1"/>') -> Path:
    """Write a flat of some pieces of furniture, by default all; returns the file."""
    inside = "\n".join(furniture or (TABLE, SHELF, CHEST, CUPBOARD))
    file.write_text(f"<mujoco><worldbody>{floor}{WALLS}{inside}</worldbody></mujoco>")
    return file
