"""An expert's episodes are recorded, cloned, and the clone is trained further with PPO.

    python examples/record_and_clone.py

The numbers are small: it shows the way in seconds. docs/findings/cloning.md says how many episodes and steps it takes.
"""

from rearrange.command_line.cli import main

SMALL = "policy=blind policy.body_size=64 trainer.num_workers=0 trainer.num_envs=8"
for command in (
    "record skill=close_cabinet episodes=8 image_size=0 workers=1 out=shown",
    f"train skill=close_cabinet {SMALL} demos=shown demos_steps=6_000 steps=8_000 name=cloned",
    "eval skill=close_cabinet checkpoint=outputs/train/close_cabinet/cloned episodes=4 workers=1",
):
    print(f"\n$ rearrange {command}", flush=True)
    if status := main(command.split()):
        raise SystemExit(status)
