"""The suction cup in Habitat: a fixed constraint on an object, a point-to-point one on a handle, where the cup touches it.

habitat-lab's grasp manager pulls what it grasps to a set place in the hand, and knows one point for each handle; ours
holds what is touched as it is, as the embedded simulator does, and follows it wherever it moves.
"""

from __future__ import annotations

import math
from typing import Any

_IMPULSE = 1000.0  # of the constraint, at most; habitat-lab v0.2.2


class Hold:
    """What the cup of one robot holds."""

    def __init__(self, habitat: Any, simulator: Any, robot: Any) -> None:
        self._settings = habitat.physics.RigidConstraintSettings
        self._kind = habitat.physics.RigidConstraintType
        self._simulator, self._robot = simulator, robot
        self._constraint: int | None = None
        self._ends: tuple[Any, Any] | None = None  # the point in the cup's frame, and in the frame of what is held
        self._node: Any = None  # of what is held

    @property
    def holding(self) -> bool:
        return self._constraint is not None

    def object(self, thing: Any) -> None:
        """Fix a rigid object to the cup as it is now."""
        self._start(thing.root_scene_node, thing.object_id, None, thing.translation, self._kind.Fixed)
        thing.awake = True

    def link(self, body: Any, link: int, point: Any) -> None:
        """Join a world point (y up) of a link to the cup, free to turn."""
        self._start(body.get_link_scene_node(link), body.object_id, link, point, self._kind.PointToPoint)
        body.awake = True

    def _start(self, node: Any, number: int, link: int | None, point: Any, kind: Any) -> None:
        cup = self._robot.body.get_link_scene_node(self._robot.cup).absolute_transformation()
        there = node.absolute_transformation()
        settings = self._settings()
        settings.object_id_a, settings.link_id_a = self._robot.id, self._robot.cup
        settings.object_id_b = number
        if link is not None:
            settings.link_id_b = link
        settings.pivot_a, settings.pivot_b = cup.inverted().transform_point(point), there.inverted().transform_point(point)
        settings.frame_a = cup.rotation().transposed() @ there.rotation()
        settings.frame_b = type(settings.frame_a).identity_init()
        settings.constraint_type, settings.max_impulse = kind, _IMPULSE
        self._constraint = self._simulator.create_rigid_constraint(settings)
        self._node, self._ends = node, (settings.pivot_a, settings.pivot_b)

    def release(self) -> None:
        """Let go of whatever is held."""
        if self._constraint is not None:
            self._simulator.remove_rigid_constraint(self._constraint)
        self.forget()

    def forget(self) -> None:
        """Hold nothing any more; for when what was held is gone with its scene."""
        self._constraint = self._ends = self._node = None

    def stretch_m(self, cup: Any) -> float:
        """How far the held thing has been pulled from its place in the hand; `cup`: transform of the cup's link."""
        if self._constraint is None:
            return 0.0
        here, there = cup.transform_point(self._ends[0]), self._node.absolute_transformation().transform_point(self._ends[1])
        return math.dist((here[0], here[1], here[2]), (there[0], there[1], there[2]))
