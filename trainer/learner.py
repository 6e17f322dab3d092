"""The state of a run that a checkpoint must hold: policy, optimiser, counters, random states."""

from __future__ import annotations

import copy
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch
from gymnasium import spaces

from trainer import checkpoint, ppo
from trainer.checkpoints.compatibility import other_unit
from trainer.checkpoints.files import plain, plain_rng, rng_from_plain
from trainer.checkpoints.transfer import take_over
from trainer.cloning import update as cloning
from trainer.collect import CollectStats
from trainer.config import TrainConfig
from trainer.networks import MakePolicy, check_finite, make, refuse_another
from trainer.policy import EXPERT_ACTION, Policy, observation_shapes
from trainer.ranks.launch import RankInfo
from trainer.ranks.ranks import Ranks
from trainer.rollout import Rollout
from trainer.spaces import space_from_plain, units


@dataclass
class RankReport:
    """What a rank tells the others after every update."""

    collected: CollectStats  # without its rows, which mean nothing elsewhere
    batch_steps: int  # steps that were learned from, those of an earlier rollout included
    learn_s: float
    stop: str | None  # why this rank asks the run to stop: a signal's name, or a callback's reason
    save: bool  # this rank finds that a checkpoint is due

    @staticmethod
    def of(collected: CollectStats, learn_s: float, stop: str | None, save: bool) -> RankReport:
        return RankReport(replace(collected, rows=np.empty(0, np.int64)), len(collected.rows), learn_s, stop, save)


class Learner:
    """Policy, optimiser and counters, and how they change by one update. clones: it learns from demonstrations."""

    def __init__(self, config: TrainConfig, observation_space: spaces.Space, action_space: spaces.Space,
                 device: torch.device, ranks: Ranks | None = None, make_policy: MakePolicy = Policy,
                 clones: bool = False):
        self.config, self.device, self.make_policy, self.clones = config, device, make_policy, clones
        self.ranks = ranks or Ranks(RankInfo())
        self.spaces = (observation_space, action_space)
        torch.manual_seed(config.seed)
        keep_freed_memory()
        self.policy = make(make_policy, *self.spaces, config.policy).to(device)
        self.evaluate = self.ranks.evaluator(self.policy)
        if config.ppo.imitation_coef and not clones:
            check_advice(self.policy, *self.spaces)
        self.entropy_coef = ppo.EntropyCoefficient(config.ppo, device)
        self.optimizer = ppo.make_optimizer(self.policy, self.entropy_coef, config.ppo)
        self.rng = np.random.default_rng([config.seed, 1, self.ranks.rank])
        self.steps = self.updates = self.episodes = 0  # of all ranks, since the run began
        self.seconds = 0.0  # that the run has taken so far, with those before it was resumed
        self.own_steps = 0  # that this process has collected and learned from
        self._began = time.perf_counter()
        self.learn_s = 0.0  # of the last update
        self.late = config.collect.while_learning  # batches are collected by policies of earlier updates
        self.batch: np.ndarray | None = None  # the rows it learned from

    def update(self, rollout: Rollout, collected: CollectStats) -> dict[str, float]:
        """Learn from a batch; after a failure this learner is as it was before. `count` follows, with the steps of all
        ranks.

        A policy that normalises observations only looks the first time: lessons in another unit would be worth nothing.
        """
        started = time.perf_counter()
        self.batch = collected.rows
        if self.config.ppo.schedule != "kl":
            for group in self.optimizer.param_groups:
                group["lr"] = ppo.scheduled_rate(self.config.ppo, self.steps / self.config.steps)
        good = GoodState(self)  # with this update's learning rate, which a dump needs
        rate = self.optimizer.param_groups[0]["lr"]
        normalizes = hasattr(self.policy, "take_observations")
        try:
            learns = not normalizes or self.policy.knows_observations()
            if self.clones:
                stats = cloning.update(self.policy, self.optimizer, rollout, self.config.ppo, self.rng, collected.rows,
                                       self.ranks, self.evaluate, learns)
            else:
                stats = ppo.update(self.policy, self.optimizer, self.entropy_coef, rollout, self.config.ppo, self.rng,
                                   collected.rows, self.ranks, self.evaluate, self.late, learns)
                lag = self.updates - rollout.version[collected.rows]
                stats |= {"lag/mean": float(lag.mean()), "lag/max": float(lag.max())}
            if normalizes:
                self.policy.take_observations(rollout.observations(collected.rows[: collected.steps]), self.ranks.sum_)
            check_finite(self.policy)
        except BaseException:
            good.put_back(self)
            raise
        self.updates += 1
        self.own_steps += collected.steps
        self.learn_s = time.perf_counter() - started
        return stats | {"learning_rate": rate}

    def count(self, everyone: Sequence[RankReport]) -> None:
        """Count what all ranks collected for an update: the one place where the steps of a run are counted."""
        for report in everyone:
            self.steps += report.collected.steps
            self.episodes += len(report.collected.episodes)
        now = time.perf_counter()
        self.seconds, self._began = self.seconds + now - self._began, now

    def policy_content(self, meta: dict[str, Any]) -> dict[str, Any]:
        """Of the checkpoint of this moment, what is needed to use its policy."""
        of_policy = checkpoint.policy_content(self.policy, *self.spaces, self.config.policy, self.make_policy)
        return of_policy | {"step": self.steps, "meta": plain(meta)}

    def content(self, meta: dict[str, Any]) -> dict[str, Any]:
        """The checkpoint of this moment."""
        return self.policy_content(meta) | {
            "optimizer": self.optimizer.state_dict(),
            "log_alpha": self.entropy_coef.log_alpha.detach().cpu(),
            "counters": {key: getattr(self, key) for key in ("steps", "updates", "episodes", "seconds")},
            "torch_rng": torch.get_rng_state(),
            "numpy_rng": plain_rng(self.rng),
            "train_config": plain(asdict(self.config)),
        }

    def begin_with(self, content: dict[str, Any], transfer: bool = False) -> None:
        """Begin with the policy of a checkpoint, or with what fits of it (trainer/checkpoints/transfer.py). Raises
        CheckpointError if it is of another network or sees something else."""
        if transfer:
            take_over(self.policy, content, self.make_policy)
            return
        refuse_another(content, self.make_policy)
        ours, theirs = self.policy.seen, checkpoint.seen(content)
        if list(ours.items()) != list(theirs.items()):
            raise checkpoint.CheckpointError(f"the checkpoint is of a policy that sees {theirs}; "
                                             f"this run's environments show {ours}.")
        trained = units(space_from_plain(content["observation_space"]))
        if problem := other_unit(trained, units(self.spaces[0]), ours):
            problem = problem.format("this run")
            raise checkpoint.CheckpointError(f"the checkpoint is of a policy trained with {problem}.")
        try:
            self.policy.load_state_dict(content["policy"])
        except RuntimeError as error:
            raise _another_network(error) from error

    def restore(self, content: dict[str, Any]) -> None:
        """Continue from a checkpoint. Raises CheckpointError if it is of another network."""
        self.begin_with(content)
        # The settings of this run count, but for what adapts.
        taken = {"params", "lr"} if self.config.ppo.schedule == "kl" else {"params"}
        ours = [{k: v for k, v in group.items() if k not in taken} for group in self.optimizer.param_groups]
        try:
            self.optimizer.load_state_dict(content["optimizer"])
        except (RuntimeError, ValueError, KeyError) as error:
            raise _another_network(error) from error
        for group, settings in zip(self.optimizer.param_groups, ours):
            group |= settings
        for parameter, state in self.optimizer.state.items():
            shapes = {value.shape for value in state.values() if isinstance(value, torch.Tensor)}
            if {"exp_avg", "exp_avg_sq", "step"} - set(state) or shapes - {torch.Size(), parameter.shape}:
                raise checkpoint.CheckpointError(
                    "its optimizer is not that of its policy: it has other numbers or shapes.")
            state["step"] = state["step"].cpu()
            for name in ("exp_avg", "exp_avg_sq"):  # Adam's fused step goes through memory as the parameter lies there
                state[name] = torch.empty_like(parameter).copy_(state[name])
        with torch.no_grad():
            self.entropy_coef.log_alpha.copy_(content["log_alpha"])
        for name, value in content["counters"].items():
            setattr(self, name, value)
        torch.set_rng_state(content["torch_rng"])
        saved = content.get("ranks", [])
        if len(saved) == self.ranks.size:
            self.rng = rng_from_plain(saved[self.ranks.rank]["numpy_rng"])
        else:  # written by another number of ranks, or on the way out of a failure
            self.rng = rng_from_plain(content["numpy_rng"])
            if self.ranks.rank:
                self.rng = np.random.default_rng([self.config.seed, 1, self.ranks.rank, self.updates])


