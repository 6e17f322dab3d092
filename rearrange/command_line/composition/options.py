"""All settings of all commands: which dataclasses they stand in, and which groups of choices there are.

A command has settings of its own, a dataclass here, and groups: `skill=pick` brings the settings of the dataclass
PickConfig. What a choice changes beside that is in configs/<group>/<choice>.yaml. The dataclasses stand beside the
code that they are for, in files that import little, so that `--help` is quick. """

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, TypeVar

from planner.rules import Rules
from planner.scenario_settings import ScenarioSettings, WholeTaskSettings
from rearrange import navigation
from rearrange.command_line.composition import bench_settings as bench
from rearrange.home.robot import DEFAULT
from rearrange.home.settings import installed_parts, presets
from rearrange.home.settings.environment import (
    FURNITURE,
    NAVIGATION,
    NAVIGATION_AGENTS,
    SETTINGS_OF,
    SIMULATORS,
    SPLITS,
    HomeSettings,
    MujocoSettings,
)
from rearrange.home.settings.presets import has_nvidia_device
from rearrange.home.settings.remote import HOST, MOST_ACTIONS, PORT, RemoteSettings
from rearrange.home.settings.setting_fields import Key, Rule, block, keys_of, like, made_of, setting
from skills import SKILLS, config_class
from skills import names as skill_names
from skills import title as skill_title
from trainer.config import MAX_STEPS, CollectConfig, PolicyConfig, PPOConfig, TrainConfig
from trainer.setting_rules import leaves, nested

if TYPE_CHECKING:
    from planner.scenarios import ScenarioConfig
    from rearrange.navigation.settings import NavigationConfig
    from skills.settings import SkillConfig

MANY = 1_000_000
_Options = TypeVar("_Options", bound="Options")
AGENTS = ("policy", "pretrained", "expert", "random", "zero", "pointnav", "tp_srl", "tp_srl_nonav", "monolithic",
          "tp_spa", "remote", *NAVIGATION_AGENTS)
RECORD_FORMATS = {"lerobot": "eval.recording.lerobot:LeRobotFiles", "minari": "eval.recording.minari:MinariFiles"}
"""Of data sets of demonstrations: what writes and reads them."""
SOURCES = ("pretrained", "newest", "expert", "random")  # of the skill of a plan


_ALONE = (" alone; pointnav: the policy of nav=pointnav that comes with the package; also the path of a checkpoint "
          "or run, ws://host:port of a policy server, or package.module:Name")


def _sources(skill: str) -> tuple[str, ...]:
    """Words for what runs a skill of a plan; Navigate also by the policy of nav=pointnav that comes with the
    package."""
    return (*SOURCES, "pointnav") if skill == "navigate" else SOURCES


# ------------------------------------------------------------------ commands

@dataclass(frozen=True, kw_only=True)
class Options:
    """What a command receives beside settings of its own: what was typed, and the settings of what it chose."""

    words: tuple[str, ...] = ()
    choices: Mapping[str, str] = field(default_factory=dict)  # group -> choice
    written: Mapping[str, Any] = field(default_factory=dict)  # all settings as config.yaml has them, for files
    skill: SkillConfig | None = None
    nav: NavigationConfig | None = None
    hab: ScenarioConfig | None = None
    sim: HomeSettings = HomeSettings()

    def typed(self, group: str) -> set[str]:
        """The settings of a group that were typed, without the name of the group."""
        keys = (word.lstrip("+").partition("=")[0] for word in self.words)
        return {key.removeprefix(f"{group}.") for key in keys if key.startswith(f"{group}.")}


@dataclass(frozen=True)
class HomePolicy(PolicyConfig):
    """Network of a policy in a home: where the engine's defaults were measured there, and differ."""

    hidden_size: int = like(PolicyConfig, "hidden_size", 128)
    lstm_layers: int = like(PolicyConfig, "lstm_layers", 1)
    body_size: int = like(PolicyConfig, "body_size", 256)
    learn_precision: str = like(PolicyConfig, "learn_precision", "auto")


