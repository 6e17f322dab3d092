"""One measured run of the engine benchmark: `python -m benchmarks.engine_job <job.json>`, in a process of its own.

A job says which system trains on what for how long. Our modes and the run without any policy are here;
`benchmarks/engine_sample_factory.py` takes the same jobs. Each writes a result (`RESULT` says what is in it) beside the
traces of its environments.
"""

from __future__ import annotations

import functools
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable

import gymnasium

from benchmarks.step_trace import Traced, has_stepped
from benchmarks.synthetic_env import StepCost, SyntheticEnv

if TYPE_CHECKING:
    from trainer.callbacks import TrainState

# name -> fields of CollectConfig
MODES: dict[str, dict[str, Any]] = {
    "ddppo": {"mode": "ddppo"},
    "nover": {"mode": "nover"},
    "ver": {"mode": "ver"},
    "hts": {"mode": "hts", "overlap": True},
    "ver_overlap": {"mode": "ver", "overlap": True},
    "appo": {"mode": "appo"},
}
# name -> (image encoder, embedding, body size, body layers, LSTM units; 0 = none)
NETWORKS = {"linear": ("pooled", 16, 0, 0, 0), "light": ("light", 128, 256, 2, 128), "blind": (None, 0, 256, 2, 0)}
RESULT = ("updates", "latency_s", "parameters", "peak_mib", "processes")
LATENCY_REPEATS = 15


def make_env(job: dict[str, Any]) -> Traced:
    """An environment of the job, which records its steps."""
    return Traced(functools.partial(_build, job), job["traces"])


def of_rank(job: dict[str, Any]) -> dict[str, Any]:
    """The job of this process where several ranks run one: times and traces of its own; `slow_ranks`: how many times as
    long steps take on some."""
    if "RANK" not in os.environ:
        return job
    rank = int(os.environ["RANK"])
    slow = job.get("slow_ranks", {}).get(str(rank))
    return (job | {"seed": 1000 * job["seed"] + rank, "traces": str(Path(job["traces"]) / str(rank))}
            | ({"cost": vars(StepCost(**job["cost"]).scaled(slow))} if slow else {}))


def _build(job: dict[str, Any], number: int) -> Any:
    if job["env"] == "synthetic":
        return SyntheticEnv(StepCost(**job["cost"]), number, job["seed"], job["burn"], job["image_size"])
    from eval.task_from_settings import SEEING, group_of
    from eval.task_from_settings import make_env as make_home

    sim = job["sim"] if group_of(job["env"]) == "skill" else {key: value for key, value in job["sim"].items()
                                                              if key in SEEING}
    return make_home(job["env"], depth_size=job["image_size"], **sim)


class Clock:
    """Told of every update, says when to end the run: the first `warm_up` updates do not count, then `seconds` and at
    least two more.
    """

    def __init__(self, job: dict[str, Any]):
        self.warm_up, self.seconds = job["warm_up_updates"], job["seconds"]
        self.updates: list[dict[str, float]] = []

    def tick(self, **figures: float) -> bool:
        """Note an update that has just ended; whether to stop now."""
        now = time.monotonic()
        self.updates.append({"end_s": now, **figures})
        return len(self.updates) > self.warm_up + 2 and now - self.updates[self.warm_up - 1]["end_s"] >= self.seconds


def run_engine(job: dict[str, Any]) -> dict[str, Any]:
    """Train with one of MODES until the clock says stop."""
    from trainer import PolicyConfig, PPOConfig, TrainConfig, train
    from trainer.config import BEFORE_0_2, CollectConfig

    encoder, embedding, body, layers, hidden = NETWORKS[job["network"]]
    updates = job.get("updates")  # given: a fixed number of steps, as all ranks have to end together
    rollout = job["num_envs"] * job["rollout_steps"] * int(os.environ.get("WORLD_SIZE", 1))
    config = TrainConfig(steps=updates * rollout if updates else 10**12, seed=job["seed"], log_every_s=1e-9,
                         torch_threads=job["torch_threads"], device="cpu",
                         policy=PolicyConfig(encoder=encoder, embedding_size=embedding or 1, body_size=body,
                                             body_layers=layers, skip=False, lstm_layers=1 if hidden else 0,
                                             hidden_size=hidden or 1, log_std_init=-0.5, **BEFORE_0_2),
                         ppo=PPOConfig(epochs=job["epochs"], mini_batches=job["mini_batches"],
                                       learning_rate=job["learning_rate"], schedule="constant", reward_scale=1.0),
                         collect=CollectConfig(num_envs=job["num_envs"], num_workers=job["num_workers"],
                                               rollout_steps=job["rollout_steps"], inference_workers=1
                                               if job["system"] == "ddppo" else job["inference_workers"],
                                               **({"preemption": job["preemption"]} if "preemption" in job else {}),
                                               **MODES[job["system"]]))
    watch, make_policy = Watch(job), policy_factory(job)
    train(functools.partial(make_env, of_rank(job)), config, callbacks=(watch,), make_policy=make_policy)
    policy, latency = measure_latency(job, config, make_policy)
    return {"updates": watch.clock.updates, "latency_s": latency, "peak_mib": peak_mib(), "processes": watch.processes,
            "parameters": sum(p.numel() for p in policy.parameters())}


