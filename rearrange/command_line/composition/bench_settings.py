"""Settings of the benchmarks, a dataclass for each, whose first line says what it measures. Light: `--help` reads
them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib import import_module

from rearrange.home.settings.environment import HomeSettings
from rearrange.home.settings.setting_fields import like, setting
from rearrange.navigation.settings import NavigationConfig
from skills import SKILLS

GYM_TASKS = ("half_cheetah", "hopper", "walker2d", "double_pendulum", "reacher", "pendulum", "cartpole", "acrobot",
             "cartpole_seen", "recall", "cartpole_without_speeds")


@dataclass(frozen=True)
class Measurement:
    """What every measurement is told beside its own settings: the seed, and the simulator where it takes one."""

    seed: int = 0
    sim: HomeSettings = HomeSettings()


@dataclass(frozen=True)
class Gym(Measurement):
    """The engine with its defaults beside Stable-Baselines3 on standard tasks: return per step of experience, and its
    cost."""

    tasks: tuple[str, ...] = setting(
        GYM_TASKS, "MuJoCo's locomotion, classic control, CartPole as an image, and two that need memory",
        choices=GYM_TASKS)
    trainers: tuple[str, ...] = setting(
        ("ours", "sb3", "cleanrl", "recurrent"), "the engine; SB3's PPO with its defaults; the same with CleanRL's "
                                                 "settings; RecurrentPPO, for what needs memory",
        choices=("ours", "sb3", "cleanrl", "recurrent"))
    steps: int | None = setting(
        None, "environment steps per run; null = 50,000 to 1,000,000, by task", above=0, at_most=10**12)
    seeds: int = setting(5, "runs of each trainer on each task", above=0, at_most=1000)
    runs: str | None = setting(
        None, "file of finished runs: those in it are not run again, new ones are added; null = runs.jsonl of this "
              "measurement", path=True)


@dataclass(frozen=True)
class Navigation(Measurement):
    """Environment steps of PointNav per second on one core, resets included."""

    size: str = like(NavigationConfig, "size")
    depth_size: int = setting(64, "pixels on a side of the depth image; 0 = no image", at_least=0, at_most=1024)
    seconds: float = setting(10.0, "measuring time", above=0)


@dataclass(frozen=True)
class Sim(Measurement):
    """Environment steps per second on one core, with the time of physics, images and the rest; and with each kind of
    image alone."""

    skill: str = setting("pick", "task that is stepped", choices=("pick",))
    depth_size: int = setting(128, "pixels on a side of the depth image; 0 = no image", at_least=0, at_most=1024)
    seconds: float = setting(10.0, "measuring time", above=0)


@dataclass(frozen=True)
class Train(Measurement):
    """Processor time per step of a training, of all its processes, by part; beside another version of this program."""

    skill: str = setting("pick", "what is trained", choices=tuple(SKILLS))
    policy: str = setting("blind", "network", choices=("blind", "light"))
    steps: int = setting(150_000, "environment steps per run", above=0, at_most=10**9)
    warm_up_steps: int = setting(30_000, "of each run, that do not count", at_least=0)
    repeats: int = setting(3, "runs of each version, in turn", above=0, at_most=1000)
    against: str | None = setting(None, "folder of another version: git worktree add <folder> <commit>", path=True)
    split: bool = setting(True, "one more run of this version says which part takes how much")
    words: tuple[str, ...] = setting(
        (), "more words for both versions' rearrange train, each in quotes: [\"trainer.num_envs=64\"]")


BENCHMARKS: dict[str, type[Measurement]] = {"gym": Gym, "navigation": Navigation, "sim": Sim, "train": Train}
MODULES = {name: f"eval.bench.{name}" for name in BENCHMARKS}
IN_THE_REPOSITORY = ("batched", "engine", "habitat", "modes", "population", "scaling", "transfer", "update")
"""Those of `benchmarks/`."""
NOTES: dict[str, list[str]] = {}
"""Lines that the help of a benchmark ends with. `benchmarks/`, which stands beside the package, adds its own to these
dictionaries."""
ADDED = "REARRANGE_BENCHMARKS"  # set for the processes of a measurement in `benchmarks/`, which know all of these
if os.environ.get(ADDED):
    import_module("benchmarks").add()