@dataclass(frozen=True)
class HomePPO(PPOConfig):
    """PPO in a home: what learns fastest on a small budget of steps and a CPU."""

    epochs: int = like(PPOConfig, "epochs", 3)
    mini_batches: int = like(PPOConfig, "mini_batches", 4)
    learning_rate: float = like(PPOConfig, "learning_rate", 7e-4)
    schedule: str = like(PPOConfig, "schedule", "cosine")
    reward_scale: float = like(PPOConfig, "reward_scale", 0.1)


@dataclass(frozen=True)
class HomeCollect(CollectConfig):
    """Collection in homes."""

    num_envs: int = like(CollectConfig, "num_envs", 32)
    rollout_steps: int = like(CollectConfig, "rollout_steps", 128)


@dataclass(frozen=True)
class PolicyOptions(HomePolicy):
    """What the group `policy` says to the engine and, the size of the image, to the environment."""

    image_size: int = setting(0, "pixels on a side of the depth image; 0 = no image", at_least=0, at_most=1024)
    network: str | None = None  # package.module:Name, where it is one of somebody else


@dataclass(frozen=True)
class FilesOptions:
    """CSV, JSON lines and TensorBoard files in the run directory; no network."""

    progress: bool = setting(True, "false prints plain lines instead of the live line")
    wandb: None = setting(None, "Weights & Biases is off; logger=wandb turns it on")


@dataclass(frozen=True)
class WandbAccount:
    """Where Weights & Biases keeps a run."""

    mode: str = setting(
        "offline", "offline needs no account and no network; `wandb sync` uploads later", choices=("offline", "online"))
    project: str = setting("rearrange", "project")
    entity: str | None = setting(None, "user or team; null = your default")
    group: str | None = setting(None, "group of runs")


@dataclass(frozen=True)
class WandbOptions:
    """The files, and Weights & Biases: offline unless mode=online."""

    progress: bool = like(FilesOptions, "progress")
    wandb: WandbAccount = field(default_factory=WandbAccount)


@dataclass(frozen=True)
class TrainOptions(TrainConfig, Options):
    """Train a skill, a navigation task, or one policy for a whole scenario, with reinforcement learning or from
    demonstrations."""

    # the settings of TrainConfig in groups are policy=, ppo= and trainer=
    SHOWN = ("steps", "checkpoint", "transfer", "demos", "demos_episodes", "demos_steps", "seed", "split", "device",
             "deterministic", "torch_threads", "checkpoint_every_s", "keep_every", "stop_within_s", "log_every_s",
             "eval_every", "eval_episodes", "eval_split", "eval_film", "stop_at", "episode_window", "whole_task",
             "name", "output", "resume", "requeue")
    policy: PolicyOptions = field(default_factory=PolicyOptions)
    ppo: HomePPO = field(default_factory=HomePPO)
    collect: HomeCollect = field(default_factory=HomeCollect)
    logger: FilesOptions | WandbOptions = FilesOptions()
    steps: int = like(TrainConfig, "steps", 5_000_000)
    checkpoint: str | None = setting(
        None, "policy to begin with: a checkpoint, a run, or pretrained; null = a new one", path=True)
    transfer: str | None = setting(
        None, "the task that checkpoint= is of: begin with the parts of its network that fit, such as what looks at "
              "the same images, and say which", choices=(*SKILLS, *NAVIGATION))
    demos: str | None = setting(
        None,
        "folder of a recording (rearrange record): the policy is not trained in homes, but learns to do what it shows",
        path=True)
    demos_episodes: int | None = setting(None, "of these, the first so many; null = all", above=0, at_most=MANY)
    demos_steps: int | None = setting(
        None, "so many of the steps are learned from demos=, and the rest in homes, with PPO; null = all", above=0,
        at_most=MAX_STEPS)
    split: str = like(
        HomeSettings, "split", text="apartments to train in; layout families never overlap between splits")
    eval_split: str = like(HomeSettings, "split", "val", "apartments of these evaluations, which training does not see")
    eval_film: bool = like(
        TrainConfig, "eval_film", text="a short film of the first episode of each goes to TensorBoard and W&B")
    whole_task: WholeTaskSettings = field(default_factory=WholeTaskSettings)
    name: str | None = setting(None, "directory of the run; null = date and time")
    output: str = setting("outputs", "where runs are kept: <output>/train/<skill>/<name>/", path=True)
    resume: bool | str = setting(
        False, "true continues the named run, or the newest; force also with changed settings; auto continues the "
               "named run if there is one, else begins it, and is the default where SLURM or torchrun has started the "
               "command again", choices=("force", "auto"))
    requeue: bool = setting(
        False, "when SLURM warns of the end of its job (#SBATCH --signal=USR1@120): save, and ask it to start the "
               "job again")