class GoodState:
    """Copy of what an update changes, to go back to if it fails."""

    def __init__(self, learner: Learner):
        self.policy = {k: v.clone() for k, v in learner.policy.state_dict().items()}
        self.optimizer = copy.deepcopy(learner.optimizer.state_dict())
        self.log_alpha = learner.entropy_coef.log_alpha.detach().clone()
        self.rng = copy.deepcopy(learner.rng.bit_generator.state)

    def put_back(self, learner: Learner) -> None:
        learner.policy.load_state_dict(self.policy)
        learner.optimizer.load_state_dict(self.optimizer)
        with torch.no_grad():
            learner.entropy_coef.log_alpha.copy_(self.log_alpha)
        learner.rng.bit_generator.state = self.rng


def keep_freed_memory() -> None:
    """Let glibc keep memory that is freed, up to pieces of this size: freeing one raises its limit (mallopt(3)). Else
    an update has some 5,000 page faults, a tenth of its processor time (getrusage, blind Pick)."""
    torch.empty(30 << 20, dtype=torch.uint8)


def check_advice(policy: Policy, observation_space: spaces.Space, action_space: spaces.Space) -> None:
    """Raise ValueError unless the environments say what an expert would do."""
    numbers = (len(policy.choices) or policy.action_size) + 1
    given = observation_shapes(observation_space).get(EXPERT_ACTION)
    if given != (numbers,):
        raise ValueError(f"ppo.imitation_coef needs environments with an observation {EXPERT_ACTION!r} of {numbers} "
                         f"numbers, the expert's action and its weight; these have "
                         f"{'none' if given is None else f'one of shape {given}'}.")


def _another_network(error: Exception) -> checkpoint.CheckpointError:
    return checkpoint.CheckpointError(
        f"the checkpoint is of another network than this run's policy: {str(error).splitlines()[-1].strip()}")
