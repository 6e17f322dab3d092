"""`python -m benchmarks.update`: where the time of one PPO update goes, and what the stored experience weighs.

A rollout as VER leaves it behind (environments of different speed, sequences of unequal length) is learned from with
the engine's own update. The parts are timed inside it:

    returns    advantages and importance weights
    packing    from stored steps to mini-batches: finding sequences, dealing them out, the index tensors of the
    recurrent network
    gather     copying the steps of each mini-batch
    forward, backward, optimiser (with gradient clipping), rest (losses, statistics)
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import numpy as np

from benchmarks import run as run_as_command
from rearrange.home.errors import UserError
from rearrange.home.settings.presets import preset

if TYPE_CHECKING:
    from benchmarks.settings import Update
    from rearrange.command_line.runs.run_directory import Run
    from trainer.config import PolicyConfig

PARTS = ("returns", "packing", "gather", "forward", "backward", "optimiser")
SLOWEST = 0.3  # speed of the slowest environment, the fastest being 1
EPISODE_STEPS = 200
ACTIONS = 11
VECTORS = {"joint": 7, "ee_pos": 3, "is_holding": 1, "obj_start": 3, "relative_resting_position": 3}  # those of Pick


def check(settings: Update) -> None:
    """Refuse a device that is not there, and more steps than fit into memory."""
    from eval.engine_settings import check_device
    from trainer.config import CollectConfig, TrainConfig
    from trainer.machine import check_memory

    network = preset("policy", settings.policy).values.get("policy", {})
    config = TrainConfig(device=settings.device, policy=_policy_config(network),
                         collect=CollectConfig(num_envs=settings.num_envs, rollout_steps=settings.rollout_steps))
    check_device(config)
    observations, actions = _spaces(network.get("image_size", 0))
    try:
        check_memory(config, observations, actions.shape[0])
    except ValueError as error:
        raise UserError(str(error).replace("collect.", "")) from error


def _policy_config(network: dict[str, Any]) -> PolicyConfig:
    from rearrange.command_line.composition.options import HomePolicy

    return HomePolicy(**{k: v for k, v in network.items() if k in HomePolicy.__dataclass_fields__})


def run_bench(settings: Update, run: Run) -> dict[str, float]:
    """Print both tables and keep them in bench.json; returns the headline figures."""
    result = bench_update(**{k: v for k, v in vars(settings).items() if k != "sim"})
    for line in table(result):
        run.say(line)
    (run.path / "bench.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    run.say(f"figures: {run.path / 'bench.json'}")
    return {"update_s": result["update_s"], "packing_share": result["parts"]["packing"]["share"],
            "memory_over_theory": result["memory"]["stored_bytes"] / result["memory"]["theory_bytes"]}


def bench_update(policy: str = "light", ppo: str = "fast", num_envs: int = 32, rollout_steps: int = 128,
                 updates: int = 5, device: str = "auto", seed: int = 0, torch_threads: int = 1) -> dict[str, Any]:
    """Time `updates` updates after one that warms up. Plain values: seconds of an update (median), per part seconds
    (mean) and share, and the memory of the rollout by field."""
    import torch

    from rearrange.command_line.composition.options import HomePPO
    from trainer.policy import Policy

    where = torch.device(("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device)
    network = preset("policy", policy).values.get("policy", {})
    config = HomePPO(**preset("ppo", ppo).values.get("ppo", {}))
    torch.manual_seed(seed)
    threads = torch.get_num_threads()
    torch.set_num_threads(torch_threads)
    try:
        spaces = _spaces(network.get("image_size", 0))
        agent = Policy(*spaces, _policy_config(network)).to(where)
        memory_before = resident_bytes()
        rollout = filled_rollout(agent, spaces[0], num_envs, rollout_steps, where, seed)
        resident = resident_bytes() - memory_before
        seconds, parts, sequences = timed_updates(agent, rollout, config, updates, seed)
    finally:
        torch.set_num_threads(threads)
    update_s = float(np.median(seconds))
    means = {name: float(np.mean([p[name] for p in parts])) for name in PARTS}
    means["rest"] = float(np.mean(seconds)) - sum(means.values())
    return {"settings": {"policy": policy, "ppo": ppo, "num_envs": num_envs, "rollout_steps": rollout_steps,
                         "updates": updates, "device": str(where), "torch_threads": torch_threads,
                         "epochs": config.epochs, "mini_batches": config.mini_batches},
            "update_s": update_s, "update_values_s": seconds, "sequences": sequences,
            "parts": {k: {"seconds": v, "share": v / float(np.mean(seconds))} for k, v in means.items()},
            "memory": memory(rollout, resident if where.type == "cpu" else None)}


def _spaces(image_size: int) -> tuple[Any, Any]:
    """Observations of Pick and the whole action."""
    from gymnasium import spaces

    keys = {k: spaces.Box(-np.inf, np.inf, (n,), np.float32) for k, n in VECTORS.items()}
    if image_size:
        keys["depth"] = spaces.Box(0.0, 1.0, (image_size, image_size, 1), np.float32)
    return spaces.Dict(keys), spaces.Box(-1.0, 1.0, (ACTIONS,), np.float32)


def filled_rollout(agent: Any, observation_space: Any, num_envs: int, rollout_steps: int, device: Any,
                   seed: int) -> Any:
    """A finished rollout: environments, from slow to fast, act by `agent` in rounds in which the faster ones appear
    oftener.
    """
    import torch

    from trainer.policy import observation_shapes
    from trainer.rollout import NO_ROW, Rollout

    rng = np.random.default_rng(seed)
    shapes = observation_shapes(observation_space)
    rollout = Rollout(num_envs, num_envs * rollout_steps, shapes, agent.action_size, len(agent.choices),
                      agent.state_size, device)
    speed = np.linspace(SLOWEST, 1.0, num_envs)
    state = torch.zeros(num_envs, agent.state_size, device=device)
    previous = torch.zeros(num_envs, agent.action_size, device=device)
    left = rng.integers(1, EPISODE_STEPS, num_envs)
    rollout.begin()
    while rollout.remaining:
        envs = np.flatnonzero(rng.random(num_envs) < speed)
        closing = np.cumsum(rollout.open_row[envs] != NO_ROW)
        envs = envs[closing <= rollout.remaining]
        has_open = rollout.open_row[envs] != NO_ROW
        done = has_open & (left[envs] <= 0)
        left[envs] = np.where(done, EPISODE_STEPS, left[envs]) - 1
        obs = {k: torch.rand(len(envs), *shape, device=device) for k, shape in shapes.items()}
        act = agent.act(obs, state[envs], previous[envs])
        value = act.value.cpu().numpy()
        rollout.close(envs[has_open], rng.random(int(has_open.sum()), np.float32), np.where(done, 0, value)[has_open])
        rollout.open(envs, obs, previous[envs], state[envs], act.action, act.log_prob, value, done | ~has_open, 0)
        state[envs], previous[envs] = act.state, agent.action_features(act.action)
    rollout.finish()
    return rollout


def timed_updates(agent: Any, rollout: Any, config: Any, updates: int,
                  seed: int) -> tuple[list[float], list[dict[str, float]], int]:
    """Seconds of each update, seconds of its parts, number of sequences."""
    from trainer import ppo

    rng = np.random.default_rng(seed)
    entropy = ppo.EntropyCoefficient(config, rollout.log_prob.device)
    optimizer = ppo.make_optimizer(agent, entropy, config)
    seconds, parts, sequences = [], [], 0
    for number in range(updates + 1):
        with timed_parts(agent, optimizer, rollout) as clock:
            start = time.perf_counter()
            stats = ppo.update(agent, optimizer, entropy, rollout, config, rng)
            clock.synchronise()
            if number:
                seconds.append(time.perf_counter() - start)
                parts.append(dict(clock.seconds))
        sequences = int(stats["sequences"])
    return seconds, parts, sequences


class Clock:
    """Adds up the time spent in functions; on CUDA it waits for the device before and after each."""

    def __init__(self, cuda: bool):
        self.cuda, self.seconds = cuda, dict.fromkeys(PARTS, 0.0)

    def synchronise(self) -> None:
        if self.cuda:
            import torch

            torch.cuda.synchronize()

    def timed(self, name: str, function: Callable) -> Callable:
        def call(*args: Any, **kwargs: Any) -> Any:
            self.synchronise()
            start = time.perf_counter()
            result = function(*args, **kwargs)
            self.synchronise()
            self.seconds[name] += time.perf_counter() - start
            return result

        return call


@contextmanager
def timed_parts(agent: Any, optimizer: Any, rollout: Any) -> Iterator[Clock]:
    """Put a clock around the parts of `trainer.ppo.update`."""
    import torch

    from trainer import ppo

    cuda = rollout.log_prob.is_cuda
    clock = Clock(cuda)
    needed = (("packed_order", "batch_sizes", "by_length") if cuda else
              ("padded_index", "step_in_sequence", "sequence_of_step")) if agent.lstm else ()

    def pack(sequences: Any) -> None:
        for name in needed:
            getattr(sequences, name)

    copy, packed = clock.timed("gather", rollout.gather), clock.timed("packing", pack)

    def gather(*args: Any) -> Any:
        """The engine builds the index tensors of a batch when they are first used; here, so that they are packing."""
        batch = copy(*args)
        packed(batch.sequences)
        return batch

    with ExitStack() as stack:
        def around(owner: Any, attribute: str, part: str) -> None:
            stack.enter_context(mock.patch.object(owner, attribute, clock.timed(part, getattr(owner, attribute))))

        around(ppo, "gae", "returns")
        around(ppo, "importance_weights", "returns")
        around(ppo, "find_sequences", "packing")
        around(ppo, "mini_batches", "packing")
        stack.enter_context(mock.patch.object(rollout, "gather", gather))
        around(agent, "evaluate", "forward")
        around(torch.nn.utils, "clip_grad_norm_", "optimiser")
        around(optimizer, "step", "optimiser")
        backward = torch.Tensor.backward
        stack.enter_context(mock.patch.object(torch.Tensor, "backward", clock.timed("backward", backward)))
        yield clock


def resident_bytes() -> int:
    """Memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def memory(rollout: Any, resident: int | None) -> dict[str, Any]:
    """Bytes of the stored experience by field, and of T x N steps in theory: each field once per step, nothing else."""
    import torch

    fields = {}
    for name, value in {**{f"obs.{k}": v for k, v in rollout.obs.items()}, **vars(rollout)}.items():
        if isinstance(value, torch.Tensor) and len(value) == rollout.rows:
            fields[name] = value.numel() * value.element_size()
        elif isinstance(value, np.ndarray) and len(value) == rollout.rows:
            fields[name] = value.nbytes
    needed = [name for name in fields if name.startswith("obs.")
              or name in ("action", "log_prob", "state", "value", "reward")]
    return {"fields_bytes": fields, "stored_bytes": sum(fields.values()), "rows": rollout.rows, "steps": rollout.steps,
            "theory_bytes": sum(fields[name] // rollout.rows for name in needed) * rollout.steps,
            "resident_bytes": resident}


def table(result: dict[str, Any]) -> list[str]:
    """The result as lines to print."""
    s, m = result["settings"], result["memory"]
    lines = [f"update of {m['steps']:,} steps in {result['sequences']} sequences: {1e3 * result['update_s']:.0f} ms  "
             f"(policy={s['policy']} ppo={s['ppo']}: {s['epochs']} epochs x {s['mini_batches']} mini-batches, "
             f"{s['device']}, {s['torch_threads']} threads)"]
    lines += [f"  {name:<10}{1e3 * part['seconds']:9.2f} ms  {100 * part['share']:6.2f} %"
              for name, part in result["parts"].items()]
    over = 100 * (m["stored_bytes"] / m["theory_bytes"] - 1)
    lines += [f"rollout storage {m['stored_bytes'] / 2**20:.1f} MiB, in theory {m['theory_bytes'] / 2**20:.1f} MiB "
              f"({over:+.1f} %)" + (f", resident {m['resident_bytes'] / 2**20:.1f} MiB" if m["resident_bytes"] else "")]
    lines += [f"  {name:<30}{size / 2**20:9.2f} MiB"
              for name, size in sorted(m["fields_bytes"].items(), key=lambda x: -x[1])[:6]]
    return lines


if __name__ == "__main__":
    sys.exit(run_as_command("update"))
