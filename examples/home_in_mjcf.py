"""A home in MuJoCo's XML, kitchen.xml beside this file: what is found in it, and the robot at work there.

    python examples/home_in_mjcf.py
    rearrange scenes view dataset=examples/kitchen.xml out=kitchen.png
"""

from pathlib import Path

import rearrange
from skills.experts import expert_class

kitchen = str(Path(__file__).parent / "kitchen.xml")
for skill in ("pick", "open_cabinet"):
    env = rearrange.make_env(skill, scene_dataset=kitchen, depth_size=0)
    env.reset(seed=0)
    if skill == "pick":
        places = env.sim.home.layout.receptacles
        print("receptacles:", ", ".join(f"{place.name} ({place.kind})" for place in places))
    expert, over = expert_class(skill)(env.sim, env.skill), False
    while not over:
        observation, reward, terminated, truncated, info = env.step(expert.act())
        over = terminated or truncated
    print(f"{skill}: success {info['success']} after {env.steps} steps")
