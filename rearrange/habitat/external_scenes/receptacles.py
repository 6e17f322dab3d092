"""Receptacles of an external scene in Habitat, from where Habitat-Lab keeps them: `receptacle_aabb_...` in `user_defined`.

As `habitat.datasets.rearrange.samplers.receptacle.find_receptacles` reads them, which is not needed here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rearrange.external_scenes.receptacles import PREFIX, FoundReceptacle, found_receptacle
from rearrange.habitat.external_scenes.joints import link_frame
from rearrange.habitat_axes import AXES

_UP, _FRONT = np.array((0.0, 1.0, 0.0)), np.array((0.0, 0.0, -1.0))  # Habitat's


def find_receptacles(world: Any, origin: np.ndarray) -> list[FoundReceptacle]:
    """All of the loaded scene, by name. `origin`: of our world in Habitat's, z up."""
    found = []
    stage = world.simulator.get_stage_initialization_template()
    if stage is not None:
        for key, values in _entries(stage.get_user_config()):
            found.append(_receptacle(key, values, None, None, _stage_frame(stage, values, origin)))
    for thing in world.furniture():
        for key, values in _entries(thing.user_attributes):
            matrix = np.array(thing.visual_scene_nodes[1].absolute_transformation())
            found.append(_receptacle(key, values, thing.handle, None, _world(matrix, origin)))
    for handle, body in world.bodies.items():
        links = {body.get_link_name(link): link for link in (-1, *body.get_link_ids())}
        for key, values in _entries(body.user_attributes):
            link = links.get(values.get("parent_link"))
            if link is not None:
                found.append(_receptacle(key, values, handle, link, link_frame(body, link, origin), body.global_scale))
    return sorted(found, key=lambda receptacle: (receptacle.name, receptacle.handle or ""))


def _entries(config: Any) -> list[tuple[str, Any]]:
    return [(key, config.get_subconfig(key)) for key in config.get_subconfig_keys() if key.startswith(PREFIX)]


def _receptacle(key: str, values: Any, handle: str | None, link: int | None, frame: np.ndarray,
                scale: float = 1.0) -> FoundReceptacle:
    name = values.get("name") if values.has_value("name") else key
    return found_receptacle(name, handle, link, np.array(values.get("position")), np.array(values.get("scale")), frame, scale)


def _world(matrix: np.ndarray, origin: np.ndarray) -> np.ndarray:
    frame = np.eye(4)
    frame[:3] = AXES.T @ matrix[:3]
    frame[:3, 3] -= origin
    return frame


def _stage_frame(stage: Any, values: Any, origin: np.ndarray) -> np.ndarray:
    """(4, 4) of a receptacle of the stage, which may have a turn of its own, about its middle."""
    import magnum

    def between(start: Any, end: Any) -> Any:
        return magnum.Quaternion.rotation(magnum.Vector3(*map(float, start)), magnum.Vector3(*map(float, end)))

    upright = between(_UP, stage.orient_up.normalized())
    front = upright.transform_vector_normalized(magnum.Vector3(*map(float, _FRONT))).normalized()
    turn = np.array((between(front, stage.orient_front.normalized()) * upright).normalized().inverted().to_matrix())
    own = np.array(values.get("rotation").to_matrix()) if values.has_value("rotation") else np.eye(3)
    middle = np.array(values.get("position"))
    matrix = np.eye(4)
    matrix[:3, :3] = turn @ own
    matrix[:3, 3] = turn @ (middle - own @ middle)
    return _world(matrix, origin)
