"""PointNav and ObjectNav with `sim=habitat`: Habitat's own episodes in any scene that it reads, scanned houses too.

The agent is on Habitat's navigation mesh, over stairs as well, and sees what Habitat draws. The frame of a scene: z up,
metres, the low corner of its mesh at 0; its heights are those of its file.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from rearrange.habitat.point_agent import Walker
from rearrange.home.apartments.floor_grid import CELL_M
from rearrange.home.axis_conventions import Point
from rearrange.home.errors import UserError
from rearrange.home.geometry import wrap_angle
from rearrange.home.scene_files.scene_data import scene_name
from rearrange.home.simulation.observations import CAMERA_OF
from rearrange.navigation.cylinder import GAIN, TURN_COSTS_M, Cylinder
from rearrange.navigation.distances import ways
from rearrange.navigation.env import NavigationEnv, Observation
from rearrange.navigation.episodes import NavEpisode
from rearrange.navigation.goals import GoalTask
from rearrange.navigation.habitat_episodes import categories_of, read_habitat_episodes
from rearrange.navigation.home_cache import Home
from rearrange.navigation.homes import Building
from rearrange.navigation.objectnav import ObjectNav
from rearrange.navigation.pointnav import PointNav
from rearrange.navigation.scene_homes import BESIDE_M
from rearrange.navigation.shapes import NO_SHAPES

IN_A_SCENE = 16  # random episodes in a row that take place in one scene: to load one takes seconds
LEVEL_M = 0.5  # heights that differ by less are one floor of a picture
_OF = {"pointnav": "PointNav", "objectnav": "ObjectNav"}


class MeshField:
    """Metres to the nearest of some goals along the navigation mesh, from the floor on which the agent is."""

    def __init__(self, walker: Walker, goals: tuple[Point, ...], origin_m: Point) -> None:
        self._walker, self._goals, self._origin = walker, goals, origin_m

    def at(self, x: float, y: float) -> float:
        return self._walker.way(self._point(x, y), self._goals)[0]

    def _point(self, x: float, y: float) -> Point:
        return x + self._origin[0], y + self._origin[1], self._walker.point[2]

    def shortest(self, x: float, y: float) -> np.ndarray:
        """Corners (n, 3) of the shortest way from a point."""
        return self._walker.way(self._point(x, y), self._goals)[1] - self._origin

    def turns(self, x: float, y: float, yaw: float, turn_rad: float, forward_m: float, sliding: bool) -> int:
        """How many turns, to the left, come before the next step forward on the shortest way."""
        start = self._point(x, y)
        far_m, way = self._walker.way(start, self._goals)
        corner = next((p for p in way if math.dist(p[:2], start[:2]) > CELL_M), way[-1])
        straight = round(wrap_angle(math.atan2(corner[1] - start[1], corner[0] - start[0]) - yaw) / turn_rad)

        def left_m(turns: int) -> float:
            heading = yaw + turns * turn_rad
            end = self._walker.driven(start, forward_m * math.cos(heading), forward_m * math.sin(heading), sliding)
            return self._walker.way(end, self._goals)[0] if math.dist(end, start) > CELL_M else math.inf

        if left_m(straight) < far_m - GAIN * forward_m:
            return straight
        most = round(math.pi / turn_rad)
        return min(range(-most, most + 1), key=lambda turns: left_m(turns) + TURN_COSTS_M * abs(turns))


class _ToPoint(PointNav):
    def field_of(self, env: InHabitat) -> MeshField:
        return env.field


class _ToCategory(ObjectNav):
    def look_for(self, env: InHabitat) -> None:
        self.field = env.field


class _OnMesh(Cylinder):
    """Habitat's agent."""

    def drive(self, env: InHabitat, dx: float, dy: float) -> tuple[float, float, float, bool]:
        driven_m, blocked = env.walker.drive(dx, dy, self.config.sliding)
        x, y, _ = np.subtract(env.walker.point, env.home.origin_m).tolist()
        return x, y, driven_m, blocked


