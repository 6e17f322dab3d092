"""The suction cup in Habitat: a fixed constraint on an object, or a point-to-point one on a handle.

habitat-lab's grasp manager pulls what it grasps to a set place in the hand, and knows one point for each handle. This
one holds what is touched as it is, as the embedded simulator does, and follows it wherever it moves.
"""

from __future__ import annotations

import math
from typing import Any

from rearrange.habitat.frames import numbers

_IMPULSE = 1000.0  # of the constraint, at most; habitat-lab v0.2.2


class Hold:
    """What the cup of one robot holds."""

    def __init__(self, habitat: Any, simulator: Any, robot: Any) -> None:
        self._physics, self._simulator, self._robot = habitat.physics, simulator, robot
        self._constraint: int | None = None

    @property
    def holding(self) -> bool:
        return self._constraint is not None

    def object(self, thing: Any) -> None:
        """Fix a rigid object to the cup as it is now."""
        self._start(thing.root_scene_node, thing, None, thing.translation, self._physics.RigidConstraintType.Fixed)

    def link(self, body: Any, link: int, point: Any) -> None:
        """Join a world point (y up) of a link to the cup, free to turn."""
        node = body.get_link_scene_node(link)
        self._start(node, body, link, point, self._physics.RigidConstraintType.PointToPoint)

    def _start(self, node: Any, thing: Any, link: int | None, point: Any, kind: Any) -> None:
        cup = self._robot.body.get_link_scene_node(self._robot.cup).absolute_transformation()
        there = node.absolute_transformation()
        settings = self._physics.RigidConstraintSettings()
        settings.object_id_a, settings.link_id_a = self._robot.id, self._robot.cup
        settings.object_id_b = thing.object_id
        if link is not None:
            settings.link_id_b = link
        self._in_cup, self._in_thing = (frame.inverted().transform_point(point) for frame in (cup, there))
        settings.pivot_a, settings.pivot_b = self._in_cup, self._in_thing
        settings.frame_a = cup.rotation().transposed() @ there.rotation()
        settings.frame_b = type(settings.frame_a).identity_init()
        settings.constraint_type, settings.max_impulse = kind, _IMPULSE
        self._constraint, self._node = self._simulator.create_rigid_constraint(settings), node
        thing.awake = True

    def release(self) -> None:
        """Let go of whatever is held."""
        if self._constraint is not None:
            self._simulator.remove_rigid_constraint(self._constraint)
        self._constraint = None

    def stretch_m(self, cup: Any) -> float:
        """How far the held thing has been pulled from its place in the hand; `cup`: transform of the cup's link."""
        there = self._node.absolute_transformation().transform_point(self._in_thing)
        return math.dist(numbers(cup.transform_point(self._in_cup)), numbers(there))