@dataclass(frozen=True)
class EvalOptions(Options):
    """Evaluate a trained skill or navigation task, a whole scenario, or a baseline, on apartments that training has
    never seen."""

    checkpoint: str | None = setting(
        None, "of a skill, or of agent=monolithic: the policy that comes with the package; that of the newest "
              "finished training run (experiment=debug does not count), or the package's where there is none; a file "
              "or run directory; null = newest", choices=("pretrained", "newest"), path=True)
    network: str | None = setting(
        None,
        "package.module:Name, of checkpoints of a network of your own; null = none, or one of an installed package")
    agent: str | None = setting(
        None, "who acts: the checkpoint; the policies that come with the package; a scripted controller that sees "
              "everything; uniform random actions; no movement; a policy server, of url=; or an agent of your own "
              "(docs/remote.md); of a scenario also the plan with trained skills (tp_srl), the same without "
              "navigation, one policy for everything (monolithic), or classical planning on the depth image (tp_spa); "
              "of a navigation task also forward, goal_follower, map (a map from depth and the shortest way through "
              "it) and oracle (which knows the home); null = policy of a skill, tp_srl of a scenario", choices=AGENTS,
        also=("importable",))
    url: str | None = setting(None, "of agent=remote: where the policy server is", also=("url",))
    remote: RemoteSettings = field(default_factory=RemoteSettings)
    episodes: int = setting(100, "how many", above=0, at_most=MANY)
    video: int | None = setting(
        None, "record so many episodes as mp4: of a skill the first ones; of a scenario the first success, the first "
              "failure, the longest; null = 0 of a skill, 3 of a scenario", at_least=0, at_most=MANY)
    video_speed: float | None = setting(
        None,
        "how fast videos are; 1 = as fast as the robot; null = 0.5 of a skill, 1 of a navigation task, 4 of a scenario",
        at_least=0.1, at_most=1000)
    handoffs: bool = setting(
        False,
        "of a scenario: keep the states in which skills began, as episode files for sim.episodes= of these skills")
    handoff_tries: int | None = setting(
        None, "with handoffs=true: of the tries of a skill at the same thing in an episode the first so many are "
              "kept; null = all", above=0, at_most=MANY)
    substitute: bool = setting(
        False, "of a scenario: afterwards the same episodes with experts, with each skill alone learned, and with all "
               "but one, as a table")
    subtasks: bool = setting(
        False,
        "of a scenario: afterwards each of its manipulations by itself, from the states that experts leave, as a table")
    split: str = like(HomeSettings, "split", "val", "apartments; layout families never overlap between splits")
    seed: int = like(TrainConfig, "seed", text="of episodes and sampling: same seed, same episodes")
    deterministic: bool = setting(False, "true takes the mean action, false samples as in training")
    to_the_end: bool = setting(
        False, "of a skill: episodes go on after their success, up to the time limit, and count success_at_end beside "
               "success_once, as in MS-HAB")
    workers: int | None = setting(None, "processes; null = one per CPU core", above=0, at_most=1024)
    skills: Mapping[str, str | None] = block(
        setting(None, "what runs the skills of a plan: the policies that come with the package; of each the newest "
                "finished training run (experiment=debug does not count), or the package's where there is none; "
                "experts; random actions; null = as agent= says, which is pretrained for trained skills",
                choices=SOURCES),
        **{name: setting(None, f"the same for {name}" + (_ALONE if name == next(iter(SKILLS)) else ""),
                         choices=_sources(name), path=True) for name in skill_names()})
    planner: Rules = field(default_factory=Rules)
    name: str | None = setting(None, "directory of the evaluation; null = date and time")
    output: str = setting("outputs", "where results are kept: <output>/eval/<skill or scenario>/<name>/", path=True)


