"""A robot as the agent of a navigation task: its base, driven by velocities in MuJoCo among walls and furniture.

The arm is tucked above the base, so that the robot is as wide as its base. Drawers and doors are shut, and there are no
objects. MuJoCo's homes are flats (`nav.size=small`). Their frame begins inside the outer walls, that of
`rearrange.navigation.homes` outside.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rearrange.home.apartments.episodes import Episode
from rearrange.home.geometry import wrap_angle
from rearrange.home.simulation.mujoco.simulator import MujocoSimulator
from rearrange.home.simulation.simulator_interface import STEP_S, SimulatorConfig
from rearrange.navigation.agent import CarriedOut, Held, NavAgent, limited
from rearrange.navigation.homes import WALL_M
from rearrange.navigation.settings import NavigationConfig

if TYPE_CHECKING:
    from rearrange.navigation.env import NavigationEnv


class RobotAgent(NavAgent):
    """A velocity is the command of the base, as skills have it, for `action_repeat` steps of 1/30 s; 1 is full speed.

    A discrete action is carried out until odometry says that it is done. Stop brakes for 1/30 s. An action counts as a
    collision if something touches the robot.
    """

    failures = ("unstable",)

    def __init__(self, task: str, config: NavigationConfig) -> None:
        super().__init__(task, config)
        self.sim = MujocoSimulator(SimulatorConfig(robot=config.agent))
        if not self.is_discrete:
            self.actions_per_s = 1.0 / STEP_S / config.action_repeat

    def begin(self, env: NavigationEnv) -> None:
        split, _, number = env.home.building.name.split("/")
        scene, (x, y, yaw) = f"{split}/{number}", env.pose
        self.sim.reset(Episode(env.episode.id, scene, (), ()))
        self.sim.place_robot(x - WALL_M, y - WALL_M, yaw, self.sim.robot.arm.tucked)
        self.broken = False

    def speeds(self, speed: float, turn: float) -> tuple[float, float]:
        return limited(speed, turn)

    def move(self, env: NavigationEnv, ahead: float, turn: float) -> None:
        """Velocities as shares of full speed; of a discrete action metres ahead and radians to the left."""
        touched, config = False, self.config
        carried = self.is_discrete and (ahead or turn)
        motion = CarriedOut(self.sim.config, env.pose, ahead,
                            turn) if carried else Held((ahead, turn), config.action_repeat)
        while not (motion.is_done(env.pose) or self.broken):
            touched |= self._step(env, *motion.command(env.pose))
        env.collisions += touched
        env.path.append(env.pose[:2])

    def _step(self, env: NavigationEnv, ahead: float, turn: float) -> bool:
        """1/30 s; returns whether something touched the robot."""
        sim = self.sim
        sim.step(base=[ahead, turn])
        if sim.unstable:  # its pose means nothing
            self.broken = True
            return False
        x, y, yaw = sim.base_pose
        pose = (x + WALL_M, y + WALL_M, wrap_angle(yaw))
        env.driven_m += math.dist(pose[:2], env.pose[:2])
        env.pose = pose
        return sim.base_force_n > 0.0 or sim.arm_force_n > 0.0
