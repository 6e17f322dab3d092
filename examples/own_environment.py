"""The engine learns in an environment of one's own: a cart that has to stop at a place.

    python examples/own_environment.py
"""

import time

import gymnasium
import numpy as np

from trainer import CollectConfig, Player, TrainConfig, train


class Cart(gymnasium.Env):
    """A cart on a rail is pushed to a place and stands still there."""

    observation_space = gymnasium.spaces.Box(-10.0, 10.0, (2,), np.float32)  # how far the place is (m), speed (m/s)
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)  # push

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.away_m, self.speed_m_s, self.steps = self.np_random.uniform(-2.0, 2.0), 0.0, 0
        return self.seen(), {}

    def step(self, action):
        self.speed_m_s = 0.9 * self.speed_m_s + 0.3 * float(action[0])
        self.away_m = float(np.clip(self.away_m - 0.1 * self.speed_m_s, -10.0, 10.0))
        self.steps += 1
        there, late = abs(self.away_m) < 0.1 and abs(self.speed_m_s) < 0.2, self.steps == 100
        info = {"metrics": {"success": float(there)}} if there or late else {}
        return self.seen(), 5.0 * there - 0.1 * abs(self.away_m), there, late, info

    def seen(self):
        return np.array([self.away_m, self.speed_m_s], np.float32)


config = TrainConfig(steps=20_000, collect=CollectConfig(num_envs=16, num_workers=0, rollout_steps=64))
run = time.strftime("outputs/cart/%Y-%m-%d_%H-%M-%S")  # of its own each time
train(Cart, config, run)

env, successes = Cart(), 0
player = Player(run, env, deterministic=True)
for episode in range(20):
    observation, info = env.reset(seed=episode)
    player.reset()
    over = False
    while not over:
        observation, reward, terminated, truncated, info = env.step(player.act(observation))
        over = terminated or truncated
    successes += info["metrics"]["success"] == 1.0
print(f"the cart stops at its place in {successes} of 20 episodes")
