"""A policy that comes with the package opens the fridge in three homes that it has never seen.

    python examples/roll_out.py
"""

import rearrange

env, policy = rearrange.load_pretrained("open_fridge", split="val")
for episode in range(3):
    observation, info = env.reset(options={"episode": episode})
    policy.reset()  # its memory is of one episode
    over = False
    while not over:
        observation, reward, terminated, truncated, info = env.step(policy.act(observation))
        over = terminated or truncated
    print(f"episode {episode}: success {info['success']} after {info['metrics']['episode_steps']:.0f} steps")