class InHabitat(NavigationEnv):
    """PointNav or ObjectNav in the episodes of one of Habitat's files."""

    def make_task(self) -> GoalTask:
        config = self.config
        if self.name not in _OF:
            raise UserError("sim=habitat is for nav=pointnav and nav=objectnav, whose episodes Habitat's files list: "
                            f"nav={self.name} has none.")
        if config.scene_dataset is None or config.episodes is None:
            raise UserError(f"nav={self.name} sim=habitat needs nav.scene_dataset=, a *.scene_dataset_config.json or a "
                            "folder with the files of scenes, and nav.episodes=, a file of Habitat's episodes.")
        self.listed_episodes = read_habitat_episodes(config.episodes)
        self.listed = len(self.listed_episodes)
        for episode in self.listed_episodes:
            of = "pointnav" if episode.category is None else "objectnav"
            if of != self.name:
                raise UserError(f"{config.episodes}: episode {episode.id} is one of {_OF[of]}: write nav={of}.")
        if self.name == "pointnav":
            return _ToPoint(config)
        if config.segmentation:
            raise UserError("the mask of what is looked for is known in our homes alone: with sim=habitat write "
                            "nav.segmentation=false.")
        return _ToCategory(config, categories_of(config.episodes, self.listed_episodes))

    def make_agent(self) -> Cylinder:
        return _OnMesh(self.name, self.config)

    def check_scenes(self) -> None:
        """Start the simulator. UserError for what cannot be seen in it."""
        of, config = self._home_settings, self.config
        wrong = [f"observations=[{name}]" for name in self._seen if name in CAMERA_OF and name != "rgb"]
        looks = ("random_colors", "random_light", "random_camera_m", "random_camera_deg")
        wrong += [f"{name}={value:g}" for name in looks if (value := getattr(of, name))]
        if wrong:
            raise UserError(f"sim.{wrong[0]} is for our homes: with sim=habitat a navigation task has depth, and rgb "
                            "by sim.observations=[rgb].")
        sizes = ({"depth": self._size} if self._size else {}) | ({"rgb": of.camera_size} if "rgb" in self._seen else {})
        self.walker = Walker(Path(config.scene_dataset), config.radius_m, config.height_m, config.camera_height_m,
                             config.fov_deg, sizes, of.gpu_device)
        self._floors: dict[tuple[str, int], Home] = {}
        self._in_scene: np.ndarray | None = None

    def _random(self) -> int:
        """Any of the episodes; several in a row are in one scene."""
        self._drawn += 1
        if self._drawn % IN_A_SCENE == 0:
            scene = self.listed_episodes[int(self.np_random.integers(self.listed))].scene
            self._in_scene = np.flatnonzero([episode.scene == scene for episode in self.listed_episodes])
        return int(self.np_random.choice(self._in_scene))

    def listed_episode(self, number: int) -> tuple[Home, NavEpisode]:
        """An episode of the file, its scene loaded and the agent at its start. UserError for one without a place."""
        found = self.listed_episodes[number]
        if self.walker.load(found.scene):
            self._floors.clear()
        self.walker.point = found.start
        nearest = [(point, self.walker.nearest(point)) for point in (found.start, *found.goals)]
        start, *goals = (near if math.dist(near, point) <= BESIDE_M else None for point, near in nearest)
        goals = tuple(goal for goal in goals if goal is not None)
        if start is None or not goals:
            raise UserError(f"the {'start' if start is None else 'goal'} of episode {found.id} is not on the floor of "
                            f"{found.scene} on which the agent drives: it is more than {BESIDE_M:g} m from it.")
        if math.isinf(self.walker.way(found.start, goals)[0]):
            raise UserError(f"the goal of episode {found.id} cannot be reached from its start in {found.scene}: they "
                            "are on two islands of floor.")
        name = scene_name(found.scene)
        home = self._home(name, found.start[2])
        self.field = MeshField(self.walker, goals, home.origin_m)
        places = [tuple((np.array(point[:2]) - home.origin_m[:2]).tolist()) for point in (found.start, found.goals[0])]
        goal = places[1] if found.category is None else None
        return home, NavEpisode(f"{name}/{found.id}", name, (*places[0], found.yaw_rad), goal, found.category)

    def _home(self, name: str, height_m: float) -> Home:
        """The floor of a scene at a height, for the picture from above."""
        key = (name, round(height_m / LEVEL_M))
        if key not in self._floors:
            free, low = self.walker.floor(height_m, CELL_M)
            size = (free.shape[0] * CELL_M, free.shape[1] * CELL_M)
            places = np.argwhere(free).astype(np.int32)
            self._floors[key] = Home(Building(name, size, (), (), (), ()), NO_SHAPES, free, ways(free), places,
                                     origin_m=(*low, 0.0))
        return self._floors[key]

    def _observe(self) -> Observation:
        self._drawn_images: dict[str, np.ndarray] | None = None
        return super()._observe()

    def _pictures(self) -> dict[str, np.ndarray]:
        """What Habitat draws from where the agent is, once a step."""
        if self._drawn_images is None:
            self._drawn_images = self.walker.images(self.pose[2])
        return self._drawn_images

    def draw(self) -> Observation:
        """Depth; where there is nothing, as in a hole of a scan, it is as far as it can be."""
        metres, config = self._pictures()["depth"], self.config
        shares = np.clip(metres, config.near_m, config.far_m) / np.float32(config.far_m)
        return {"depth": np.where(metres == 0.0, np.float32(1.0), shares).astype(np.float32)[:, :, None]}

    def photograph(self, wanted: list[str], size: int) -> Observation:
        return {name: np.ascontiguousarray(self._pictures()[name]) for name in wanted}
