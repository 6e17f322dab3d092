#!/usr/bin/env bash
# Gymnasium: `env.reset(seed=s)` and `env.action_space.seed(s)` give environment and random actions the same random numbers.
#
# What one expects: environment and action space have generators of their own, so that random actions have nothing to do with what the
#   environment draws, whatever the two seeds are. One number for both is what Gymnasium's own examples have.
# What happens: both generators are PCG64 of the plain seed, so both draw the same stream, as does `numpy.random.default_rng(s)`. The first
#   random torque of Pendulum is its first angle on another scale. In Blackjack random play loses a sixth less than it really does. An
#   environment that draws as often as the action space does stays in step with it after one seeding: random actions guess each of its
#   numbers. A baseline of random actions is then wrong, and so are random steps before a training. Seeds that differ end it.
# Version: gymnasium 1.4.0, numpy 2.4.6
# Source: https://pypi.org/project/gymnasium/1.4.0/, gymnasium/utils/seeding.py, np_random, which Env.reset and Space.seed both call with what
#   they were given
# Date: 2026-12-01
# Seen:
#     seeds of environment and action space:                           the same   others
#     Pendulum-v1, first angle and first torque, correlation:               1.0    -0.03
#     Blackjack-v1, mean return:                                         -0.325   -0.392
#     numbers guessed right, of 1,000:                                     1000       55

set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check gymnasium==1.4.0 numpy==2.4.6
cat > "$folder/seeds.py" <<'PYTHON'
import gymnasium
import numpy


class Guess(gymnasium.Env):
    """A number of [-1, 1] is to be guessed, a new one in each step; it is right within 0.05."""

    observation_space = gymnasium.spaces.Box(0, 1, (1,))
    action_space = gymnasium.spaces.Box(-1, 1, (1,))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.number = self.np_random.uniform(-1, 1)
        return numpy.zeros(1, numpy.float32), {}

    def step(self, action):
        right = abs(action[0] - self.number) < 0.05
        self.number = self.np_random.uniform(-1, 1)
        return numpy.zeros(1, numpy.float32), float(right), False, False, {}


def pendulum(other):
    """The correlation of the angle that an episode begins with and the first random torque, over 300 seeds."""
    env, pairs = gymnasium.make("Pendulum-v1"), []
    for seed in range(300):
        env.reset(seed=seed)
        env.action_space.seed(seed + other)
        pairs.append((env.unwrapped.state[0], env.action_space.sample()[0]))
    return round(float(numpy.corrcoef(numpy.array(pairs).T)[0, 1]), 2) + 0.0


def blackjack(other):
    """The mean return of random play, over 20,000 seeds."""
    env, total = gymnasium.make("Blackjack-v1"), 0.0
    for seed in range(20_000):
        env.reset(seed=seed)
        env.action_space.seed(seed + other)
        over = False
        while not over:
            _, reward, over, _, _ = env.step(env.action_space.sample())
        total += reward
    return round(total / 20_000, 3)


def guess(other):
    """How many of 1,000 guesses are right, seeded once."""
    env = Guess()
    env.reset(seed=42)
    env.action_space.seed(42 + other)
    return int(sum(env.step(env.action_space.sample())[1] for _ in range(1000)))


print("gymnasium", gymnasium.__version__)
print(f"{'seeds of environment and action space:':<64} {'the same':>8} {'others':>8}")
seen = {}
for what, of in (("Pendulum-v1, first angle and first torque, correlation", pendulum), ("Blackjack-v1, mean return", blackjack),
                 ("numbers guessed right, of 1,000", guess)):
    seen[of] = same, others = of(0), of(1_000_000)
    print(f"{what + ':':<64} {same:>8} {others:>8}")
happens = (seen[pendulum][0] == 1.0 and abs(seen[pendulum][1]) < 0.2 and seen[blackjack][0] - seen[blackjack][1] > 0.03
           and seen[guess][0] == 1000 and seen[guess][1] < 100)
raise SystemExit(not happens)
PYTHON
"$folder/venv/bin/python" -W ignore "$folder/seeds.py"
