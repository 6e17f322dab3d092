"""Messages in the layout of the BEHAVIOR challenge of 2026 (github.com/StanfordVL/BEHAVIOR-1K, omnigibson.eval).

An observation is flat: `<robot>::proprio`, all vectors one after another, here in the order of their names;
`<robot>::<robot>:<camera>:Camera:0::depth_linear` in metres, (H, W) float32; `...::rgb`, (H, W, 4) uint8; `task_id`. A
map {"reset": true} of its own begins an episode and has no answer. `__action_chunk_size__` asks for so many actions;
the answer has `action` and, where it was asked for, `action_chunk` (actions, numbers), which begins with `action`.
Everything may have a leading side of 1, which the answer has then, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np

from eval.remote.wire import BadMessage
from rearrange.home.robot.robot import RANGE_M

CHUNK_SIZE, CHUNK, RESET = "__action_chunk_size__", "action_chunk", {"reset": True}
_ROBOT, _PROPRIO = "fetch", "::proprio"
_CAMERAS = {"depth": ("head_camera", "depth_linear"), "rgb": ("head_camera", "rgb"),
            "arm_depth": ("gripper_camera", "depth_linear"), "arm_rgb": ("gripper_camera", "rgb")}
"""Observation -> camera, and what it shows. Depth is 0 to 1 here, and metres there."""


def is_observation(message: Any) -> bool:
    """Whether a message is an observation in this layout."""
    return isinstance(message, dict) and any(isinstance(key, str) and key.endswith(_PROPRIO) for key in message)


def message_of(observation: Mapping[str, Any], task_id: int) -> dict[str, Any]:
    """An observation of ours in this layout; texts and numbers of things have no place there."""
    vectors = [np.asarray(value, np.float32) for _, value in sorted(observation.items()) if _is_vector(value)]
    message: dict[str, Any] = {_ROBOT + _PROPRIO: np.concatenate(vectors) if vectors else np.zeros(0, np.float32),
                               "task_id": np.array([task_id], np.int64)}
    for name in _CAMERAS.keys() & observation.keys():
        image = np.asarray(observation[name])
        if name.endswith("depth"):
            image = image[:, :, 0] * np.float32(RANGE_M)
        else:
            image = np.concatenate([image, np.full((*image.shape[:2], 1), 255, np.uint8)], axis=2)
        message[_key(name)] = image
    return message


def observation_of(message: Mapping[Any, Any], spaces: Mapping[str, gymnasium.spaces.Box],
                   range_m: float = RANGE_M) -> dict[str, np.ndarray]:
    """The observations that a policy needs, from a message in this layout. BadMessage where one is not in it.

    spaces: of these observations, by name. range_m: the depth that the policy sees as 1.
    """
    vectors = sorted(name for name, space in spaces.items() if len(space.shape) == 1)
    (key,) = [key for key in message if isinstance(key, str) and key.endswith(_PROPRIO)][:1]
    numbers, sizes = _single(key, message[key], 1), [spaces[name].shape[0] for name in vectors]
    if len(numbers) != sum(sizes):
        told = ", ".join(f"{name} {size}" for name, size in zip(vectors, sizes))
        raise BadMessage(f"{key} has {len(numbers)} numbers, not {sum(sizes)}: {told}")
    found = dict(zip(vectors, np.split(numbers, np.cumsum(sizes)[:-1])))
    for name in spaces.keys() - found.keys():
        camera, shows = _CAMERAS.get(name, ("", ""))
        ending = f":{camera}:Camera:0::{shows}"
        key = next((key for key in message if isinstance(key, str) and key.endswith(ending)), None)
        if not camera or key is None:
            raise BadMessage(f"{name} is missing: an image <robot>::<robot>{ending}" if camera else
                             f"{name}, which this policy needs, has no place in BEHAVIOR's layout")
        image = _single(key, message[key], 2 if shows == "depth_linear" else 3)
        found[name] = (np.minimum(image[:, :, None] / np.float32(range_m), 1.0) if shows == "depth_linear" else
                       image[:, :, :3])
    return found


def answer_of(actions: np.ndarray, message: Mapping[Any, Any]) -> dict[str, np.ndarray]:
    """The answer to a message: actions (n, numbers), all of them where a chunk was asked for."""
    proprio = next(value for key, value in message.items() if isinstance(key, str) and key.endswith(_PROPRIO))
    chunk = actions[None] if np.ndim(proprio) == 2 else actions
    answer = {"action": np.ascontiguousarray(chunk[..., 0, :])}
    return answer | ({CHUNK: chunk} if CHUNK_SIZE in message else {})


def actions_of(answer: Mapping[Any, Any], asked: int | None) -> Any:
    """The actions of an answer, (n, numbers) or (numbers,); None where it has none, or a chunk that does not fit."""
    action, chunk = answer.get("action"), answer.get(CHUNK)
    if not isinstance(action, np.ndarray) or asked is None or chunk is None:
        return action[0] if isinstance(action, np.ndarray) and action.ndim == 2 and len(action) == 1 else action
    if not isinstance(chunk, np.ndarray) or chunk.shape != (*action.shape[:-1], asked, action.shape[-1]):
        return None
    chunk, action = chunk.reshape(-1, action.shape[-1]), action.reshape(-1)
    return chunk if len(chunk) == asked and np.array_equal(chunk[0], action) else None


def _key(name: str) -> str:
    camera, shows = _CAMERAS[name]
    return f"{_ROBOT}::{_ROBOT}:{camera}:Camera:0::{shows}"


def _is_vector(value: Any) -> bool:
    return not isinstance(value, str) and np.ndim(value) == 1


def _single(key: str, value: Any, sides: int) -> np.ndarray:
    """An array of so many sides, without a leading one of length 1. BadMessage for anything else."""
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "biuf":
        raise BadMessage(f"{key} is no array of numbers")
    if value.ndim == sides + 1 and len(value) == 1:
        value = value[0]
    if value.ndim != sides:
        raise BadMessage(f"{key} has shape {value.shape}: one robot at a time, an array of {sides} sides")
    return value
