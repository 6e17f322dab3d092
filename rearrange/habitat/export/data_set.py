"""`rearrange scenes export format=habitat`: homes, objects, robot and episodes as a Habitat scene data set."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rearrange.env.scenario_episodes import Scenario
from rearrange.habitat.export.episode_files import episodes_of, kinds, write_habitat_episodes
from rearrange.habitat.export.fetch_links import NAME, ROOT, fetch_links
from rearrange.habitat.export.home_files import LIGHTING, HomeFiles, write_home
from rearrange.habitat.export.json_files import write_json
from rearrange.habitat.export.meshes import need_trimesh
from rearrange.habitat.export.object_files import write_objects
from rearrange.habitat.export.urdf import turned, write_articulated
from rearrange.home.apartments.kept_layouts import scene_layout
from rearrange.home.errors import UserError
from rearrange.home.settings.environment import homes_called
from rearrange.home.simulation.mujoco.build_model import TIMESTEP_S

DATA_SET = "rearrange.scene_dataset_config.json"
PHYSICS = "rearrange.physics_config.json"
PHYSICS_SETTINGS = {"physics_simulator": "bullet", "timestep": TIMESTEP_S, "gravity": [0, -9.81, 0],
                    "friction_coefficient": 0.7, "restitution_coefficient": 0.0}
# Direction in which light goes, y up, and how bright; from four sides, so that no two faces of a box look alike.
_LIGHTS = (([-0.3, -1, -0.5], 0.8), ([1, -0.4, 0.3], 0.7), ([-0.8, -0.3, 0.9], 0.6), ([0.2, -0.2, -1], 0.5))
_LATER = "Habitat computes them when it loads a home, in about 30 ms"


@dataclass(frozen=True)
class FromAbove:
    """What an export takes from the floors above: the version of the program, and what gives a scenario by its name."""

    version: str
    scenario_called: Callable[[str], Scenario]


def export(config: dict[str, Any], given: FromAbove) -> None:
    """The command. The folder is complete or absent."""
    out = check(config)
    place = out.resolve()
    partial = place.with_name(f".{place.name}.{os.getpid()}.partial")
    print(f"writing {config['count']} homes of split={config['split']} and their episodes ...", flush=True)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        partial.mkdir()
        written = write(partial, out, config, given)
        partial.rename(place)  # also over an empty folder
    except OSError as error:
        raise UserError(f"out={config['out']}: cannot write there: {error.strerror or error}.") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    for line in written:
        print(line)
    print(f"{out / DATA_SET}   {size_mb(place):.1f} MB")


def check(config: dict[str, Any]) -> Path:
    """The folder to write; refuses before any work what cannot be done."""
    if config["out"] is None:
        raise UserError("where to? For example: rearrange scenes export out=homes.")
    out = Path(config["out"])
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UserError(f"out={config['out']} exists and is not an empty folder: choose another, or remove it first.")
    if out.resolve() == Path.cwd():
        raise UserError(f"out={config['out']} is the folder you are in: name one in it, as out=homes.")
    for kind in config["episodes_of"]:
        if kind not in kinds():
            raise UserError(f"episodes_of={kind} is not allowed: there are episodes of {', '.join(kinds())}.")
    need_trimesh()
    return out


def write(folder: Path, out: Path, config: dict[str, Any], given: FromAbove) -> list[str]:
    """Everything into `folder`, which will be called `out`; returns what to say about it."""
    split, count = homes_called(config["split"], config["furniture"]), config["count"]
    layouts = [scene_layout(f"{split}/{index}") for index in range(count)]
    homes = {layout.name: write_home(folder, layout) for layout in layouts}
    write_objects(folder, layouts[0])
    write_robot(folder)
    _write_data_set(folder)
    numbers = {}
    for kind in config["episodes_of"]:
        episodes = list(episodes_of(kind, split, config["episodes"] or count, count, given.scenario_called))
        write_habitat_episodes(folder / "episodes" / split / f"{kind}.json.gz", episodes, homes, str(out / DATA_SET))
        numbers[kind] = len(episodes)
    navmeshes = _write_navmeshes(folder, list(homes.values()))
    write_json(folder / "export.json", {
        "made_by": f"rearrange {given.version}", "format": config["format"], "split": split, "count": count,
        "units": "metres, radians, kilograms, seconds; y up", "episodes": numbers,
        "homes": {home.name: {"home": home.scene, "links": home.links} for home in homes.values()}})
    return ["episodes: " + ", ".join(f"{kind} {number}" for kind, number in numbers.items()), navmeshes]


def write_robot(folder: Path) -> Path:
    """The Fetch and its meshes, below robots/; returns its URDF."""
    return write_articulated(folder / "robots" / NAME, turned(list(fetch_links()), {ROOT}), {ROOT})


def _write_data_set(folder: Path) -> None:
    places = {"stages": "stages", "objects": "objects", "articulated_objects": "articulated/*",
              "scene_instances": "scenes", "light_setups": "lighting"}
    sections = {kind: {"paths": {".json": [place]}} for kind, place in places.items()}
    sections["articulated_objects"]["paths"][".json"].append("robots")
    write_json(folder / DATA_SET, sections | {"navmesh_instances": {}})
    write_json(folder / "lighting" / f"{LIGHTING}.lighting_config.json", {"lights": {
        str(i): {"type": "directional", "position_model": "global", "direction": direction, "color": [1, 1, 1],
                 "intensity": intensity} for i, (direction, intensity) in enumerate(_LIGHTS)}})
    write_json(folder / PHYSICS, PHYSICS_SETTINGS)


def _write_navmeshes(folder: Path, homes: list[HomeFiles]) -> str:
    """Habitat alone can compute them: in a process of its own, which it ends when it finds no device to draw on."""
    if find_spec("habitat_sim") is None:
        return f"no navmeshes: habitat_sim is not installed here; {_LATER}"
    # -P: a file queue.py in the folder where the user stands is not Python's. Ours need not be installed.
    names, paths = [home.name for home in homes], [str(Path(__file__).resolve().parents[3])]
    env = os.environ | {"PYTHONPATH": os.pathsep.join([*paths, *filter(None, [os.environ.get("PYTHONPATH")])])}
    command = [sys.executable, "-P", "-m", "rearrange.habitat.export.navmeshes", str(folder), *names]
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    if done.returncode:
        shutil.rmtree(folder / "navmeshes", ignore_errors=True)
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        return f"no navmeshes: habitat_sim could not compute them ({last}); {_LATER}"
    return f"navmeshes: {len(homes)}"


def size_mb(folder: Path) -> float:
    """Of all files below."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6
