"""What the ranks of tests/trainer/ranks/test_ranks.py run: `python -m tests.trainer.ranks.rank_jobs <job>
<directory>`."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import itertools
import json
import math
import os
import sys
import time
from pathlib import Path

import numpy as np
import torch

from tests.trainer.toy_networks import Straight
from tests.trainer.toys import Paced, Pointer
from trainer import ppo
from trainer.checkpoint import list_checkpoints
from trainer.config import CollectConfig, PolicyConfig, PPOConfig, TrainConfig
from trainer.cpc import CPC, CPCPolicy
from trainer.learner import Learner
from trainer.loop import train
from trainer.policy import Policy
from trainer.ranks import launch, ranks
from trainer.ranks.rank_watch import RankError
from trainer.rollout import Rollout

POLICY = PolicyConfig(encoder=None, lstm_layers=1, hidden_size=8, body_size=16, log_std_init=-0.5,
                      learn_precision="float32")
IMAGES = PolicyConfig(lstm_layers=1, hidden_size=16, body_size=16, embedding_size=8, learn_precision="float32")
LEARN = PPOConfig(learning_rate=3e-3, epochs=2, mini_batches=2, entropy_coef=1e-3, entropy_target=0.0)


def fingerprint(policy: torch.nn.Module) -> str:
    return hashlib.sha256(b"".join(p.detach().cpu().numpy().tobytes() for p in policy.parameters())).hexdigest()


def recording() -> list[dict]:
    """Every update of this process: fingerprint of the parameters, new steps, size of the batch."""
    seen: list[dict] = []
    update = Learner.update

    def recorded(self, rollout, collected):
        result = update(self, rollout, collected)
        fresh = rollout.version[collected.rows] == self.updates - 1
        seen.append({"parameters": fingerprint(self.policy), "steps": collected.steps, "batch": len(collected.rows),
                     "distinct": len(set(collected.rows)), "fresh": int(fresh.sum()),
                     "alpha": self.entropy_coef.log_alpha.item()})
        return result

    Learner.update = recorded
    return seen


def config(mode: str, steps: int, **collect) -> TrainConfig:
    overlap = mode in ("hts", "ver+overlap")
    settings = dict(mode=mode.split("+")[0], overlap=overlap, num_envs=4, num_workers=1, rollout_steps=16)
    return TrainConfig(steps=steps, log_every_s=1e-6, torch_threads=1, policy=POLICY, ppo=LEARN,
                       collect=CollectConfig(**settings | collect))


def identical(out: Path, *modes: str) -> None:
    """A few updates in each mode; each rank writes what it saw."""
    here, seen = launch.this_rank(), recording()
    for mode in modes:
        rows: list[int] = []
        seen.clear()
        result = train(Pointer, config(mode, 64 * 5 * here.size), out / mode,
                       observers=(lambda step, metrics: rows.append(step),))
        told = {"updates": seen, "steps": result.steps, "reason": result.reason, "logged": rows}
        (out / f"{mode}_{here.rank}.json").write_text(json.dumps(told))


def auxiliary(out: Path, *modes: str) -> None:
    """CPC|A: its losses, and its own weights at each of them; each rank writes what it saw."""
    here, seen, losses, weights = launch.this_rank(), recording(), [], []
    plain = CPC.forward

    def recorded(self, *given):
        loss = plain(self, *given)
        losses.append(float(loss.detach()))
        weights.append(fingerprint(self))
        return loss

    CPC.forward = recorded
    for mode in modes:
        seen.clear()
        losses.clear()
        weights.clear()
        settings = dataclasses.replace(config(mode, 64 * 10 * here.size), policy=IMAGES)
        train(functools.partial(Pointer, image=True), settings, out / mode, make_policy=CPCPolicy)
        told = {"updates": seen, "losses": losses, "weights": weights}
        (out / f"{mode}_{here.rank}.json").write_text(json.dumps(told))


class Enough:
    """Of each rank; only the first is asked."""

    def __init__(self):
        self.seen: list[int] = []

    def after_update(self, state) -> str | None:
        self.seen.append(state.step)
        return "enough" if len(self.seen) == 3 else None


def stopped(out: Path, *modes: str) -> None:
    """A callback of the first rank asks to stop; the network is one of the user's own."""
    here = launch.this_rank()
    for mode in modes:
        enough = Enough()
        result = train(Pointer, config(mode, 10**9), out / mode, callbacks=(enough,), make_policy=Straight)
        told = {"steps": result.steps, "reason": result.reason, "parameters": fingerprint(result.policy),
                "seen": enough.seen}
        (out / f"{mode}_{here.rank}.json").write_text(json.dumps(told))


