"""Settings of the measurements beside other systems, a dataclass for each, whose first line says what it measures."""

from __future__ import annotations

from dataclasses import dataclass

from rearrange.command_line.composition.bench_settings import GYM_TASKS, Measurement
from rearrange.home.settings.environment import NAVIGATION, SPLITS
from rearrange.home.settings.setting_fields import like, setting
from skills import SKILLS


@dataclass(frozen=True)
class Batched(Measurement):
    """Training on EnvPool's environments beside Stable-Baselines3 and Sample Factory 2: steps/s, with the same
    network.
    """

    tasks: tuple[str, ...] = setting(
        ("HalfCheetah-v4", "Ant-v4", "CartPole-v1"), "names of EnvPool's environments with vectors to see")
    trainers: tuple[str, ...] = setting(
        ("ours", "asynchronous", "sb3"),
        "the engine; the same with half of the environments at a time, whoever is ready; SB3's PPO",
        choices=("ours", "asynchronous", "sb3"))
    num_envs: int = setting(64, "environments (N)", above=0, at_most=16384)
    rollout_steps: int = setting(64, "T: a rollout is T x N steps", above=0, at_most=1_000_000)
    epochs: int = setting(4, "passes over a rollout", above=0, at_most=1000)
    mini_batches: int = setting(8, "per pass", above=0, at_most=1_000_000)
    seconds: float = setting(15.0, "measured per run, after the first update", above=0)
    repeats: int = setting(3, "runs of each trainer on each task, in turn", above=0, at_most=1000)
    sample_factory: str | None = setting(
        None,
        "Sample Factory 2: the Python interpreter of an environment that has it, and EnvPool (docs/benchmarks.md)",
        path=True)


@dataclass(frozen=True)
class Engine(Measurement):
    """DD-PPO, NoVER, VER, HTS, APPO and Sample Factory 2 side by side: steps/s and shares of the bounds."""

    env: str = setting(
        "synthetic",
        "environments whose steps cost what a seeded model says, or homes with that skill or navigation task",
        choices=("synthetic", "pick", *NAVIGATION))
    preset: str = setting(
        "v100", "step times of synthetic: as in Table 1 of the VER paper, a third of the spread, all equal",
        choices=("v100", "mild", "none"))
    burn: str = setting(
        "sleep", "synthetic steps let time pass, as while a GPU renders, or compute on a core",
        choices=("sleep", "spin"))
    pretend: str = setting(
        "v100", "network=linear sleeps as long as a V100 needs for the paper's network, or not at all",
        choices=("v100", "none"))
    time_scale: float = setting(
        1.0, "all synthetic times are multiplied by this: below 1 quicker, above 1 less sensitive to load", above=0)
    network: str | None = setting(
        None, "one layer, CNN and LSTM, MLP without image; null = linear for synthetic, light for homes",
        choices=("linear", "light", "blind"))
    image_size: int = setting(64, "pixels on a side of the depth image", at_least=0, at_most=1024)
    num_envs: int = setting(16, "environments (N)", above=0, at_most=16384)
    num_workers: int | None = setting(
        None, "environment processes; null = one per synthetic environment, one per core for homes", above=0,
        at_most=1024)
    inference_workers: int | None = setting(
        None, "of every system but ddppo; null = two where inference waits for a pretended device, else one", above=0,
        at_most=1024)
    rollout_steps: int = setting(128, "T: a rollout is T x N steps", above=0, at_most=1_000_000)
    epochs: int = setting(3, "passes over a rollout", above=0, at_most=1000)
    mini_batches: int = setting(2, "per pass", above=0, at_most=1_000_000)
    learning_rate: float = setting(2.5e-4, "of every system", above=0)
    torch_threads: int = setting(1, "threads while learning", above=0, at_most=1024)
    seconds: float = setting(30.0, "measured per run, after the warm-up and at least two updates", above=0)
    warm_up_updates: int = setting(1, "updates of each run that do not count", above=0, at_most=1_000_000)
    repeats: int = setting(
        3, "runs per system; in each repeat all of them once, in random order, with new step times", above=0,
        at_most=1000)
    ddppo: bool = setting(True, "synchronous: every step waits for the slowest environment")
    nover: bool = setting(True, "asynchronous steps, T per environment: a rollout waits for the slowest environment")
    ver: bool = setting(True, "variable experience: T x N steps from whichever environments give them")
    hts: bool = setting(True, "NoVER with collection overlapped with learning by one rollout")
    ver_overlap: bool = setting(True, "VER with the same overlap")
    appo: bool = setting(True, "VER without an end of collection: it acts with the newest weights while it learns")
    sample_factory: str | None = setting(
        None, "Sample Factory 2: the Python interpreter of an environment that has it (docs/benchmarks.md)", path=True)


ENGINE_FIGURES = """\
steps/s      environment steps per second of the whole system, learning included, counted by the environments themselves
fastest      the same in the fastest update of a run
x DD-PPO     steps/s divided by those of DD-PPO in the same repeat
collection   steps/s while experience is collected; the whole time where learning overlaps
no-wait      collection as a share of the no-wait bound: the same environments stepping alone, without a policy
own          the same, with the step times that this very run met: no luck of the draw
latency      collection as a share of the latency bound: every step also waits for one inference, and for nothing else
system       steps/s as a share of the system bound: S / (S / no-wait + L) where collection and learning alternate, and
             min(no-wait, S / L) where they overlap; S = T x N steps per rollout, L seconds of learning
batch        environments answered per inference
lag          updates by which the policy that acted is older than the one that learns, mean
reward       mean per step: a system that skips work, or learns worse from the same steps, shows here
(a .. b)     95 % bootstrap interval over the repeats""".splitlines()
"""What the columns of `bench engine` are."""


