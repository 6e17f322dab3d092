"""The Gymnasium environment of navigation tasks: an agent in a home, with a level camera.

Who drives is `rearrange.navigation.cylinder`, without physics, or `rearrange.navigation.robot_agent`, with physics.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np

from rearrange.home.apartments.segmentation import names_of
from rearrange.home.errors import NoGoal, UserError
from rearrange.home.geometry import PlanePose
from rearrange.home.mapping.visual_odometry import VisualOdometry
from rearrange.home.pictures.depth_noise import noisy_depth, punch_holes
from rearrange.home.pictures.looks import PLAIN, LookSeeds, draw_looks, linear_colors
from rearrange.home.pictures.photograph import photograph
from rearrange.home.pictures.window import WatchedEnv
from rearrange.home.robot.cameras import in_world
from rearrange.home.settings.environment import SEEN, SPLITS, HomeSettings
from rearrange.home.simulation.observations import CAMERA_OF, seen_space, wording
from rearrange.navigation.agent import RIGHT, NavAgent
from rearrange.navigation.cylinder import Cylinder, usual_motion
from rearrange.navigation.episodes import NavEpisode
from rearrange.navigation.goals import GoalTask
from rearrange.navigation.gps_compass import EGOMOTION_SPACE, egomotion
from rearrange.navigation.home_cache import Home, load_home
from rearrange.navigation.homes import home_name
from rearrange.navigation.objectnav import ObjectNav
from rearrange.navigation.pointnav import PointNav
from rearrange.navigation.settings import CYLINDER, NavigationConfig
from rearrange.navigation.shapes import look, look_at_meshes, look_for
from rearrange.navigation.start_tasks import Explore, Flee

if TYPE_CHECKING:
    from rearrange.navigation.habitat_episodes import HabitatEpisode

TASKS = {"pointnav": PointNav, "objectnav": ObjectNav, "flee": Flee, "explore": Explore}
_EPISODES = 1 << 31
OF_A_GOAL = {"train": 4}
"""So many episodes in a row share home and goal, because a reset costs distances; elsewhere each has its own."""
MOST_HOMES = 64  # that are tried for an episode
OBSERVED = {
    "egomotion": "how far the last action moved the agent, by its odometry: ahead and left in 0.25 m, the turn in 30 "
                 "degrees, positive to the left",
    "pointgoal": "distance in 5 m, distance up to 1 m, cosine and sine of the direction, positive to the left",
    "gps_compass": "ahead and left of the start in 5 m, cosine and sine of the heading, positive to the left",
    "objectgoal": "the category, one-hot, in the order of nav.categories",
    "segmentation": "1 in the pixels that show the category, else 0"}
"""What the observations of these tasks mean, beside the depth image."""

Observation = dict[str, Any]


class NavigationEnv(WatchedEnv):
    """One navigation task in the homes of one split.

    begins_solved: whether a stop, or the end of time, would be a success where the episode began. That happens only in
    episodes of a file; others are then drawn again.
    """

    metadata = WatchedEnv.metadata | {"render_fps": 10}
    listed = 0  # episodes of a file; 0: there is none
    listed_episodes: Sequence[HabitatEpisode] = ()
    refuses_listed = True  # a listed episode that cannot be solved is refused
    begins_solved = False

    def __init__(self, task: str, config: NavigationConfig, home: HomeSettings, advised: bool = False) -> None:
        """advised: observations have `expert_action` too, the number of the action on the shortest way, and 1."""
        super().__init__(home.render_mode)
        config = config.resolved()
        self.name, self.config, self.split = task, config, home.split
        self.task = self.make_task()
        self.max_steps = config.max_steps
        self.during_action = None  # of videos: an action is one step
        self.agent = self.make_agent()
        self.metadata = self.metadata | {"render_fps": self.agent.actions_per_s}
        self.action_space = self.agent.action_space
        self._size, self._masks = home.depth_size, getattr(self.task, "masks", False)
        boxes: dict[str, gymnasium.Space] = {}
        if self._size:
            boxes["depth"] = gymnasium.spaces.Box(0.0, 1.0, (self._size, self._size, 1), np.float32)
            if self._masks:
                boxes["segmentation"] = boxes["depth"]
                self._codes = np.empty((self._size, self._size), np.int32)
            pitch = 2.0 * math.tan(math.radians(config.fov_deg) / 2.0) / self._size
            self._slopes = ((np.arange(self._size) - (self._size - 1) / 2) * pitch).astype(np.float32)
            self._inverse = np.empty((self._size, self._size), np.float32)
        self._seen, self._home_settings = tuple(home.observations or ()), home
        self._check_seen()
        self._images = [name for name in self._seen if name in CAMERA_OF]
        self._looks, self._look_seeds = PLAIN, LookSeeds()
        self._odometry = self._visual_odometry() if config.odometry == "visual" else None
        self._advised = advised
        if advised:
            self._check_advice()
            boxes["expert_action"] = gymnasium.spaces.Box(0.0, float(RIGHT), (2,), np.float32)
        if config.egomotion:
            boxes["egomotion"] = EGOMOTION_SPACE
        self.observation_space = gymnasium.spaces.Dict(boxes | self.task.spaces
                                                       | seen_space(self._seen, home.camera_size))
        self.episode: NavEpisode | None = None
        self._drawn = -1  # the last episode that was drawn at random

    def make_task(self) -> Any:
        """Where the goal is, what success is, what is rewarded and observed."""
        return TASKS[self.name](self.config)

    def make_agent(self) -> NavAgent:
        """Who drives."""
        if self.config.agent == CYLINDER:
            return Cylinder(self.name, self.config)
        from rearrange.navigation.robot_agent import RobotAgent  # brings MuJoCo

        return RobotAgent(self.name, self.config)

    def _visual_odometry(self) -> VisualOdometry:
        if not self._size:
            raise UserError("nav.odometry=visual needs the depth image, and this agent or policy sees none: choose "
                            "agent=map, or a policy with an image, such as policy=light.")
        return VisualOdometry(self._slopes, self.config.far_m, self.config.near_m)

    def _check_advice(self) -> None:
        """UserError where nobody can say which action leads to the goal."""
        if not isinstance(self.task, GoalTask):
            raise UserError(f"nav={self.name} has no goal, and so no expert to imitate (ppo.imitation_coef, "
                            "expert_action).")
        if not self.agent.is_discrete:
            raise UserError("the expert of navigation chooses among discrete actions: ppo.imitation_coef and "
                            "expert_action need nav.actions=discrete.")

    def _check_seen(self) -> None:
        """UserError for what cannot be seen here."""
        wrong = next((name for name in self._seen if name.startswith("arm_")), None)
        if wrong:
            raise UserError(f"navigation task {self.name} has no observation {wrong!r}, for want of an arm; "
                            "sim.observations= may have "
                            f"{', '.join(name for name in SEEN if not name.startswith('arm_'))}.")
        if self.config.scene_dataset is not None:
            self.check_scenes()
        if self._masks and self._size and "segmentation" in self._seen:
            raise UserError("the observation `segmentation` of objectnav is the mask of what is looked for: write "
                            "nav.segmentation=false to see the numbers of all things instead.")

    def check_scenes(self) -> None:
        """Find the scenes of the data set, or the episodes in them. UserError for what is not told of its things."""
        from rearrange.home.simulation.scenes.scene_selection import scenes_of
        from rearrange.navigation.scene_homes import point_episodes

        if self.name == "objectnav":
            raise UserError("nav=objectnav is for our homes, whose furniture has categories; nav.scene_dataset= is for "
                            f"{', '.join(task for task in TASKS if task != self.name)}.")
        of = self._home_settings
        looks = [name for name in self._seen if name in CAMERA_OF]
        looks += [name for name in ("random_colors", "random_light", "random_camera_m", "random_camera_deg")
                  if getattr(of, name)]
        if looks:
            raise UserError(f"sim.{'observations' if looks[0] in CAMERA_OF else looks[0]}= is for our homes: with "
                            "nav.scene_dataset= the agent sees depth alone.")
        dataset, file = Path(self.config.scene_dataset), self.config.episodes
        if file is None:
            self._scenes = scenes_of(dataset, self.split, self.config.scenes, "nav.scenes")
            return
        if self.name != "pointnav":
            raise UserError(f"nav.episodes={file} is for nav=pointnav.")
        self.listed_episodes = point_episodes(file, dataset)
        self.listed = len(self.listed_episodes)

    # ------------------------------------------------------------------ reset

    def reset(self, *, seed: int | None = None,
              options: dict[str, Any] | None = None) -> tuple[Observation, dict[str, Any]]:
        """Start an episode: a random one, or number options["episode"], which always gives the same one."""
        super().reset(seed=seed)
        asked = _asked(options)
        if seed is not None:
            self._drawn = -1
        fixed = asked is not None and seed is None
        self._start(self._random() if asked is None else asked, fixed)
        self._look_rng = np.random.default_rng(
            self._look_seeds.next(self.episode.id, self.np_random_seed, seed is not None, fixed))
        of = self._home_settings
        self._looks = draw_looks(self._look_rng, of.random_colors, of.random_light, of.random_camera_m,
                                 of.random_camera_deg)
        self._colors: np.ndarray | None = None  # of all shapes; made when they are wanted
        self.instruction = wording(self.task.instructions(self), self.episode.id)
        info = {"instruction": self.instruction, "episode_id": self.episode.id, "scene": self.episode.scene}
        if "segmentation" in self._seen:
            info["segmentation_names"] = names_of(self.home.building)
        self._show()
        return self._observe(), info

    def _random(self) -> int:
        """The next of the episodes that share a goal, or the first of others."""
        count = OF_A_GOAL.get(self.split, 1)
        self._drawn += 1
        if self._drawn % count == 0:
            self._drawn = count * int(self.np_random.integers(_EPISODES // count))
        return self._drawn

    def _start(self, index: int, fixed: bool) -> None:
        if self.listed:
            self._begin(*self.listed_episode(index % self.listed), fixed)
            return
        goal_rng = np.random.default_rng((SPLITS.index(self.split), index // OF_A_GOAL.get(self.split, 1)))
        for _ in range(MOST_HOMES):
            self._begin(*self._drawn_episode(index, goal_rng), fixed)
            if not self.begins_solved:
                return
        raise UserError(f"{MOST_HOMES} episodes of nav={self.name} in homes of split {self.split} have success "
                        "where they begin: make success harder to have.")

    def _begin(self, home: Home, episode: NavEpisode, fixed: bool) -> None:
        config, self.home, self.episode = self.config, home, episode
        self.noise_rng = np.random.default_rng(zlib.crc32(self.episode.id.encode())) if fixed else self.np_random
        self.pose = self.commanded = self.episode.start
        self._command: tuple[float, float] | None = None  # the last
        self._believed_before: PlanePose | None = None
        self.steps = self.collisions = 0
        self.driven_m = 0.0
        self.stop_called = False
        self.path = [self.pose[:2]]
        self.reward_sums = dict.fromkeys(config.reward_scales, 0.0)
        self.agent.begin(self)
        self.task.begin(self)
        self.begins_solved = self.task.begins_solved(self)

    def _drawn_episode(self, index: int, goal_rng: np.random.Generator) -> tuple[Home, NavEpisode]:
        """A home, and an episode in it; where a home lacks what could be a goal, it is another home's turn."""
        for _ in range(MOST_HOMES):
            home = self._drawn_home(goal_rng)
            try:
                return home, self.task.episode(home, index, goal_rng,
                                               np.random.default_rng((SPLITS.index(self.split), index, 1)))
            except NoGoal as error:
                reason = error
        raise UserError(f"{MOST_HOMES} homes of split {self.split} have no goal for nav={self.name}; the last: "
                        f"{reason}")

    def _drawn_home(self, rng: np.random.Generator) -> Home:
        """One of the homes of the split, or of the scenes that were chosen."""
        config = self.config
        if config.scene_dataset is None:
            return load_home(home_name(self.split, config.size, int(rng.integers(config.num_homes))), *config.body_m)
        from rearrange.navigation.scene_homes import load_scene_home  # brings MuJoCo

        return load_scene_home(Path(config.scene_dataset), self._scenes[int(rng.integers(len(self._scenes)))],
                               *config.body_m)

    def listed_episode(self, number: int) -> tuple[Home, NavEpisode]:
        """An episode of the file, and its home."""
        from rearrange.home.scene_files.scene_data import scene_name
        from rearrange.navigation.scene_homes import load_scene_home, placed

        found = self.listed_episodes[number]
        home = load_scene_home(Path(self.config.scene_dataset), scene_name(found.scene), *self.config.body_m)
        return home, placed(found, home)

    # ------------------------------------------------------------------ step

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        if self.episode is None:
            raise RuntimeError("step before reset: an episode has to be started first.")
        self._command = command = self.agent.command(action)
        self.stop_called = self.task.stops and not any(command)
        self.agent.move(self, *command)
        self.steps += 1
        self.task.after_step(self)
        success = self.task.success(self)
        reward = 0.0
        for name, term in self.task.reward_terms(self, success).items():
            scaled = self.config.reward_scales[name] * term
            self.reward_sums[name] += scaled
            reward += scaled
        terminated = self.stop_called
        truncated = not terminated and (self.steps >= self.max_steps or self.agent.broken)
        info: dict[str, Any] = {"success": success, "is_success": success}
        if terminated or truncated:
            ended = "stopped_elsewhere" if terminated else "unstable" if self.agent.broken else "time_limit"
            info["metrics"] = self._metrics(success, None if success else ended)
        self._show()
        return self._observe(), reward, terminated, truncated, info

    def _metrics(self, success: bool, failure: str | None) -> dict[str, float]:
        return {"success": float(success), "episode_steps": float(self.steps),
                **{f"failure/{name}": float(name == failure) for name in (*self.task.failures, *self.agent.failures)},
                **{f"reward/{name}": value for name, value in self.reward_sums.items()},
                **self.task.measures(self, success), "collisions": float(self.collisions), "driven_m": self.driven_m}

    # ------------------------------------------------------------------ observation

    @property
    def believed_pose(self) -> tuple[float, float, float]:
        """Where the agent thinks it is, by its odometry."""
        odometry = self.config.odometry
        if odometry == "visual":
            return self._odometry.pose
        return self.pose if odometry == "perfect" else self.commanded if odometry == "commands" else self.episode.start

    def _observe(self) -> Observation:
        observation = self._look() if self._size else {}
        if self._odometry:
            self._follow(observation["depth"])
        observation |= self.task.observe(self)
        if self.config.egomotion:
            believed = self.believed_pose
            observation["egomotion"] = egomotion(self._believed_before or believed, believed)
            self._believed_before = believed
        if self._advised:
            observation["expert_action"] = np.array([self.task.best_action(self), 1.0], np.float32)
        if self._images:
            observation |= self.photograph(self._images, self._home_settings.camera_size)
        return observation | ({"instruction": self.instruction} if "instruction" in self._seen else {})

    def _follow(self, depth: np.ndarray) -> None:
        """Odometry by the depth image."""
        if self._command is None:
            self._odometry.begin(depth, self.pose)
        elif any(self._command):
            self._odometry.see(depth, *usual_motion(*self._command, self.config.actuation_noise), self._command[0])

    def _look(self) -> Observation:
        """The depth image, (size, size, 1), and the mask of what is looked for."""
        config, images = self.config, self.draw()
        image = images["depth"]
        if config.depth_noise:
            noisy_depth(image, config.far_m, config.depth_noise, self.noise_rng)
        if self._home_settings.random_depth_noise:
            noisy_depth(image, config.far_m, self._home_settings.random_depth_noise, self._look_rng)
        if self._home_settings.random_depth_holes:
            punch_holes(image, self._home_settings.random_depth_holes, self._look_rng)
        return images

    def draw(self) -> Observation:
        """The same without noise and holes."""
        config, s = self.config, self.home.shapes
        image = np.empty((self._size, self._size, 1), np.float32)
        images = {"depth": image}
        x, y, yaw = self.pose
        ahead_m = config.camera_ahead_m
        view = (s.shapes, s.halves, s.centers, s.rotations, x + ahead_m * math.cos(yaw), y + ahead_m * math.sin(yaw),
                config.camera_height_m, yaw, self._slopes, np.float32(config.near_m), np.float32(config.far_m),
                self._inverse, image)
        if self._masks:
            images["segmentation"] = mask = np.empty_like(image)
            look_for(*view, self._codes, self.task.wanted, mask)
        elif self.home.meshes:
            look_at_meshes(self.home.meshes, *view)
        elif self._looks.moves:
            image[:] = np.maximum(self.photograph(["depth"], self._size)["depth"], config.near_m / config.far_m)
        else:
            look(*view)
        return images

    def photograph(self, wanted: list[str], size: int) -> Observation:
        """Images of `rearrange.home.pictures.photograph` by the camera."""
        (x, y, yaw), s, config = self.pose, self.home.shapes, self.config
        level = np.array(
            [(0.0, -1.0, 0.0), (0.0, 0.0, -1.0), (1.0, 0.0, 0.0), (config.camera_ahead_m, 0.0, config.camera_height_m)])
        c, sin = math.cos(yaw), math.sin(yaw)
        turned = np.array([(c, -sin, 0.0), (sin, c, 0.0), (0.0, 0.0, 1.0)])
        pose = in_world(self._looks.mounted("head", level), turned, np.array([x, y, 0.0]))
        if self._colors is None:
            self._colors = linear_colors(s.rgb, s.things, self._looks)
        ids = np.append(s.things, np.uint16(0))
        return photograph(wanted, (s.shapes, s.halves, s.centers, s.rotations), pose, size, self._colors,
                          self._looks.light, ids, config.fov_deg, config.far_m)

    # ------------------------------------------------------------------ picture

    def picture(self) -> np.ndarray:
        """The home from above with what was driven, the shortest way and the goal, (512, 512, 3) uint8."""
        from rearrange.navigation.top_down_view import picture

        return picture(self)

    def status_lines(self) -> list[str]:
        """What a spectator wants to read beside the picture."""
        return [*self.task.status_lines(), f"driven {self.driven_m:.1f} m, {self.collisions} collisions"]


def _asked(options: dict[str, Any] | None) -> int | None:
    """The episode that `reset` is asked for; None for a random one. UserError for other options."""
    if options is None:
        return None
    asked = options.get("episode") if isinstance(options, dict) and not set(options) - {"episode"} else "other"
    if asked is None or isinstance(asked, (int, np.integer)) and not isinstance(asked, bool) and asked >= 0:
        return None if asked is None else int(asked)
    raise UserError(f"reset takes options={{'episode': ...}} with a number from 0 on, not {options!r}.")
