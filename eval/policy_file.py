"""`rearrange export`: which policy, where to, and what the file says about its inputs and outputs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eval.policy_choice import asked_for, table
from eval.trained_policy import of_what, training_of
from rearrange.command_line.composition.options import ExportOptions
from rearrange.home.action_layout import ACTION_PARTS, action_meanings, action_names
from rearrange.home.errors import UserError
from rearrange.home.files import may_be_written
from rearrange.home.robot import robot_of
from rearrange.home.settings.installed_parts import is_importable
from rearrange.home.settings.own_networks import of_checkpoint
from rearrange.home.simulation.observations import OBSERVATIONS
from rearrange.navigation.agent import ACTIONS
from rearrange.navigation.env import OBSERVED
from rearrange.navigation.settings import CYLINDER, default_actions
from trainer.checkpoint import CheckpointError, load_policy
from trainer.export import FORMATS, export

DEPTH = "depth image of the {camera} camera (height, width, 1): 0 .. 1 over {far:g} m"
SEEN = {"rgb": "colours of the head camera (height, width, 3): 0 .. 255",
        "arm_depth": DEPTH.format(camera="arm", far=10),
        "arm_rgb": "colours of the arm's camera (height, width, 3): 0 .. 255",
        "segmentation": "which thing each pixel of the head camera shows (height, width, 1)"}


def write(options: ExportOptions) -> str:
    """Write the policy; returns what is told about it. UserError for what cannot be had, or not be written."""
    out = _checked(Path(options.out or f"policy{FORMATS[options.format]}"))
    choice, content = asked_for("export", options)
    meta = training_of(content)
    try:
        policy = load_policy(content, of_checkpoint(content, options.network))
        export(policy, out, options.format, options.batch, meanings(meta), {"policy": of_what(meta)})
    except (CheckpointError, ValueError) as error:
        raise UserError(str(error)) from error
    except ImportError as error:
        raise UserError(f"format=onnx needs the package {error.name}: pip install 'rearrange[onnx]'.") from error
    except OSError as error:
        raise UserError(f"out={out} cannot be written: {error.strerror or error}.") from error
    return "\n".join([*table([choice]), f"{out}: one step of the policy of {of_what(meta)}."])


def meanings(meta: Mapping[str, Any]) -> dict[str, str]:
    """What observations and actions of one of our tasks mean, with units, by name; nothing of other environments.

    meta: what `training_of` says of the policy."""
    env = meta.get("env", {})
    if meta.get("nav"):
        actions = env.get("actions") or default_actions(env.get("agent", CYLINDER))
        commands = ("forward speed, left turn rate: 1 is the fastest" if actions == "velocity" else
                    f"a number: {', '.join(f'{number} {name}' for number, name in enumerate(ACTIONS))}")
        return SEEN | OBSERVED | {"depth": DEPTH.format(camera="level", far=env["far_m"]), "action": commands}
    if not meta.get("skill"):
        return {}
    parts = [part for part in ACTION_PARTS if part in env["action_parts"]]
    if is_importable(str(env.get("robot"))):  # which a file alone does not have imported
        return SEEN | {"action": f"{', '.join(parts)} of the robot {env['robot']}"}
    robot = robot_of(env)
    names, means = action_names(robot), action_meanings(robot, env["base_speed_m_s"], env["base_turn_rad_s"])
    numbers = ", ".join(name for part in parts for name in names[part])
    return SEEN | {name: text for name, (_, _, text) in OBSERVATIONS.items()} | {
        "depth": DEPTH.format(camera="head", far=10),
        "action": "; ".join([numbers, *(f"{part}: {means[part]}" for part in parts)])}


def _checked(out: Path) -> Path:
    """The file to write. UserError where it cannot be, or is something else."""
    if not out.parent.is_dir() or out.is_dir() or not may_be_written(out):
        why = ("it is a folder" if out.is_dir() else "its folder is not there" if not out.parent.is_dir()
               else "it is a pipe or a device")
        raise UserError(f"out={out} cannot be written: {why}.")
    if out.exists() and out.suffix not in FORMATS.values():
        raise UserError(f"out={out} exists, and by its name it is no policy that was exported "
                        f"({', '.join(FORMATS.values())}): choose another.")
    return out
