"""`python stock_task.py TASK HOMES`: reset and step a task of Habitat-Lab on exported homes, and print ok.

Nothing of the project is imported.

Run where HOMES was exported from, because episodes name their data set as it was typed, and where a folder data/ is.
"""

from __future__ import annotations

import sys
from pathlib import Path


def main(task: str, homes: Path) -> None:
    import habitat

    config = habitat.get_config(f"benchmark/rearrange/multi_task/{task}.yaml", overrides=[
        f"habitat.dataset.data_path={homes}/episodes/val/{task}.json.gz", "habitat.dataset.split=val",
        f"habitat.dataset.scenes_dir={homes}", "habitat.simulator.additional_object_paths=[]",
        f"habitat.simulator.agents.main_agent.articulated_agent_urdf={homes}/robots/fetch.urdf",
        "habitat.simulator.habitat_sim_v0.gpu_device_id=-1"])
    env = habitat.Env(config)
    for _ in env.episodes:
        env.reset()
        for _ in range(3):
            if not env.episode_over:
                env.step(env.action_space.sample())
    print("ok", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
