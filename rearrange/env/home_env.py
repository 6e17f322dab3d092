"""What every environment in a home holds: a simulator, its camera and what it has shown, the episodes of a file, a
spectator.

Time: the policy acts at 30 Hz. The image in an observation was taken before the physics of the step that led to it,
while everything else is measured after it, as on a system whose rendering overlaps physics; `image_lag=False` takes it
after. The first image of an episode, or of a skill in a plan, is not delayed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np

from rearrange.env.make_simulator import draws_in_scenes, make_simulator, scene_data
from rearrange.env.scenario_episodes import Scenario, scenario_episode, scenario_episode_in
from rearrange.home.apartments.episodes import Episode, read_episodes
from rearrange.home.episodes.generator import generate_episode
from rearrange.home.errors import UserError
from rearrange.home.mapping.floor_map import FloorMap, map_of
from rearrange.home.pictures.depth_noise import noisy_depth, punch_holes
from rearrange.home.pictures.looks import PLAIN, LookSeeds, draw_looks
from rearrange.home.pictures.spectator_camera import SpectatorCamera
from rearrange.home.pictures.window import WatchedEnv
from rearrange.home.robot.robot import RANGE_M
from rearrange.home.settings.environment import BOTH, FURNITURE, HomeSettings, homes_called
from rearrange.home.simulation.observations import CAMERA_OF, OBSERVATIONS, Observation, wording
from rearrange.home.simulation.simulator_interface import PICTURE_SIZE, Point

if TYPE_CHECKING:
    from skills.skill import Skill


_MIXED, _KIND = 31, 37  # seed which homes episodes take place in: of a data set, of what furniture


class HomeScene:
    """depth_size: pixels of the depth images that are taken. maps_floor: whether they are entered in `floor_map`.
    seen, camera_size: what is seen beside the observations of the skill, and its pixels. instruction: the task in
    words. Whoever runs a skill sets these. images: the last ones that an observation has, by name. picture_size:
    width and height of the spectator's pictures (pixels). known: who says what policies see of drawers and doors,
    their openings, speeds and handles: the simulator, or what a robot believes. """

    # x, y (m), yaw (rad), world frame: what `gps`, `compass` and the map of the floor are relative to
    start_base_pose: Point
    base_pose_before: Point  # the same 1/30 s ago
    floor_map: FloorMap | None  # what images have shown since the start
    known: Any

    def __init__(self, settings: HomeSettings) -> None:
        self.settings, path = settings, settings.episodes
        self.episodes = None if path is None else read_episodes(path)
        if self.episodes == []:
            raise UserError(f"the episode file {path} has no episodes.")
        data = scene_data(settings, self.episodes)
        self.sim = make_simulator(settings.sim, settings, data)
        self.depth_size, self.maps_floor = settings.depth_size, False
        self.seen, self.camera_size = tuple(settings.observations or ()), settings.camera_size
        self.instruction = ""
        self.images: dict[str, np.ndarray] = {}
        self._looks, self._look_rng = PLAIN, np.random.default_rng(0)
        self._draws_looks = bool(settings.random_colors or settings.random_light or settings.random_camera_m
                                 or settings.random_camera_deg)
        self._noisy = bool(settings.random_depth_noise or settings.random_depth_holes)
        self.picture_size = PICTURE_SIZE
        self._spectator: SpectatorCamera | None = None

    def given_episode(self, asked: int | Episode) -> Episode:
        """An episode as the simulator has it: one that is given, or a number of the file, which begins again after its
        last.
        """
        return self.sim.convert_episode(asked if isinstance(asked, Episode)
                                        else self.episodes[asked % len(self.episodes)])

    def generated_episode(self, kind: str, index: int) -> Episode:
        """Episode `index` of a kind, in our homes, or in external scenes."""
        settings = self.settings
        if self._is_external(index):
            from rearrange.home.simulation.scenes.scene_selection import generated_episode

            return generated_episode(Path(settings.scene_dataset), kind, settings.split, settings.scenes,
                                     settings.num_layouts, index)
        return generate_episode(kind, self._homes_of(index), index, settings.num_layouts)

    def scenario_episode(self, scenario: Scenario, index: int) -> Episode:
        """Episode `index` of a scenario, likewise."""
        settings = self.settings
        if self._is_external(index):
            from rearrange.env.external_scenarios import external_homes

            return scenario_episode_in(external_homes(Path(settings.scene_dataset), settings.split, settings.scenes,
                                                      settings.num_layouts, settings.robot, settings.hand),
                                       scenario, index)
        return scenario_episode(scenario, self._homes_of(index), index, settings.num_layouts, settings.robot,
                                settings.hand)

    def _homes_of(self, index: int) -> str:
        """What the homes are called together among which a generated episode takes place: of both kinds its number
        decides."""
        if self.settings.furniture != BOTH:
            return self.settings.homes
        kind = FURNITURE[np.random.default_rng([_KIND, index]).integers(len(FURNITURE))]
        return homes_called(self.settings.split, kind)

    def _is_external(self, index: int) -> bool:
        """Whether a generated episode takes place in an external scene; where both are mixed, its number decides."""
        return draws_in_scenes(self.settings) and np.random.default_rng([_MIXED, index]).random() < self.settings.mix

    # ------------------------------------------------------------------ time

    def begin_episode(self, look_seed: list[int]) -> None:
        """The robot stands where an episode begins. look_seed: of how it looks, where that is drawn at random."""
        self._spectator, self.known, of = None, self.sim, self.settings
        if self._draws_looks or self._noisy:
            self._look_rng = np.random.default_rng(look_seed)
        if self._draws_looks:
            self._looks = draw_looks(
                self._look_rng, of.random_colors, of.random_light, of.random_camera_m, of.random_camera_deg)
        self.start_here()

    def start_here(self) -> None:
        """What is relative to the start begins here; what was seen before is forgotten, and first images are taken."""
        self.start_base_pose = self.base_pose_before = self.sim.base_pose
        self.floor_map = None
        self.look()

    def step(self, arm: list[float] | None = None, grip: float | None = None, base: list[float] | None = None,
             look: bool = True) -> None:
        """1/30 s of physics; `look`: with new images."""
        self.base_pose_before = self.sim.base_pose
        if look and self.settings.image_lag:
            self.look()
        self.sim.step(arm, grip, base)
        if look and not self.settings.image_lag:
            self.look()

    # ------------------------------------------------------------------ seeing

    @property
    def image(self) -> np.ndarray | None:
        """The last depth image that an observation has."""
        return self.images.get("depth")

    def look(self) -> None:
        """Take the images that an observation has."""
        self.images = self.take_images()

    def take_images(self) -> dict[str, np.ndarray]:
        """Now, by name. Those that one camera shows in one size are of one drawing."""
        if not self.seen:
            return {"depth": self.take_image()} if self.depth_size else {}
        together = self.depth_size == self.camera_size and any(CAMERA_OF.get(name) == "head" for name in self.seen)
        images = {} if together or not self.depth_size else {"depth": self.take_image()}
        for camera in ("head", "arm"):
            prefix = "" if camera == "head" else "arm_"
            kinds = [name.removeprefix(prefix) for name in self.seen if CAMERA_OF.get(name) == camera]
            if together and camera == "head":
                kinds.append("depth")
            if kinds:
                found = self.sim.photograph(camera, self.camera_size, kinds, self._looks)
                images |= {prefix + kind: self._measured(image) if kind == "depth" else image
                           for kind, image in found.items()}
        if together and self.maps_floor:
            self._map(images["depth"])
        return images

    def take_image(self, size: int | None = None) -> np.ndarray | None:
        """Depth now, (size, size, 1), 0..1 over 10 m; None for size 0. Default: `depth_size`."""
        size = self.depth_size if size is None else size
        if not size:
            return None
        image = (self.sim.photograph("head", size, ("depth",), self._looks)["depth"] if self._looks.moves
                 else self.sim.depth_image(size))
        if self._noisy:
            self._measured(image)
        if self.maps_floor:
            self._map(image)
        return image

    def _measured(self, depth: np.ndarray) -> np.ndarray:
        """A depth image with the noise and the holes that there shall be."""
        if self.settings.random_depth_noise:
            noisy_depth(depth, RANGE_M, self.settings.random_depth_noise, self._look_rng)
        if self.settings.random_depth_holes:
            punch_holes(depth, self.settings.random_depth_holes, self._look_rng)
        return depth

    def _map(self, depth: np.ndarray) -> None:
        self.floor_map = self.floor_map or map_of(self.sim.robot, self.start_base_pose)
        self.floor_map.add(depth, self.sim.base_pose, self.sim.ee_in_base)

    def told(self) -> dict[str, Any]:
        """What `info` says at a reset: the task in words, and the names of what a segmentation shows."""
        info: dict[str, Any] = {"instruction": self.instruction}
        return info | ({"segmentation_names": self.sim.segmentation_names()} if "segmentation" in self.seen else {})

    def observe(self, keys: Iterable[str], skill: Skill | None) -> Observation:
        """These observations as they are now, with the last images among them; `skill`: what it was told."""
        observation: Observation = {"depth": self.image} if "depth" in keys else {}
        for key in keys:
            if key != "depth":
                observation[key] = np.array(OBSERVATIONS[key][1](self, skill), np.float32)
        for name in self.seen:
            observation[name] = self.instruction if name == "instruction" else self.images[name]
        return observation

    def follow(self) -> None:
        """Let the spectator's camera follow the robot for one step; `picture` does it too."""
        self._spectator = self._spectator or SpectatorCamera()
        self._view = self._spectator.follow(self.sim.base_pose, self.sim.ee_position, self.sim.blocked)

    def picture(self, marks: list[Any]) -> np.ndarray:
        """The scene from the side from which the hand is seen, (height, width, 3) uint8, with what a spectator shall
        see."""
        self.follow()
        return self.sim.picture(*self._view, marks, self.picture_size)

    def frame(self, marks: list[Any], hand_size: int) -> Callable[[], tuple[np.ndarray, np.ndarray | None]]:
        """`picture` and what the camera at the wrist sees, of now; drawn when the result is called, in any thread."""
        self.follow()
        return self.sim.frame(*self._view, marks, self.picture_size, hand_size)