@dataclass(frozen=True)
class RecordOptions(Options):
    """Record episodes as demonstrations, a data set that imitation learning reads."""

    agent: str = setting(
        "expert", "who shows it: a scripted expert that sees everything; the policies that come with the package; the "
                  "newest trained ones; random actions or none; a checkpoint or run; an agent of your own "
                  "(docs/remote.md)", choices=("expert", "pretrained", "newest", "random", "zero"), path=True,
        also=("importable",))
    out: str | None = setting(None, "folder to write, a new one, or one in which the same command goes on", path=True)
    episodes: int = setting(
        1000, "how many are kept; of a recording that goes on also more than before", above=0, at_most=MANY)
    format: str = setting(
        "lerobot", "LeRobotDataset v3.0 (Parquet, MP4), or a Minari data set (Parquet, images as they are)",
        choices=tuple(RECORD_FORMATS))
    successes_only: bool = setting(True, "false keeps failed episodes too, marked by next.success")
    max_gb: float = setting(10.0, "gigabytes of the folder at most", at_least=0.01, at_most=100_000)
    image_size: int | None = setting(
        None, "pixels on a side of the depth image; 0 = none; null = 128, or as many as the policy sees", at_least=0,
        at_most=1024)
    depth_video: bool = setting(
        False, "of format=lerobot: depth as video of 12 bits, as LeRobot has it from 0.6 on, instead of images of 16")
    split: str = like(HomeSettings, "split", text="apartments; layout families never overlap between splits")
    seed: int = like(TrainConfig, "seed", text="of episodes and sampling: same seed, same episodes")
    deterministic: bool = like(EvalOptions, "deterministic")
    workers: int | None = like(EvalOptions, "workers")
    skills: Mapping[str, str | None] = like(EvalOptions, "skills")
    planner: Rules = field(default_factory=Rules)
    replay: str | None = setting(
        None, "folder of a recording: carry out the actions of its first episodes= again, and compare the states; "
              "records nothing", path=True)
    output: str = setting("outputs", "where runs are looked for", path=True)


@dataclass(frozen=True)
class ViewOptions(Options):
    """Look into a home in the browser: watch who acts in it, or drive the robot and record that as demonstrations."""

    agent: str = setting(
        "expert", "who acts: a scripted expert that sees everything; the policies that come with the package; the "
                  "newest checkpoint of the newest training run, which may still be running; random actions or none; "
                  "you (teleop); a checkpoint, or a run or its name, of which each episode takes the newest "
                  "checkpoint; an agent of your own (docs/remote.md); of nav= a scripted agent, oracle unless typed",
        choices=("expert", "pretrained", "newest", "random", "zero", "teleop", *NAVIGATION_AGENTS), path=True,
        also=("importable",))
    episode: int = setting(
        0, "number of the first episode, as in an evaluation with the same seed", at_least=0, at_most=MANY)
    seed: int = like(TrainConfig, "seed", text="of episodes and sampling: same seed, same episodes")
    split: str = like(HomeSettings, "split", "val", "apartments; layout families never overlap between splits")
    deterministic: bool = like(EvalOptions, "deterministic")
    speed: float = setting(
        1.0, "times the speed of the real robot, at most, as this machine and the agent are fast enough", above=0,
        at_most=100)
    paused: bool = setting(False, "true waits for the button Play")
    out: str | None = setting(
        None, "of agent=teleop: folder in which every skill and scenario has the data set of what was driven, as "
              "`rearrange record` writes it; null = <output>/teleop, and nothing is recorded before the page says so",
        path=True)
    successes_only: bool = like(RecordOptions, "successes_only")
    max_gb: float = like(RecordOptions, "max_gb", text="gigabytes of each of these data sets at most")
    image_size: int | None = like(RecordOptions, "image_size")
    skills: Mapping[str, str | None] = like(EvalOptions, "skills")
    planner: Rules = field(default_factory=Rules)
    host: str = setting(HOST, "address that is listened at; 0.0.0.0 lets other machines look and drive")
    port: int = setting(8080, "of it; 0 = a free one", at_least=0, at_most=65535)
    allowed_hosts: tuple[str, ...] = setting(
        (), "further names, or name:port, under which a browser reaches the page: of this machine, or of a proxy in "
            "front of it")
    output: str = setting("outputs", "where runs are looked for", path=True)


