"""PointNav's steps in Habitat-Sim and here: the same scenes, starts and actions, in turn on one core.

In Habitat a step is what its `Simulator.step` does without physics: a discrete action along the navigation mesh, then
the depth image. Loading a scene is not counted in either. Times are CPU times of the thread.
"""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rearrange import navigation
from rearrange.habitat.installed import device, need_habitat
from rearrange.home.axis_conventions import to_y_up, to_z_up
from rearrange.home.errors import UserError
from rearrange.home.scene_files.scene_data import SceneData
from rearrange.home.settings.environment import check_depth_size
from rearrange.home.settings.presets import has_nvidia_device
from rearrange.navigation.scripted_agents import oracle_actions

if TYPE_CHECKING:
    from rearrange.command_line.composition.bench_settings import Measurement

ACTIONS = (None, "move_forward", "turn_left", "turn_right")  # by our numbers; stop ends an episode


def check(settings: Measurement) -> None:
    """Refuses, before anything is run, what cannot be compared."""
    sim = settings.sim
    check_depth_size(getattr(settings, "depth_size", 0))
    if sim.sim != "habitat":
        what = type(settings).__name__.lower()
        raise UserError(f"{what} compares both simulators: write sim=habitat sim.scene_dataset=...")
    need_habitat()
    SceneData(sim.scene_dataset, sim.robot_urdf, sim.gpu_device).check()


def bench_both(dataset: str, gpu_device: int | None, depth_size: int, seconds: float, seed: int) -> dict[str, float]:
    """Steps per second of both, each for about `seconds`, in the scenes of split val of a data set, and how far apart
    their agents are at the end of an episode (m, median).
    """
    env = navigation.make_env("pointnav", depth_size=depth_size, scene_dataset=dataset, split="val")
    rng, spent, steps, habitat, apart = np.random.default_rng(seed), {"mujoco": 0.0, "habitat": 0.0}, 0, None, []
    while min(spent.values()) < seconds:
        episode = int(rng.integers(1 << 31))
        actions = oracle_actions(env, episode)
        env.reset(options={"episode": episode})
        habitat = habitat or _Habitat(dataset, gpu_device, env.config, depth_size)
        habitat.begin(env.home.building.name.rpartition("/")[2], env.pose, env.home.origin_m)
        for name, step in (("mujoco", env.step), ("habitat", habitat.step)):
            before = time.thread_time()
            for action in actions:
                step(action)
            spent[name] += time.thread_time() - before
        steps += len(actions)
        apart.append(math.dist(env.pose[:2], habitat.place()))
    return {"steps": steps, **{f"{name}_steps_per_s": steps / taken for name, taken in spent.items()},
            "ratio": spent["habitat"] / spent["mujoco"], "apart_m": float(np.median(apart))}


class _Habitat:
    """Habitat-Sim with the agent of `config`, a `NavigationConfig`, and its camera."""

    def __init__(self, dataset: str, gpu_device: int | None, config: Any, depth_size: int) -> None:
        self._habitat, self._dataset = need_habitat(), str(Path(dataset).resolve())
        self._device = device(gpu_device, has_nvidia_device())
        camera = self._habitat.CameraSensorSpec()
        camera.uuid, camera.sensor_type = "depth", self._habitat.SensorType.DEPTH
        camera.resolution, camera.hfov = [depth_size, depth_size], config.fov_deg
        camera.position = [0.0, config.camera_height_m, 0.0]
        spec, amount = self._habitat.agent.ActionSpec, self._habitat.agent.ActuationSpec
        actions = {name: spec(name, amount(config.forward_m if name == "move_forward" else config.turn_deg))
                   for name in ACTIONS[1:]}
        self._agent = self._habitat.agent.AgentConfiguration(
            radius=config.radius_m, height=config.height_m, sensor_specifications=[camera], action_space=actions)
        self._simulator, self._scene = None, None

    def begin(self, scene: str, pose: tuple[float, float, float], origin_m: tuple[float, float, float]) -> None:
        """Stand in a scene at x, y (m) and yaw (rad) of our frame, whose corner is at `origin_m`."""
        if scene != self._scene:
            backend = self._habitat.SimulatorConfiguration()
            backend.scene_dataset_config_file, backend.scene_id = self._dataset, scene
            backend.gpu_device_id, backend.enable_physics = self._device, True  # without, it loads no drawers and doors
            if self._simulator is not None:
                self._simulator.close()
            self._simulator = self._habitat.Simulator(self._habitat.Configuration(backend, [self._agent]))
            self._scene = scene
            mesh = self._habitat.NavMeshSettings()
            mesh.set_defaults()
            mesh.agent_radius, mesh.agent_height = self._agent.radius, self._agent.height
            mesh.include_static_objects = True
            self._simulator.recompute_navmesh(self._simulator.pathfinder, mesh)
        (x, y, yaw), self._origin_m = pose, origin_m
        half = (yaw - math.pi / 2) / 2  # Habitat's agent faces -z
        state = self._habitat.AgentState(position=np.add(to_y_up((x, y, 0.0)), to_y_up(origin_m)).astype(np.float32),
                                         rotation=[0.0, math.sin(half), 0.0, math.cos(half)])
        self._simulator.get_agent(0).set_state(state)

    def place(self) -> tuple[float, float]:
        """Where the agent is, x and y (m) of our frame."""
        x, y, _ = to_z_up(*self._simulator.get_agent(0).get_state().position.tolist())
        return x - self._origin_m[0], y - self._origin_m[1]

    def step(self, action: int) -> None:
        """One of our actions."""
        if ACTIONS[action] is not None:
            self._simulator.get_agent(0).act(ACTIONS[action])
            self._simulator.get_sensor_observations()
