"""What `rearrange train` trains: a skill, a navigation task, or one policy for a whole scenario.

The engine gets a function that makes environments, and knows none of the three.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rearrange import navigation
from rearrange.home.errors import UserError
from rearrange.home.settings.environment import NAVIGATION, RANDOM, SEEING, HomeSettings
from rearrange.home.settings.setting_fields import plain_of
from rearrange.navigation.settings import default_actions
from skills import OF_TRAINING

if TYPE_CHECKING:
    import gymnasium

    from planner.scenarios import ScenarioConfig
    from rearrange.command_line.composition.options import Options, TrainOptions

_DEFAULTS = (("episodes_share", 1.0), ("mix", 1.0))  # of `sim` that checkpoints do not say
_MANY = 50  # episodes of a file, from which on loading them shows its progress


@dataclass(frozen=True)
class Task:
    """What is trained. env: settings of its environment. scenario: None for a skill or navigation task."""

    name: str
    env: dict[str, Any]
    image_size: int
    scenario: ScenarioConfig | None = None
    initial: dict[str, Any] | None = None  # initial_mean and initial_std by part of the action
    word: str = ""  # that chooses it on a command line
    advised: bool = False  # observations also say what an expert would do

    def make(self) -> gymnasium.Env:
        """One environment; called in worker processes."""
        if self.scenario is None:
            return make_env(self.name, **self.env, **({"expert_action": True} if self.advised else {}))
        from planner.scenario_env import ScenarioEnv

        home = {name: value for name, value in self.env.items() if name != "reward_scales"}
        return ScenarioEnv(self.scenario, HomeSettings(**home), self.env["reward_scales"])

    def meta(self) -> dict[str, Any]:
        """What a checkpoint says about how its policy was trained."""
        of = {group_of(self.name): self.name} if self.scenario is None else {"scenario": self.name}
        return of | {"env": json_safe(self.env), "image_size": self.image_size}


def held_out(task: Task, split: str, films: bool = False) -> Task:
    """The same task in apartments of another split, without experts, listed episodes and random looks.

    films: its environments draw pictures.
    """
    env = {key: value for key, value in task.env.items()
           if key not in ("episodes", "episodes_share", "num_layouts", *RANDOM)}
    return dataclasses.replace(task, env=env | {"split": split} | ({"render_mode": "rgb_array"} if films else {}),
                               advised=False)


def make_env(name: str, **settings: Any) -> gymnasium.Env:
    """An environment of a skill or navigation task."""
    if name in NAVIGATION:
        return navigation.make_env(name, **settings)
    import skills

    return skills.make_env(name, **settings)


def group_of(name: str) -> str:
    """The word that chooses a task: `nav` for navigation tasks, else `skill`."""
    return "nav" if name in NAVIGATION else "skill"


def load_listed(env: gymnasium.Env, count: int, first: int = 0, silent: bool = False) -> Iterator[None]:
    """Load `count` episodes of an environment's episode file, at least one, before anything starts. UserError.

    silent: without a progress line.
    """
    from trainer.logs.progress import Progress

    count = max(1, min(count, env.listed))
    with Progress(count, "reading episodes",
                  unit="episodes") if count >= _MANY and not silent else nullcontext() as progress:
        for index in range(count):
            env.reset(seed=0, options={"episode": first + index})
            if progress:
                progress.update(index + 1, {})
            yield


def sim_settings(chosen: HomeSettings) -> dict[str, Any]:
    """The group `sim` as settings of an environment; what has its default is left out."""
    every = {"sim": chosen.sim} | plain_of(chosen)
    return {k: v for k, v in every.items() if v is not None and (k, v) not in _DEFAULTS}


def skill_task(options: Options, split: str, image_size: int) -> Task:
    """The skill of a command."""
    name, skill = options.choices["skill"], plain_of(options.skill)
    env = {key: value for key, value in skill.items() if key not in OF_TRAINING} | sim_settings(options.sim)
    return Task(name, env | {"split": split, "depth_size": image_size}, image_size, initial=skill, word=f"skill={name}")


def navigation_task(options: Options, split: str, image_size: int) -> Task:
    """The navigation task of a command."""
    name = options.choices["nav"]
    sim = {k: v for k, v in sim_settings(options.sim).items() if k in ("sim", "gpu_device") or k in SEEING}
    env = plain_of(options.nav) | sim | {"split": split, "depth_size": image_size}
    return Task(name, env, image_size, word=f"nav={name}")


def training_task(options: TrainOptions) -> Task:
    """What `rearrange train` trains."""
    image_size, advised = options.policy.image_size, bool(options.ppo.imitation_coef)
    if "instruction" in (seen := options.sim.observations or ()):
        raise UserError(f"sim.observations=[{','.join(seen)}] has a text, and the networks that are trained here read "
                        "none: leave out instruction. It is in info at every reset.")
    if options.hab is None:
        made = (navigation_task if options.nav else skill_task)(options, options.split, image_size)
        return dataclasses.replace(made, advised=advised)
    scenario, whole = options.hab, options.whole_task
    if whole.max_steps is not None:
        scenario = dataclasses.replace(scenario, max_steps=whole.max_steps)
    env = sim_settings(options.sim) | {"split": options.split, "depth_size": image_size,
                                       "reward_scales": whole.reward_scales}
    word = next((word for word in options.words if word.startswith("hab=")), f"hab={scenario.name}")
    return Task(scenario.name, env, image_size, scenario, initial=plain_of(whole), word=word)


def trained_settings(file: Path, meta: dict[str, Any], skill: str) -> dict[str, Any]:
    """The environment settings that the policy in `file` was trained with. UserError for settings that cannot be.

    meta: what the checkpoint says of itself.
    """
    import skills

    try:
        if skill not in NAVIGATION:
            return skills.checked_settings(skill, meta.get("env", {}))
        found = navigation.checked_settings(skill, meta.get("env", {}))
        # What null meant in training: another agent acts as the policy learned to.
        return found | {"actions": found.get("actions") or default_actions(found.get("agent", "cylinder"))}
    except UserError as error:
        raise UserError(f"{file} is damaged: in meta.env, {error}") from error


def json_safe(value: Any) -> Any:
    """Settings as JSON holds them: tuples as lists, paths as text."""
    if isinstance(value, dict):
        return {k: json_safe(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_safe(v) for v in value]
    return value if value is None or isinstance(value, (str, int, float, bool)) else str(value)