@dataclass(frozen=True)
class ReproduceOptions(Options):
    """From nothing to Figure 6 of the VER paper: train what is missing, evaluate every agent on every scenario, write
    the report."""

    agents: tuple[str, ...] = setting(
        ("tp_srl", "tp_srl_nonav", "expert", "monolithic", "tp_spa", "random"), "who is evaluated: some of these")
    scenarios: tuple[str, ...] = setting(("tidy_house", "prepare_groceries", "set_table"), "what they do")
    protocols: tuple[str, ...] = setting(
        ("paper", "honest", "oracle"), "rules of the plans, choices of planner=: paper for every agent, and the "
                                       "others for tp_srl, as the table of whole tasks")
    policies: tuple[str, ...] | None = setting(
        None, "instead of Figure 6, train these policies by their recipes (skills/recipes) and evaluate them beside "
              "the package's")
    pretrained: bool = setting(
        True, "a policy that comes with the package counts as trained; false = only runs in output= count")
    experiment: str = setting("laptop", "settings of every training, one of configs/experiment")
    steps: int = like(
        TrainConfig, "steps", 5_000_000, "of the training of a skill; finished runs in output= count if they have as "
                                         "many. Of recipes: at most so many a lesson")
    monolithic_steps: int | None = like(
        TrainConfig, "steps", 5_000_000, "of the training of one policy for a whole scenario; null = not trained")
    episodes: int = setting(100, "of every evaluation", above=0, at_most=MANY)
    video: int = setting(3, "recorded of every evaluation", at_least=0, at_most=MANY)
    split: str = like(HomeSettings, "split", "val", "apartments of the evaluations")
    seed: int = like(TrainConfig, "seed", text="of trainings and evaluations")
    note: str | None = setting(None, "stands above the results")
    name: str = setting("reproduce", "what its runs are called; the same name goes on where it stopped")
    output: str = setting(
        "outputs", "where runs are looked for and kept; the results: <output>/reproduce/<name>/", path=True)


@dataclass(frozen=True)
class BenchOptions(Options):
    """Measure speed on this machine."""

    measurement: bench.Measurement = bench.Measurement()
    seed: int = like(TrainConfig, "seed", text="of episodes and actions")
    name: str | None = setting(None, "directory of the result; null = date and time")
    output: str = setting("outputs", "where results are kept: <output>/bench/<what>/<name>/", path=True)


@dataclass(frozen=True)
class ReportOptions(Options):
    """Write one HTML page with plots, videos and episodes of evaluations and training runs."""

    runs: tuple[str, ...] | None = setting(
        None,
        "directories of runs, or directories with runs below; can be written without runs=; null = the newest ones")
    out: str | None = setting(None, "file to write; null = <output>/report.html", path=True)
    title: str | None = setting(None, "heading of the page; null = what was evaluated and trained")
    video_mb: float = setting(100, "megabytes of videos in the page at most; the rest is named instead", at_least=0)
    output: str = setting(
        "outputs", "where runs are kept; without runs= the newest of each skill, scenario and agent are taken",
        path=True)


@dataclass(frozen=True)
class ExportOptions(Options):
    """Write a trained policy as a file that runs without this package: one step of its likeliest action."""

    checkpoint: str | None = like(
        EvalOptions, "checkpoint",
        text="a file or run directory; with skill= or nav=: the policy that comes with the package, or that of the "
             "newest finished training run; null = newest, or the package's where there is none")
    format: str = setting("onnx", "for onnxruntime, or a program of torch.export", choices=("onnx", "torch"))
    network: str | None = like(EvalOptions, "network")
    batch: int = setting(1, "environments that it acts in at once", above=0, at_most=MANY)
    out: str | None = setting(None, "file to write; null = policy.onnx or policy.pt2", path=True)
    output: str = setting("outputs", "where runs are looked for", path=True)