def ordered(out: Path) -> None:
    """A run whose order is fixed: what it learned."""
    fixed = config("nover", 64 * 4, min_batch=4, max_wait_s=60.0)
    joined = launch.this_rank().launched
    result = train(Pointer, fixed, out / f"run_{joined}")
    (out / f"ordered_{joined}").write_text(fingerprint(result.policy))


def filled(envs: range, policy: Policy) -> Rollout:
    """A rollout of 16 steps of some environments; the data of an environment depend on its number alone."""
    n, rollout = len(envs), Rollout(len(envs), 16 * len(envs), {"obs": (3,)}, 2, False, policy.state_size,
                                    torch.device("cpu"))
    rngs = [np.random.default_rng([9, e]) for e in envs]
    draw = lambda size: torch.from_numpy(np.stack([r.normal(size=size) for r in rngs])).float()  # noqa: E731
    rollout.begin()
    for t in range(17):
        if t:
            rollout.close(np.arange(n), draw(()).numpy(), draw(()).numpy())
        rollout.open(np.arange(n), {"obs": draw(3)}, draw(2), draw(policy.state_size), draw(2), draw(()) - 2,
                     draw(()).numpy(),
                     np.full(n, t % 5 == 0), 0)
    return rollout


def fixed(out: Path) -> None:
    """Updates on given experience, 4 environments in all, shared among the ranks."""
    import gymnasium as gym

    torch.manual_seed(0)
    box = lambda n: gym.spaces.Box(-1, 1, (n,), np.float32)  # noqa: E731
    policy = Policy(box(3), box(2), POLICY)
    learn = PPOConfig(learning_rate=1e-3, epochs=3, mini_batches=1, entropy_coef=1e-2, entropy_target=5.0,
                      target_kl=10.0)
    coef = ppo.EntropyCoefficient(learn, torch.device("cpu"))
    optimizer = ppo.make_optimizer(policy, coef, learn)
    with ranks.join("cpu") as all_ranks:
        share = 4 // all_ranks.size
        rollout = filled(range(all_ranks.rank * share, (all_ranks.rank + 1) * share), policy)
        evaluate = all_ranks.evaluator(policy)
        for _ in range(2):
            ppo.update(policy, optimizer, coef, rollout, learn, np.random.default_rng(0), None, all_ranks, evaluate)
        torch.save({"policy": policy.state_dict(), "alpha": coef.log_alpha.detach()},
                   out / f"fixed_{all_ranks.size}_{all_ranks.rank}.pt")
    # What still holds the process group now may wait for its threads for ever, at the end of the process.
    names = [task.read_text().strip() for task in Path("/proc/self/task").glob("*/comm")]
    assert not any("gloo" in name for name in names), names


EVERY_STEP = {"ver": {}, "overlap": {"overlap": True}, "ddppo": {"mode": "ddppo"}, "appo": {"mode": "appo"}}


def every_step(out: Path) -> None:
    """Each rank compares its own steps, of which one has few: its environments are slow."""
    from tests.trainer import every_step as brute
    from tests.trainer.every_step import Story

    torch.backends.cudnn.allow_tf32 = False
    here = launch.this_rank()
    if here.rank == 1:
        Story.__init__.__defaults__ = (0.06,)
    told = {}
    for mode, collect in EVERY_STEP.items():
        watch = brute.train_watched(900, **collect)
        ages = [int(np.ptp(batch["rows"]["version"])) for batch in watch.batches]
        told[mode] = brute.check(watch) | {"oldest": max(ages)}
    (out / f"every_step_{here.rank}.json").write_text(json.dumps(told))


