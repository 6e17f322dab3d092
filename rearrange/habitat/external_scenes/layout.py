"""A scene that is none of our homes, looked at in Habitat: its floor from a navigation mesh, what stands where by Habitat's rays."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rearrange.apartments.episodes import Marker
from rearrange.external_scenes.layout import FoundScene, SceneHome, home_of
from rearrange.habitat.external_scenes.floor import find_floor
from rearrange.habitat.external_scenes.joints import link_frame, moving_links
from rearrange.habitat.external_scenes.receptacles import find_receptacles
from rearrange.habitat_axes import Point, to_y_up


def find_home(world: Any, scene: str, markers: Iterable[Marker]) -> SceneHome:
    """Of the loaded scene, in which there are neither robot nor objects. `markers`: of its episodes."""
    floor = find_floor(world)

    def habitat(point: Point) -> Point:
        return to_y_up(tuple(a + b for a, b in zip(point, floor.origin_m)))

    return home_of(FoundScene(
        scene, floor.origin_m, floor.blocked, moving_links(world.bodies, floor.origin_m), find_receptacles(world, floor.origin_m),
        {handle: link_frame(body, -1, floor.origin_m) for handle, body in world.bodies.items()},
        lambda start, end: world.free_way(habitat(start), habitat(end))), markers)