@dataclass(frozen=True)
class ScenesOptions(Options):
    """Write homes, objects, robot and episodes as a data set for another simulator; list, check or view the scenes of
    a data set, measure what homes offer, or write episodes that are drawn in them."""

    action: str = setting("export", "what is done; can be written without action=",
                          choices=("export", "list", "check", "view", "measure", "episodes"))
    dataset: str | None = setting(
        None, "list, check, view, measure, episodes: the *.scene_dataset_config.json of a Habitat scene data set, or a "
              "folder of MuJoCo XML files, or one; measure: several, separated by commas, or null = our homes alone; "
              "list and check also Habitat's episodes of PointNav or ObjectNav, *.json.gz", path=True)
    robot: str = setting(DEFAULT, "check: who acts, a name that rearrange list says or package.module:Name")
    hand: str | None = setting(None, "check: of the robot; null = its usual one, as the suction of the Fetch")
    scenes: str | None = setting(None, "view, measure, episodes: which, names with *, separated by commas; null = all "
                                       "for view and measure, those of the split for episodes")
    format: str = setting("habitat", "the simulator that shall load them", choices=("habitat",))
    split: str = setting("val", "apartments, or scenes of the data set", choices=SPLITS)
    furniture: str = setting(
        "standard", "of the apartments: as in version 0.2, or wide: as varied as the world's", choices=FURNITURE)
    count: int = setting(10, "export: apartments, the first of the split; episodes: how many, the first of hab= or "
                             "skill=", at_least=1, at_most=9999)
    out: str | None = setting(
        None, "export: folder to write, new or empty; view, measure: the PNG file, null = scenes.png or "
              "measures.png; episodes: the file, null = <skill or scenario>.json.gz", path=True)
    episodes_of: tuple[str, ...] = setting(
        ("pick", "place", "navigate", "open_cabinet", "close_cabinet", "open_fridge", "close_fridge", "tidy_house",
         "prepare_groceries", "set_table"), "skills and scenarios whose episodes are written; [] = none")
    episodes: int | None = setting(None, "of each; null = as many as apartments", above=0, at_most=MANY)


@dataclass(frozen=True)
class ServeOptions(Options):
    """Let a policy act for others, over a websocket."""

    checkpoint: str | None = like(ExportOptions, "checkpoint")
    network: str | None = like(EvalOptions, "network")
    deterministic: bool = like(EvalOptions, "deterministic")
    host: str = setting(HOST, "address that is listened at; 0.0.0.0 lets other machines in")
    port: int = setting(PORT, "of it; 0 = a free one", at_least=0, at_most=65535)
    chunk: int = setting(1, "actions of an answer, all of one observation, unless a client asks for another number",
                         above=0, at_most=MOST_ACTIONS)
    output: str = like(ExportOptions, "output")


@dataclass(frozen=True)
class ToolsOptions(Options):
    """Offer the robot's skills in an episode of a scenario as tools that an agent calls, over MCP."""

    agent: str = setting(
        "pretrained", "what runs the skills: the policies that come with the package; of each the newest finished "
                      "training run; scripted experts that see everything; random actions", choices=SOURCES)
    episode: int = like(ViewOptions, "episode", text="its number, as in an evaluation with the same seed")
    seed: int = like(TrainConfig, "seed", text="of episodes and sampling: same seed, same episodes")
    split: str = like(ViewOptions, "split")
    deterministic: bool = like(EvalOptions, "deterministic")
    skills: Mapping[str, str | None] = like(EvalOptions, "skills")
    planner: Rules = field(default_factory=Rules)
    video: int = setting(0, "1 films the episode as mp4", at_least=0, at_most=1)
    video_speed: float | None = like(EvalOptions, "video_speed", text="how fast it is; 1 = as fast as the robot; "
                                                                      "null = 4")
    name: str | None = setting(None, "directory of the run; null = date and time")
    output: str = setting("outputs", "where it is kept: <output>/tools/<scenario>/<name>/", path=True)