@dataclass(frozen=True)
class Habitat(Measurement):
    """Both simulators on the same homes and episodes: steps per second on one core, and what the adapter to Habitat
    costs.
    """

    skill: str = setting(
        "pick", "task that is stepped",
        choices=("pick", "place", *(name for name in SKILLS if name not in ("pick", "place"))))
    split: str = setting("val", "that the data set has", choices=SPLITS)
    depth_size: int = setting(128, "pixels on a side of the depth image", above=0, at_most=1024)
    episodes: int = setting(20, "of up to 90 steps, in turns", above=0, at_most=1_000_000)


@dataclass(frozen=True)
class Modes(Measurement):
    """Return per step of experience and per minute in every mode of the engine, on Pendulum-v1, a skill or a task of
    navigation.
    """

    env: str = setting("pendulum", "pendulum, a skill (pick ...) or a task of navigation (pointnav ...)")
    modes: tuple[str, ...] = setting(
        ("ddppo", "nover", "hts", "ver", "ver+overlap", "appo"),
        "of trainer=; ver+overlap: trainer=ver trainer.overlap=true")
    steps: int = setting(100_000, "environment steps per run", above=0, at_most=10**12)
    seeds: int = setting(3, "runs per mode", above=0, at_most=1000)
    policy: str = setting("blind", "network for a skill or navigation", choices=("blind", "light", "resnet18"))
    num_envs: int = setting(32, "environments; Pendulum always has 4", above=0, at_most=16384)


@dataclass(frozen=True)
class Population(Measurement):
    """Population-based training beside independent runs of the same steps, on a standard task: return."""

    task: str = setting("hopper", "standard task", choices=GYM_TASKS)
    members: int = setting(5, "runs that exchange weights and settings, and independent ones", at_least=2, at_most=1000)
    every: int = setting(100_000, "steps of a generation", above=0, at_most=10**9)
    steps: int | None = setting(
        None, "steps of a member, over all generations; null = 50,000 to 1,000,000, by task", above=0, at_most=10**12)
    independent: bool = setting(True, "also independent runs with the engine's defaults")


@dataclass(frozen=True)
class Scaling(Measurement):
    """Several ranks with uneven environments: no preemption, DD-PPO's rule and VER's, in a model up to 256 ranks and
    measured.
    """

    preset: str = like(Engine, "preset", text="step times, as in bench engine")
    sigma_env: float = setting(0.4, "spread of the mean step time between environments (log-normal)", at_least=0)
    num_envs: int = setting(16, "environments per rank in the model (N)", above=0, at_most=16384)
    rollout_steps: int = setting(128, "T: a rollout is at most T x N steps per rank", above=0, at_most=1_000_000)
    learn_s: float = setting(1.5, "seconds of learning per rollout", above=0)
    model_ranks: int = setting(256, "most ranks in the model: 1, 2, 4 ... up to this", above=0, at_most=256)
    rollouts: int = setting(6, "per seed in the model", above=0, at_most=1000)
    seeds: int = setting(3, "draws of the step times in the model", above=0, at_most=1000)
    measured_ranks: int = setting(
        4, "most ranks that are really run: 1, 2, 4; 0 = the model only", at_least=0, at_most=4)
    measured_envs: int = setting(8, "environments per rank that is really run", above=0, at_most=1024)
    measured_steps: int = setting(64, "T of these", above=0, at_most=100_000)
    updates: int = setting(8, "measured per run, after one that does not count", above=0, at_most=1_000_000)
    repeats: int = setting(3, "runs of each kind, interleaved", above=0, at_most=1000)
    time_scale: float = setting(1.0, "the times of measured runs are multiplied by this", above=0)


@dataclass(frozen=True)
class Transfer(Measurement):
    """What was learnt in the embedded home, in Habitat: every skill in both simulators on the same episodes."""

    skills: tuple[str, ...] = setting((), "which; [] = all that the agent knows")
    agent: str = setting("pretrained", "who acts", choices=("pretrained", "expert", "random"))
    split: str = like(Habitat, "split")
    episodes: int = setting(50, "of each skill in each simulator", above=0, at_most=1_000_000)
    workers: int | None = setting(None, "processes; null = one per CPU core", above=0, at_most=1024)


@dataclass(frozen=True)
class Update(Measurement):
    """The time of one PPO update by part, packing above all, and the memory of the stored experience against theory."""

    policy: str = setting("light", "network", choices=("light", "blind", "resnet18"))
    ppo: str = setting("fast", "epochs and mini-batches", choices=("fast", "paper"))
    num_envs: int = like(Engine, "num_envs", 32)
    rollout_steps: int = setting(128, "T: the update learns from T x N steps", above=0, at_most=1_000_000)
    updates: int = setting(5, "updates that are timed, after one that warms up", above=0, at_most=1_000_000)
    device: str = setting("auto", "auto = CUDA where there is one; or cpu, cuda, cuda:1 ...")
    torch_threads: int = like(Engine, "torch_threads", text="threads")


BENCHMARKS: dict[str, type] = {"batched": Batched, "engine": Engine, "habitat": Habitat, "modes": Modes,
                               "population": Population, "scaling": Scaling, "transfer": Transfer, "update": Update}