def forever(out: Path) -> None:
    """Train until something ends it; say what, unless another rank does."""
    here = launch.this_rank()
    (out / f"pid_{here.rank}").write_text(str(os.getpid()))
    try:
        long = config("ver", 10**9)
        train(Pointer, TrainConfig(**{**vars(long), "checkpoint_every_s": 0.2}), out,
              observers=(lambda step, _: (out / "step").write_text(str(step)),))
    except RankError as error:
        if not error.told_elsewhere:
            print(error, file=sys.stderr)
        sys.exit(1)


def watched(out: Path) -> None:
    """As `forever`, but a rank that is silent for 3 s counts as dead."""
    from trainer.ranks import rank_watch as watch

    watch.SILENT_S, watch.BEAT_S, watch.GRACE_S = 6.0, 0.5, 2.0
    forever(out)


def soaked(out: Path, mode: str) -> None:
    """As `forever`, in some mode; continues what is there."""
    here = launch.this_rank()
    (out / f"pid_{here.rank}").write_text(str(os.getpid()))
    limited = config(mode, 10**9, step_timeout_s=5.0)  # timed: of the soak
    settings = dataclasses.replace(limited, checkpoint_every_s=0.2)
    try:
        train(functools.partial(Paced, 0.002), settings, out,
              resume_from=out if list_checkpoints(out / "checkpoints") else None)
    except Exception as error:
        if not getattr(error, "told_elsewhere", False):
            print(error, file=sys.stderr)
        sys.exit(1)


def met(out: Path, whose: str) -> None:
    """Whom this rank meets; or the one sentence why nobody."""
    here = launch.this_rank()
    try:
        with ranks.join("cpu") as all_ranks:
            (out / f"{whose}_{here.rank}.json").write_text(json.dumps(all_ranks.gather([whose, here.rank])))
    except RankError as error:
        sys.exit(None if error.told_elsewhere else str(error))


class SlowsDown(Pointer):
    """Once a file is there, every step takes 2 s; a second file then says which process is in one."""

    def __init__(self, file: str):
        super().__init__()
        self.file = Path(file)

    def step(self, action):
        if self.file.exists():
            self.file.with_name(f"slowly_{os.getppid()}").touch()
            time.sleep(2.0)  # timed: an environment that is slow
        return super().step(action)


def signalled(out: Path, mode: str) -> None:
    """Train until a signal; a rollout then takes two minutes, and there is a second."""
    here = launch.this_rank()
    settings = dataclasses.replace(config(mode, 10**9), stop_within_s=1.0)
    result = train(functools.partial(SlowsDown, str(out / "slow")), settings, out,
                   observers=(lambda step, _: (out / "step").write_text(str(step)),))
    (out / f"ended_{here.rank}.json").write_text(json.dumps([result.reason, result.steps]))


def failing(out: Path, fault: str) -> None:
    """Rank 1 fails: an environment raises, its policy overflows while it acts, or the engine itself is wrong. Rank 0
    says so."""
    from tests.trainer.toys import Faulty
    from trainer.collect import Collector

    here, act, calls = launch.this_rank(), Policy.act, itertools.count()

    def wrong(*words):
        raise RuntimeError("shapes do not fit")

    def overflowing(*words, **named):
        result = act(*words, **named)
        return result if next(calls) < 100 else dataclasses.replace(result, value=result.value * math.inf)

    if here.rank == 1 and fault == "bug":
        Collector._time = wrong
    if here.rank == 1 and fault == "overflow":
        Policy.act = overflowing
    try:
        train(functools.partial(Faulty, fault, at=100) if here.rank == 1 and fault == "raises" else Pointer,
              config("ver", 10**9, cuda_graphs=False), out)  # a recorded act would not see what was put in its place
    except Exception as error:
        if not getattr(error, "told_elsewhere", False):
            print(error, file=sys.stderr)
        sys.exit(1)


def preempted(out: Path, *modes: str) -> None:
    """Rank 1's environments are much slower."""
    here, seen = launch.this_rank(), recording()
    for mode in modes:
        seen.clear()
        train(functools.partial(Paced, 0.001 if here.rank == 0 else 0.02), config(mode, 600, preemption_fraction=0.5),
              out / mode)
        (out / f"{mode}_{here.rank}.json").write_text(json.dumps(seen))


if __name__ == "__main__":
    globals()[sys.argv[1]](Path(sys.argv[2]), *sys.argv[3:])