class Watch:
    """A callback: keeps the clock of a job, and ends the run when the measuring time is over."""

    def __init__(self, job: dict[str, Any]):
        self.clock, self.processes = Clock(job), 0

    def at_log(self, state: TrainState) -> str | None:
        """After every update, as `log_every_s` is next to nothing."""
        metrics = state.metrics
        seconds = metrics["wall_s"] - (self.clock.updates[-1]["wall_s"] if self.clock.updates else 0.0)
        parts = {f"{k.removeprefix('time/').removesuffix('_share')}_s": v * seconds
                 for k, v in metrics.items() if k.startswith("time/")}
        self.processes = max(self.processes, count_processes())
        over = self.clock.tick(steps=state.step, seconds=seconds, wall_s=metrics["wall_s"],
                               batch=metrics["collect/mean_batch"], stale=metrics.get("learn/stale_fraction", 0.0),
                               lag=metrics["lag/mean"], **parts)
        return "measured" if over else None


def policy_factory(job: dict[str, Any]) -> Callable[..., Any]:
    """The engine's policy, which also knows the encoder that pretends to be on a GPU."""
    from benchmarks.pretended_network import PooledEncoder
    from trainer.nets.encoders import ENCODERS
    from trainer.policy import Policy

    pooled = functools.partial(PooledEncoder, device=job["device_time"], scale=job["time_scale"])
    return functools.partial(Policy, encoders={**ENCODERS, "pooled": pooled})


def measure_latency(job: dict[str, Any], config: Any, make_policy: Callable[..., Any]) -> tuple[Any, dict[int, float]]:
    """The policy, fresh, and the seconds that inference of b environments takes, for b = 1, 2, 4 ... N: median."""
    import torch

    torch.set_num_threads(1)
    env = _build(job, 0)
    policy = make_policy(env.observation_space, env.action_space, config.policy)
    sizes = sorted({*(1 << i for i in range(job["num_envs"].bit_length())), job["num_envs"]})
    latency = {}
    for b in [size for size in sizes if size <= job["num_envs"]]:
        obs = {k: torch.rand(b, *space.shape) for k, space in env.observation_space.items()}
        state, previous = torch.zeros(b, policy.state_size), torch.zeros(b, policy.action_size)
        latency[b] = median_seconds(lambda: policy.act(obs, state, previous))
    env.close()
    return policy, latency


def median_seconds(function: Callable[[], Any]) -> float:
    times = []
    for _ in range(LATENCY_REPEATS):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def run_unhindered(job: dict[str, Any]) -> dict[str, Any]:
    """No policy and no queue: processes that step their environments with one random action, as fast as they can."""
    shares = [len(range(i, job["num_envs"], job["num_workers"])) for i in range(job["num_workers"])]
    workers = [subprocess.Popen([sys.executable, "-P", "-m", "benchmarks.engine_job", "--step", json.dumps(job),
                                 str(share)], stdin=subprocess.PIPE) for share in shares]

    def wait_for_steps(since_s: float) -> None:
        while sum(has_stepped(file, since_s) for file in Path(job["traces"]).glob("*.trace")) < job["num_envs"]:
            if any(worker.poll() is not None for worker in workers):
                raise RuntimeError("an environment process ended early.")
            time.sleep(0.05)

    try:
        wait_for_steps(0.0)
        begin = time.monotonic()
        time.sleep(job["seconds"])
        wait_for_steps(begin)  # of each at least one, however slow the machine
        updates = [{"end_s": begin}, {"end_s": time.monotonic()}]
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
    return {"updates": updates, "latency_s": {}, "parameters": 0, "peak_mib": 0.0, "processes": len(workers)}


def step_for_ever(job: dict[str, Any], envs: int) -> None:
    """The process of `run_unhindered`; ends when its parent does."""
    from trainer.workers.worker import die_with_parent

    die_with_parent(os.getppid())
    mine = [make_env(job) for _ in range(envs)]
    space = mine[0].action_space
    # 0 would end an episode of navigation
    action = 1 if isinstance(space, gymnasium.spaces.Discrete) else space.sample()
    for env in mine:
        env.reset(seed=job["seed"])
    while True:
        for env in mine:
            _, _, terminated, truncated, _ = env.step(action)
            if terminated or truncated:
                env.reset()


def peak_mib() -> float:
    """Largest memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def count_processes() -> int:
    """This process and its living descendants."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            rest = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        children.setdefault(int(rest[1]), []).append(int(stat.parent.name))

    found, queue = 0, [os.getpid()]
    while queue:
        found += 1
        queue += children.get(queue.pop(), [])
    return found


def main() -> None:
    """Run the job of a file and write its result beside it."""
    if sys.argv[1] == "--step":
        step_for_ever(json.loads(sys.argv[2]), int(sys.argv[3]))
    path = Path(sys.argv[1])
    job = json.loads(path.read_text(encoding="utf-8"))
    result = (run_unhindered if job["system"] == "unhindered" else run_engine)(job)
    if int(os.environ.get("RANK", 0)):
        return  # the first rank tells
    path.with_name("result.json").write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    main()
