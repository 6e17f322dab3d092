"""An expert's episodes are recorded, cloned, and the clone is trained further with PPO.

    python examples/record_and_clone.py

The numbers are small: it shows the way in seconds. docs/findings/cloning.md says how many episodes and steps it takes.
"""

import time

from rearrange.command_line.cli import main

STAMP = time.strftime("%Y-%m-%d_%H-%M-%S")  # directories of its own each time
SMALL = "policy=blind policy.body_size=64 trainer.num_workers=0 trainer.num_envs=8"
for command in (
    f"record skill=close_cabinet episodes=8 image_size=0 workers=1 out=outputs/shown/{STAMP}",
    f"train skill=close_cabinet {SMALL} demos=outputs/shown/{STAMP} demos_steps=6_000 "
    f"steps=8_000 name={STAMP}",
    f"eval skill=close_cabinet checkpoint=outputs/train/close_cabinet/{STAMP} episodes=4 workers=1",
):
    print(f"\n$ rearrange {command}", flush=True)
    if status := main(command.split()):
        raise SystemExit(status)
