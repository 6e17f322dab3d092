"""Scripted agents of navigation tasks: the floors and ceilings beside which a trained policy is read.

Forward and goal follower are habitat-lab's (habitat_baselines/agents/simple_agents.py). The map agent sees what a
policy sees, depth and pose. The oracle knows the home. All choose among the discrete actions; where the Fetch is driven
by velocities, these carry out each choice.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from rearrange.home.errors import UserError
from rearrange.home.mapping.floor_map import FloorMap
from rearrange.home.mapping.route import Clearance
from rearrange.home.robot.robot import Camera
from rearrange.navigation.agent import FORWARD, LEFT, RIGHT, STOP, CarriedOut
from rearrange.navigation.goals import GoalTask
from rearrange.navigation.settings import CYLINDER

if TYPE_CHECKING:
    from rearrange.navigation.env import NavigationEnv

NEAR_ENOUGH = 0.9  # share of the allowed distance, as the crow flies: the way may be a little longer
MAP_CELLS = 600  # of 0.1 m on a side: a goal is at most 30 m away
ROUND_M = 0.4  # of driving to a goal that is near as the crow flies: if it is farther, something is in between
STUCK_TURNS = 3  # how far the map agent turns away from what it has run into


class Scripted(ABC):
    """One agent in one environment."""

    def __init__(self, env: NavigationEnv) -> None:
        if env.config.actions != "discrete" and env.config.agent == CYLINDER:
            raise UserError("scripted agents of navigation take discrete actions, not "
                            f"nav.actions={env.config.actions}.")
        self.env = env
        self.turn_rad = math.radians(env.config.turn_deg)
        self._motion: CarriedOut | None = None  # of the last choice, where actions are velocities

    def begin(self) -> None:
        """An episode begins."""
        self._motion = None

    def act(self, observation: dict[str, np.ndarray]) -> Any:
        """An action of the environment: the number of one, or velocities."""
        agent, pose = self.env.agent, self.env.pose
        if agent.is_discrete:
            return self.choose(observation)
        if self._motion is None or self._motion.is_done(pose):
            choice = self.choose(observation)
            if choice == STOP:
                return np.zeros(2, np.float32)
            self._motion = CarriedOut(agent.sim.config, pose, *agent.metres_and_radians(choice),
                                      self.env.config.action_repeat)
        return np.array(self._motion.command(pose), np.float32)

    @abstractmethod
    def choose(self, observation: dict[str, np.ndarray]) -> int:
        """The number of a discrete action."""

    def towards(self, angle: float) -> int:
        """Turn until an angle (rad, to the left) is nearly ahead, then drive."""
        return FORWARD if abs(angle) <= self.turn_rad / 2 + 1e-9 else LEFT if angle > 0 else RIGHT


class PointAgent(Scripted):
    """One that is told where the goal is."""

    def __init__(self, env: NavigationEnv) -> None:
        super().__init__(env)
        if "pointgoal" not in env.observation_space.spaces:
            named = next(name for name, kind in SCRIPTED.items() if isinstance(self, kind))
            raise UserError(f"agent={named} is for nav=pointnav; nav={env.name} tells no point to go to.")

    def there(self, observation: dict[str, np.ndarray]) -> bool:
        """Whether the goal is near enough, as the crow flies."""
        return float(observation["pointgoal"][0]) * 5 < NEAR_ENOUGH * self.env.config.success_m


class Forward(PointAgent):
    """Drives straight ahead, and stops at the goal if it happens to come there."""

    def choose(self, observation: dict[str, np.ndarray]) -> int:
        return STOP if self.there(observation) else FORWARD


class GoalFollower(PointAgent):
    """Turns towards the goal and drives, whatever is in between."""

    def choose(self, observation: dict[str, np.ndarray]) -> int:
        cosine, sine = observation["pointgoal"][2:]
        return STOP if self.there(observation) else self.towards(math.atan2(sine, cosine))


class MapAndPlan(PointAgent):
    """Draws a map of the floor from depth and pose and drives the shortest way through it; unseen floor counts as free.
    """

    def __init__(self, env: NavigationEnv) -> None:
        super().__init__(env)
        if env.config.far_m != 10.0:
            raise UserError(f"agent=map reads depth up to 10 m, not nav.far_m={env.config.far_m:g}.")
        radius_m = env.config.body_m[0]
        self._clearance = Clearance(radius_m + 0.05, ((radius_m + 0.1, 2.0), (radius_m + 0.2, 1.2)))
        ahead_m, height_m = env.config.camera_ahead_m, env.config.camera_height_m
        self._camera = Camera((ahead_m, 0.0, height_m), (ahead_m + 1.0, 0.0, height_m), env.config.fov_deg)

    def begin(self) -> None:
        super().begin()
        self._map = FloorMap(self.env.believed_pose, self._camera, self._clearance, MAP_CELLS)
        self._before: tuple[float, float, float] | None = None
        self._last = STOP
        self._waiting: list[int] = []  # actions that come first

    def choose(self, observation: dict[str, np.ndarray]) -> int:
        pose = self.env.believed_pose
        self._map.add(observation["depth"], pose)
        stuck = self._last == FORWARD and math.dist(pose[:2], self._before[:2]) < 0.2 * self.env.config.forward_m
        if stuck:
            ahead_m = self.env.config.body_m[0] + 0.1
            self._map.touched(pose[0] + ahead_m * math.cos(pose[2]), pose[1] + ahead_m * math.sin(pose[2]))
        route = self._map.route(pose, self.env.task.goal)
        if self.there(observation) and route[0] < ROUND_M:
            return STOP
        if stuck:
            side = LEFT if route[2] >= 0 else RIGHT
            self._waiting = [side] * STUCK_TURNS + [FORWARD]
        self._before = pose
        if self._waiting:
            self._last = self._waiting.pop(0)
        else:
            self._last = self.towards(math.atan2(route[2], route[1]))
        return self._last


class Oracle(Scripted):
    """Knows the home: drives to the next corner of the shortest way; if that is blocked, to where the way is shortest.
    """

    def __init__(self, env: NavigationEnv) -> None:
        super().__init__(env)
        if not isinstance(env.task, GoalTask):
            raise UserError(f"agent=oracle is for tasks with a goal; nav={env.name} has none.")

    def begin(self) -> None:
        super().begin()
        self._last = STOP

    def choose(self, observation: dict[str, np.ndarray]) -> int:
        action = self.env.task.best_action(self.env)
        if self.env.config.agent != CYLINDER and {action, self._last} == {LEFT, RIGHT}:
            action = FORWARD  # not back and forth: it drifts while it turns, and the next corner may change
        self._last = action
        return action


SCRIPTED: dict[str, type[Any]] = {"forward": Forward, "goal_follower": GoalFollower, "map": MapAndPlan,
                                  "oracle": Oracle}


def oracle_actions(env: NavigationEnv, episode: int) -> list[int]:
    """What the oracle does in an episode, to its end."""
    agent, actions, over = SCRIPTED["oracle"](env), [], False
    observation, _ = env.reset(options={"episode": episode})
    agent.begin()
    while not over:
        actions.append(agent.act(observation))
        observation, _, terminated, truncated, _ = env.step(actions[-1])
        over = terminated or truncated
    return actions
