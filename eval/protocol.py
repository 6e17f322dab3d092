"""Names of protocols: the rules by which episodes of a skill or navigation task begin and count."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from functools import lru_cache
from typing import Any

from eval.task_from_settings import group_of, json_safe
from rearrange.home.settings.environment import HOME_SETTINGS, NAVIGATION, WHERE, HomeSettings, renewed
from rearrange.navigation import settings as navigation
from skills import OF_TRAINING, config_class

HAB_START = "HAB's start"
_WIDE = {"start_yaw_noise_rad": 0.25}
_NAMED: dict[tuple[str, ...], dict[str, dict[str, Any]]] = {  # settings that differ from HAB's, by name
    ("pick", "place"): {"any start": {"any_start": True, "start_position_noise_m": 0.15, **_WIDE}},
    ("navigate",): {"HAB's pose": {"stop_within_m": 2.0}, "any place": {"any_start": True, "stop_within_m": 2.0}},
    ("open_cabinet", "close_cabinet"): {"wide start": {"start_distance_m": [0.6, 1.2], "start_aside_m": 0.3, **_WIDE}},
    ("open_fridge", "close_fridge"): {
        "wide start": {"start_distance_m": [0.75, 1.4], "start_aside_m": 0.35, **_WIDE}},
}
_OF_HAB = {  # where no setting is another
    "navigate": "HAB's pose", **dict.fromkeys(NAVIGATION, "Habitat's rule"),
    **dict.fromkeys(("pick", "place", "open_cabinet", "close_cabinet", "open_fridge", "close_fridge"), HAB_START)}
_BY_ITSELF = ("actions", "max_steps")  # of navigation tasks: null stands for what the agent has
_OF_THE_AGENT = (  # settings of what it sees and commands, of how it learns, and of what is recorded: the same task
    "action_parts", "observation_keys", "reward_scales", "max_force_step_n", "placed_radius_m", "angle_reward_within_m",
    "rewarded_share", "to_handle", "action_repeat", "egomotion", "segmentation", "split", "depth_size", "render_mode",
    "gpu_device", "observations", "camera_size", "episodes_share", "mix")

_SEEN_AND_DONE = ("action_parts", "observation_keys", "to_handle", "action_repeat", "egomotion", "segmentation",
                  "observations", "camera_size")
"""Of those: what an agent from outside has to be shown and may command."""


def protocol(task: str, env: Mapping[str, Any]) -> str:
    """The protocol of an environment's settings, as in `any start, sim.base_speed_m_s=2.5`. Equal names mean equal
    protocols."""
    usual, given = _usual(task), _given(env)
    named = next((found for tasks, found in _NAMED.items() if task in tasks), {})
    starts = {_OF_HAB.get(task, "as it comes"): {}, **named}
    differing = {name: _differing(given, usual | changed) for name, changed in starts.items()}
    name = min(differing, key=lambda each: len(differing[each]))
    if given.get("episodes") is not None:  # which says where it begins, at least where it is one of states of plans
        return ", ".join(_typed(task, given,
                                ["episodes", *(key for key in _differing(given, usual) if key != "episodes")]))
    return ", ".join([name, *_typed(task, given, differing[name])])


def words(task: str, env: Mapping[str, Any]) -> list[str]:
    """The words by which an evaluation is like an environment with these settings: where its episodes begin, and what
    its agent sees and commands."""
    given = {key: value for key, value in renewed(json_safe(dict(env))).items()
             if key in _SEEN_AND_DONE or key in _given(env) and key not in WHERE}
    return _typed(task, given, _differing(given, _usual(task)))


def typed(task: str, settings: Mapping[str, Any]) -> list[str]:
    """Settings of a task's environment as they are typed."""
    return _typed(task, settings, [*settings])


def _given(env: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in renewed(json_safe(dict(env))).items()
            if key not in (*_OF_THE_AGENT, *OF_TRAINING)}


def hab_settings(task: str) -> dict[str, Any]:
    """What HAB's protocol sets, of the settings in which the protocols of a task differ."""
    named = next((found for tasks, found in _NAMED.items() if task in tasks), {})
    return {key: _usual(task)[key] for changed in named.values() for key in changed} | named.get(_OF_HAB[task], {})


@lru_cache(maxsize=16)
def _usual(task: str) -> dict[str, Any]:
    """Defaults of the settings of a task and of homes."""
    made = config_class(task)() if group_of(task) == "skill" else navigation.CONFIGS[task]().resolved()
    found: dict[str, Any] = {name: getattr(HomeSettings, name) for name in HOME_SETTINGS}
    return json_safe(found | {each.name: getattr(made, each.name) for each in fields(made)})


def _differing(given: Mapping[str, Any], usual: Mapping[str, Any]) -> list[str]:
    return [key for key, value in given.items() if key in usual and value != usual[key]
            and (value is not None or key not in _BY_ITSELF)]


def _typed(task: str, given: Mapping[str, Any], keys: list[str]) -> list[str]:
    own = {each.name for each in fields(config_class(task) if group_of(task) == "skill" else navigation.CONFIGS[task])}
    words = []
    for key in keys:
        value = given[key]
        text = f"[{','.join(map(_word, value))}]" if isinstance(value, list) else _word(value)
        group = f"{group_of(task)}." if key in own else "sim."
        words.append(f"sim={text}" if key == "sim" else f"{group}{key}={text}")
    return words


def _word(value: Any) -> str:
    """A value as it is typed."""
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