class HomeEnv(WatchedEnv):
    """The environments of one skill and of a whole scenario, as far as they are alike. What is an action, what is
    seen, and how an episode goes is theirs; they keep the parts of an action in `_slices`, add rewards up in `_sums`,
    and say in `begins_solved` whether success held already where the episode began, but for a stop: of an episode
    that is given or of a file, as generated ones are drawn again. """

    metadata = WatchedEnv.metadata | {"render_fps": 30}
    observation_space: gymnasium.spaces.Dict
    action_space: gymnasium.spaces.Box

    begins_solved = False

    _slices: dict[str, slice]
    _sums: dict[str, float]

    def __init__(self, home: HomeSettings) -> None:
        super().__init__(home.render_mode)
        self.home = home
        self.scene = HomeScene(home)
        self.sim = self.scene.sim
        self.episode: Episode | None = None
        self._look_seeds = LookSeeds()

    @property
    def listed(self) -> int:
        """How many episodes the episode file has; 0 without one."""
        return len(self.listed_episodes)

    @property
    def listed_episodes(self) -> Sequence[Episode]:
        """The episodes of the episode file; none without one."""
        return self.scene.episodes or ()

    @property
    def refuses_listed(self) -> bool:
        """Whether episodes of the file that cannot be solved are refused, so that all of them are tried before a
        run.
        """
        return self.sim.refuses_unsolvable(self.episode)

    @property
    def action_parts(self) -> list[tuple[str, slice]]:
        """Name and place of each part of an action."""
        return list(self._slices.items())

    @property
    def reward_sums(self) -> dict[str, float]:
        """What each reward term, with its scale, has given in this episode."""
        return dict(self._sums)

    def _begin_scene(self, wordings: Sequence[str], seed: int | None, fixed: bool) -> None:
        """The robot stands where the episode begins, whose task these wordings say. fixed: the episode was asked for,
        without a seed."""
        self.instruction = self.scene.instruction = wording(wordings, self.episode.id)
        self.scene.begin_episode(self._look_seeds.next(self.episode.id, self.np_random_seed, seed is not None, fixed))
