"""Navmeshes of an exported data set: `python -m rearrange.habitat.export.navmeshes FOLDER NAME ...`.

It needs habitat-sim, but no display. The robot is as large as habitat-lab takes the Fetch to be.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import habitat_sim

from rearrange.habitat.export.json_files import write_json

RADIUS_M, HEIGHT_M, CLIMB_M, SLOPE_DEG = 0.3, 1.5, 0.2, 45.0  # of habitat-lab's agent


def main(folder: Path, names: list[str]) -> None:
    """Write the navmeshes of these homes, and name them in their scenes and in the data set."""
    (data_set,) = folder.glob("*.scene_dataset_config.json")
    (physics,) = folder.glob("*.physics_config.json")
    (folder / "navmeshes").mkdir(exist_ok=True)
    content, sim = json.loads(data_set.read_text(encoding="utf-8")), None
    for name in names:
        config = habitat_sim.SimulatorConfiguration()
        config.scene_dataset_config_file, config.scene_id = str(data_set), f"{name}.scene_instance.json"
        config.enable_physics, config.physics_config_file = True, str(physics)
        config.create_renderer, config.gpu_device_id = False, -1
        settings = habitat_sim.Configuration(config, [habitat_sim.AgentConfiguration()])
        if sim is None:
            sim = habitat_sim.Simulator(settings)
        else:
            sim.reconfigure(settings)
        mesh = habitat_sim.NavMeshSettings()
        mesh.set_defaults()
        mesh.agent_radius, mesh.agent_height = RADIUS_M, HEIGHT_M
        mesh.agent_max_climb, mesh.agent_max_slope, mesh.include_static_objects = CLIMB_M, SLOPE_DEG, True
        content["navmesh_instances"][f"navmesh_{name}"] = path = f"navmeshes/{name}.navmesh"
        if not (sim.recompute_navmesh(sim.pathfinder, mesh) and sim.pathfinder.save_nav_mesh(str(folder / path))):
            raise SystemExit(f"no navmesh of {name}")
    for name in names:
        scene = folder / "scenes" / f"{name}.scene_instance.json"
        write_json(scene, json.loads(scene.read_text(encoding="utf-8")) | {"navmesh_instance": f"navmesh_{name}"})
    write_json(data_set, content)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