@dataclass(frozen=True)
class ListOptions(Options):
    """Show skills, simulators and checkpoints."""

    output: str = setting("outputs", "where runs are kept", path=True)


def _by_device(cpu: str, cuda: str) -> Callable[[], str]:
    return lambda: cuda if has_nvidia_device() else cpu


# Command -> its settings; its groups in the order in which they are composed, each with the choice that is taken unless
# another is typed: None = none, or what gives it.
COMMANDS: dict[str, tuple[type, dict[str, str | Callable[[], str] | None]]] = {
    "train": (TrainOptions,
              {"skill": None, "nav": None, "hab": None, "sim": "mujoco", "policy": _by_device("light", "resnet18"),
               "trainer": "ver", "ppo": _by_device("fast", "paper"), "logger": "tensorboard", "experiment": None}),
    "eval": (EvalOptions, {"skill": None, "nav": None, "hab": None, "planner": "honest", "sim": "mujoco"}),
    "record": (RecordOptions, {"skill": None, "hab": None, "planner": "honest", "sim": "mujoco"}),
    "view": (ViewOptions, {"skill": None, "nav": None, "hab": None, "planner": "honest", "sim": "mujoco"}),
    "reproduce": (ReproduceOptions, {"preset": "laptop"}), "bench": (BenchOptions, {"bench": None, "sim": "mujoco"}),
    "report": (ReportOptions, {}), "export": (ExportOptions, {"skill": None, "nav": None}),
    "scenes": (ScenesOptions, {"skill": None, "hab": None}),
    "serve": (ServeOptions, {"skill": None, "nav": None}),
    "tools": (ToolsOptions, {"hab": None, "planner": "honest", "sim": "mujoco"}), "list": (ListOptions, {})}


# ------------------------------------------------------------------ groups

# Group -> the dataclasses of each choice, where they differ, or of all of them. A group that is not here only changes
# settings.
SETTINGS: dict[str, Mapping[str, type] | tuple[type, ...]] = {
    "nav": navigation.CONFIGS,
    "sim": {name: SETTINGS_OF.get(name, MujocoSettings) for name in SIMULATORS},
    "bench": bench.BENCHMARKS,
    "logger": {"tensorboard": FilesOptions, "wandb": WandbOptions},
    "hab": (ScenarioSettings,),
    "policy": (PolicyOptions,),
    "trainer": (HomeCollect,),
    "ppo": (HomePPO,),
}
# Group -> what installed packages add to its choices.
OFFERED = {"policy": installed_parts.NETWORKS, "skill": installed_parts.SKILLS, "hab": installed_parts.SCENARIOS}
# Group -> the setting that holds the name of the choice, and what that is.
CALLED = {"skill": ("name", "skill"), "nav": ("name", "navigation task"), "hab": ("name", "scenario"),
          "sim": ("name", "simulator"), "bench": ("what", "the benchmark"),
          "trainer": ("mode", "how experience is collected")}


def groups(command: str) -> tuple[str, ...]:
    """The groups of a command."""
    return tuple(COMMANDS[command][1])


def choices(group: str) -> list[str]:
    """The choices of a group, by name; behind ours those of installed packages."""
    listed = ours(group)
    return listed + (sorted(set(OFFERED[group].installed()) - set(listed)) if group in OFFERED else [])


def is_own(group: str, word: str) -> bool:
    """Whether a word may be a network, skill or scenario of somebody else."""
    return group in OFFERED and word not in ours(group) and OFFERED[group].is_own(word)


def ours(group: str) -> list[str]:
    if group == "skill":
        return sorted(SKILLS)
    of_choices = SETTINGS.get(group)
    return sorted(of_choices) if isinstance(of_choices, Mapping) else presets.names(group)


def title(group: str, choice: str) -> str:
    """What a choice is, in one sentence."""
    if choice not in ours(group):
        return f"The {OFFERED[group].kind} {OFFERED[group].installed()[choice]} of an installed package."
    if group == "skill":
        return skill_title(choice)
    of_choices = SETTINGS.get(group)
    if isinstance(of_choices, Mapping):
        return " ".join(str(of_choices[choice].__doc__).split())
    return presets.title(group, choice)


