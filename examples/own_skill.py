"""Touch: bring the hand to an object.

Observation: depth image, start position of the object in the end-effector frame, arm joint angles.
Action: arm joint deltas, base speed and turn.
Reward: progress of the hand, and success.
Success: the hand is within 0.1 m of the object.
Failure: too much force on the arm.
Start: close to the receptacle on which the object stands, facing it.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from rearrange.home.settings.setting_fields import block, setting
from skills.arguments import about_object
from skills.picture_marks import object_box, spoken_name
from skills.settings import SkillConfig, action_parts, initial_std, observation_keys
from skills.skill import Skill, draw_target, receptacle_of, start_near


@dataclass(frozen=True)
class TouchConfig(SkillConfig):
    skill = "touch"
    action_parts: tuple[str, ...] = action_parts("arm", "base")
    observation_keys: tuple[str, ...] = observation_keys("depth", "obj_start", "joint")
    max_steps: int = setting(150, "steps of an episode, 30 a second", above=0, at_most=1_000_000)
    radius_m: float = setting(0.1, "success: the hand this close to the object", above=0)
    max_accumulated_force_n: float = setting(5000.0, "sum of the arm's contact force that ends an episode", above=0)
    reward_scales: Mapping[str, float] = block(
        distance=setting(20.0, "per metre nearer"),
        success=setting(10.0, "once, at success"),
        force_limit=setting(-10.0, "too much force on the arm; ends the episode"),
    )
    initial_std: Mapping[str, float | None] = initial_std("arm", "base")


class Touch(Skill):
    name = "touch"
    episode_kind = "pick"  # the episodes that it is trained on: rearrange/home/episodes/generator.py has the kinds
    failures = ("force_limit",)
    settings = TouchConfig

    def start(self, sim, episode, rng):
        order = draw_target(episode, rng, sim)
        arguments = about_object(sim, episode, list(episode.targets)[order])
        start_near(sim, arguments.position, receptacle_of(sim, episode, "target_receptacles", order), rng,
                   position_noise_m=0.05, yaw_noise_rad=0.15)
        self.begin(sim, arguments)

    def begin(self, sim, arguments):
        self.arguments = arguments
        self.distance_m = self.distance(sim)

    def distance(self, sim):
        return math.dist(sim.ee_position, sim.object_position(self.target))

    def success(self, sim):
        return self.distance(sim) < self.config.radius_m

    def failure(self, sim):
        return "force_limit" if sim.accumulated_arm_force_n > self.config.max_accumulated_force_n else None

    def reward_terms(self, sim):
        before, self.distance_m = self.distance_m, self.distance(sim)
        failed = float(self.failure(sim) is not None)
        return {"distance": before - self.distance_m, "success": float(self.success(sim)), "force_limit": failed}

    def marks(self, sim):
        return [object_box(sim, self.target)]  # what a spectator sees in videos

    def status_lines(self, sim):
        return [f"object: {spoken_name(sim, self.target)}", f"hand to object {self.distance(sim):.2f} m"]


if __name__ == "__main__":
    import time

    from rearrange.env import HomeSettings, RearrangeEnv
    from trainer import CollectConfig, TrainConfig, train

    run = time.strftime("outputs/touch/%Y-%m-%d_%H-%M-%S")  # of its own each time
    config = TrainConfig(steps=4_096, collect=CollectConfig(num_envs=8, num_workers=0, rollout_steps=128))
    train(lambda: RearrangeEnv(Touch(), HomeSettings(depth_size=0, num_layouts=8)), config, run)