@functools.cache
def keys(group: str, choice: str) -> tuple[Key, ...]:
    """The settings that a choice brings, by their full names, with the defaults of the dataclasses."""
    prefix = "" if group == "bench" else f"{group}."
    made = {key.name: key for settings in _classes(group, choice) for key in keys_of(settings, prefix)}
    if group in CALLED:
        name, text = CALLED[group]
        called = Key(prefix + name, choice, Rule.only(choice), text)
        made = {called.name: called} | made | {called.name: called}
    return tuple(made.values())


def values(group: str, choice: str) -> dict[str, Any]:
    """Full name -> value of what a choice brings: the defaults of its dataclasses, and what its file changes."""
    changed = presets.preset(group, choice).values if choice in presets.names(group) else {}
    return defaults(keys(group, choice)) | {name: copy(value) for name, value in leaves(changed)}


def defaults(keys: Iterable[Key]) -> dict[str, Any]:
    """Full name -> default; None for what has to be given."""
    return {key.name: None if key.default is MISSING else copy(key.default) for key in keys if not key.is_block}


def all_keys(command: str, chosen: Iterable[tuple[str, str]]) -> dict[str, Key]:
    """Full name -> setting, for the choices (group, choice)."""
    found = [keys_of(COMMANDS[command][0]), *(keys(group, choice) for group, choice in chosen)]
    return {key.name: key for each in reversed(found) for key in each}  # of two of a name the first


def every_choice(command: str) -> list[tuple[str, str]]:
    """(group, choice) of a command."""
    return [(group, choice) for group in groups(command) for choice in ours(group)]


def _classes(group: str, choice: str) -> tuple[type, ...]:
    if group == "skill":
        return (config_class(choice),)
    of_choices = SETTINGS.get(group, ())
    return (of_choices[choice],) if isinstance(of_choices, Mapping) else of_choices


@dataclass(frozen=True)
class Settings:
    """A composed and checked configuration, and how it came about."""

    command: str
    overrides: tuple[str, ...]  # as typed, each `key=value`
    choices: dict[str, str]  # group -> choice, defaults included
    values: dict[str, Any]  # full name -> value
    keys: dict[str, Key] = field(repr=False)  # full name -> what it may be and means
    notes: tuple[str, ...] = ()  # what a person should know about them

    @property
    def config(self) -> dict[str, Any]:
        """The settings as nested dictionaries, as config.yaml has them."""
        return nested(self.values)

    def value(self, name: str) -> Any:
        """A setting by its full name; None where there is none."""
        return self.values.get(name)


def options_of(settings: Settings) -> Any:
    """The settings as the dataclass of their command, with those of what they chose in it. UserError for what cannot be
    together."""
    written = settings.config
    made, chosen = {**written, "collect": written.get("trainer")}, {}
    for group, choice in settings.choices.items():
        if group in ("skill", "nav", "sim", "logger"):
            named = {"sim": choice} if group == "sim" else {}
            chosen[group] = made_of(_classes(group, choice)[0], written[group] | named)
    if "hab" in settings.choices:
        from planner.scenarios import make_scenario  # which reads its problem

        chosen["hab"] = make_scenario(written["hab"], "hab")
    if settings.command == "bench":
        kind = bench.BENCHMARKS[settings.choices["bench"]]
        chosen["measurement"] = made_of(kind, written | {"sim": chosen.get("sim", HomeSettings())})
    given = made_of(COMMANDS[settings.command][0], {name: made[name] for name in made.keys() - chosen.keys()})
    return replace(given, words=settings.overrides, choices=settings.choices, written=written, **chosen)


def options_as(kind: type[_Options], options: Options, **changes: Any) -> _Options:
    """The settings of another command that goes as this one says; `changes` beside."""
    shared = {each.name: getattr(options, each.name) for each in fields(kind) if hasattr(options, each.name)}
    return kind(**shared | changes)


def engine_config(options: TrainOptions) -> TrainConfig:
    """What the engine needs of the settings of `rearrange train`."""
    return made_of(TrainConfig, vars(options) | {name: vars(getattr(options, name)) for name in ("policy", "ppo",
                                                                                                "collect")})
