"""Environments stepped together in this process: a `gymnasium.vector.VectorEnv`, or anything with its few methods.

What the collector sees is the same as of workers (trainer/workers/environments.py): who is ready, and slots that are
valid until an environment is stepped again. Docs: docs/batched.md.

Where an environment resets itself one step after its end (AutoresetMode.NEXT_STEP, EnvPool), that step is made without
the policy: the environment is ready again when its new episode has begun.
"""

from __future__ import annotations

import logging
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np
import torch
from gymnasium import Wrapper, spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.vector.utils import batch_space, iterate
from gymnasium.wrappers import TransformObservation
from torch import Tensor

from trainer.config import CollectConfig
from trainer.errors import WorkerError
from trainer.logs.printable import printable
from trainer.policy import observation_shapes
from trainer.spaces import choices, flat_space, flattener, stored_as, whole
from trainer.workers.dtype_checks import LARGEST_WHOLE, NotOfItsSpace, changed, may_change
from trainer.workers.leaving import Left, in_this_process
from trainer.workers.worker import LARGEST_REWARD, RESET_GIVES, STEP_GIVES, counted, episode_figures, in_words

__all__ = ["BatchedEnv", "BatchedEnvironments"]

_log = logging.getLogger(__name__)


class BatchedEnv(Protocol):
    """What the engine asks of N environments in one; a `gymnasium.vector.VectorEnv` has it all. Arrays have a leading
    N, and are of numpy or of torch; torch tensors stay on their device."""

    num_envs: int
    single_observation_space: spaces.Space
    """Any of the engine; observations come as Gymnasium's vectors have them (gymnasium.vector.utils.batch_space)."""
    single_action_space: spaces.Space
    metadata: dict[str, Any]
    """`autoreset_mode`: a gymnasium.vector.AutoresetMode or its value; NextStep (the default), SameStep, Disabled."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict]:
        """Observations and info. Disabled: `options["reset_mask"]` (N,) says which are reset later on."""

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict]:
        """Observations, rewards, terminated, truncated, info. SameStep: `info["final_obs"]` has the last observations
        of the episodes that have just ended, and the observations are already those of new ones."""

    def close(self) -> None: ...


class BatchedEnvironments:
    """A BatchedEnv as the collector sees environments."""

    batched = True
    made_from = None

    def __init__(self, make_env: Callable[[], Any], config: CollectConfig, seed: int, rank: int = 0):
        """`seed`: as of Environments; a rank's seeds follow those of the rank before. ValueError for another kind of
        vector."""
        try:
            with in_this_process():
                self.env = env = _made(make_env, config)
        except Left as error:
            raise WorkerError(f"the environment (collect.num_workers=0) failed while it was made:\n{error}") from None
        self.num_envs = n = int(env.num_envs)
        try:
            self._prepare(seed + rank * n, config.max_batch)  # environment i is seeded with this + i
        except BaseException:
            self.__exit__()
            raise
        self.under_way = np.zeros(n, bool)
        self.asked_at = np.full(n, time.monotonic())

    def _prepare(self, seed: int, max_batch: int | None) -> None:
        env, n = self.env, self.num_envs
        self.observation_space, self.action_space = flat_space(env.single_observation_space), env.single_action_space
        self._flatten = flattener(env.single_observation_space)
        boxes = getattr(self.observation_space, "spaces", {"obs": self.observation_space})
        self._delicate = {k: box.dtype for k, box in boxes.items() if may_change(box.dtype)}
        self._together = batch_space(env.single_observation_space, n) if self._flatten else None
        choices(self.action_space)
        self._mode = _mode(env)
        self.asynchronous = hasattr(env, "recv") and _batch_size(env) < n
        if not self.asynchronous and max_batch and max_batch < n:
            raise ValueError(f"collect.max_batch={max_batch} is not possible with {n} environments that are stepped "
                             "together: all are answered at once. Leave it out.")
        self._kept = stored_as(self.observation_space)
        self._shapes = observation_shapes(self.observation_space)
        self.ready: list[int] = []
        self.ended: dict[int, dict[str, float]] = {}
        self.reward = np.zeros(n, np.float32)
        self.terminated, self.truncated = np.zeros(n, bool), np.zeros(n, bool)
        self._resets = np.zeros(n, bool)  # the next step of these begins a new episode, whatever the action
        self._returns, self._lengths = np.zeros(n), np.zeros(n, int)
        self._steps = 0  # of the batch
        self._action = np.zeros((n, *self.action_space.shape), self.action_space.dtype)
        self.obs: dict[str, Any] = {}
        if self.asynchronous:
            with self._during("reset"):
                env.async_reset()
            self._resets[:] = True
            self._owed = n  # results that `recv` will give
            self.obs = {k: np.zeros((n, *shape), self._kept[k]) for k, shape in self._shapes.items()}
        else:
            obs = self._reset(**({} if hasattr(env, "recv") else {"seed": seed % 2**31}))  # EnvPool has its seed
            self.obs = {k: v.clone() if isinstance(v, Tensor) else np.array(v) for k, v in obs.items()}
            self.ready = list(range(n))
        self.final_obs = {k: (torch if isinstance(v, Tensor) else np).zeros_like(v) for k, v in self.obs.items()}

    def step(self, envs: np.ndarray, action: np.ndarray) -> None:
        """Step these, and whoever only resets itself. envs (B,); action (B, A), clipped and rounded to a Box here."""
        space = self.action_space
        action = action.reshape(len(envs), *space.shape)
        if isinstance(space, spaces.Box):
            self._action[envs] = np.clip(np.rint(action) if whole(space) else action, space.low, space.high)
        else:
            self._action[envs] = action + getattr(space, "start", 0)
        self.asked_at[envs] = time.monotonic()
        if self.asynchronous:
            self._send(envs)
        else:
            self._step_all()

    def read(self, timeout_s: float) -> None:
        """If nobody is ready, step those that only reset themselves, or take in answers of an asynchronous
        environment."""
        if self.ready:
            return
        if not self.asynchronous:
            self._step_all()
            return
        with self._during("step"):
            answer = self.env.recv()
            ids = self._ids(answer)
            self._owed -= len(ids)
            self._take(ids, answer)
        again = ids[self._resets[ids]]
        if len(again):
            self._send(again)

    def _ids(self, answer: Any) -> np.ndarray:
        """Which environments answer, each of them once."""
        info = answer[-1] if isinstance(answer, (tuple, list)) and answer else None
        ids = np.asarray(info.get("env_id") if isinstance(info, dict) else None)
        fine = ids.ndim == 1 and ids.dtype.kind in "iu" and len(np.unique(ids)) == len(ids)
        if not (fine and ((0 <= ids) & (ids < self.num_envs)).all()):
            raise self._failure("step", f"its recv has the env_id {printable(ids.tolist(), 60)}, not different ones "
                                        f"from 0 to {self.num_envs - 1}.")
        return ids.astype(np.int64)

    def _send(self, envs: np.ndarray) -> None:
        self._owed += len(envs)
        with self._during("step"):
            self.env.send(self._action[envs], envs.astype(np.int32))

    def _step_all(self) -> None:
        given: Any = self._action.copy()  # which environments may keep
        like = next(iter(self.obs.values()))
        if isinstance(like, Tensor):
            given = torch.from_numpy(given).to(like.device)
        with self._during("step"):
            self._take(np.arange(self.num_envs), self.env.step(given))

    def _reset(self, **words: Any) -> dict[str, Any]:
        """Observations (N, ...) of a reset."""
        with self._during("reset"):
            answer = self.env.reset(**words)
            if not isinstance(answer, (tuple, list)) or len(answer) != 2:
                raise self._failure("reset", f"reset gave {counted(answer)}{RESET_GIVES}")
            return self._typed(answer[0], self.num_envs)

    @contextmanager
    def _during(self, doing: str) -> Iterator[None]:
        """A WorkerError for whatever an environment raises in a "step" or "reset", with its own traceback."""
        try:
            with in_this_process():
                yield
        except WorkerError:
            raise
        except Left as error:
            raise self._failure(doing, str(error), _number(error.__cause__)) from None
        except Exception as error:
            raise self._failure(doing, in_words(error).rstrip(), _number(error)) from None

    def _failure(self, doing: str, why: str, env: int | None = None) -> WorkerError:
        """Of one environment, where it is known; else of the batch."""
        if env is None:
            who = f"the batched environment {type(self.env).__name__} (of {self.num_envs})"
            when = f"step {self._steps + 1}" if doing == "step" else doing
        else:
            who = self.worker_name(env)
            when = f"step {self._lengths[env] + 1} of its episode" if doing == "step" else doing
        between = "\n" if "\n" in why else " "
        return WorkerError(f"{who} failed at {when}:{between}{why}")

    def _take(self, ids: np.ndarray, answer: Any) -> None:
        """The answers of environments `ids` (B,); leading dimension B everywhere."""
        if not isinstance(answer, (tuple, list)) or len(answer) != 5:
            raise self._failure("step", f"step gave {counted(answer)}{STEP_GIVES}")
        obs, *numbers, info = answer
        reward, terminated, truncated = (
            self._row(name, each, len(ids)) for name, each in zip(("reward", "terminated", "truncated"), numbers))
        began, obs = self._resets[ids], self._typed(obs, len(ids))
        if not (np.abs(reward) <= LARGEST_REWARD).all():
            bad = int(ids[~(np.abs(reward) <= LARGEST_REWARD)][0])
            raise self._failure("step", f"reward is {reward[ids == bad][0]}, not a finite number of single "
                                        "precision.", bad)
        stepped = ids[~began]
        self.reward[stepped], self.terminated[stepped], self.truncated[stepped] = (
            each[~began] for each in (reward, terminated, truncated))
        self._returns[stepped] += reward[~began]
        self._lengths[stepped] += 1
        over = ~began & (terminated.astype(bool) | truncated.astype(bool))
        waits = over & (self._mode == "NextStep")
        self._write(self.obs, ids[~waits], obs, ~waits)
        if over.any():
            self._end(ids, over, obs, info)
        self._resets[ids] = waits
        self._steps += 1
        self.ready += ids[~waits].tolist()

    def _end(self, ids: np.ndarray, over: np.ndarray, obs: dict[str, Any], info: dict) -> None:
        for i in np.flatnonzero(over):
            e = int(ids[i])
            own = {"return": float(self._returns[e]), "length": float(self._lengths[e])}
            self.ended[e] = episode_figures(_told(info, i)) | own
            self._returns[e], self._lengths[e] = 0.0, 0
        if self._mode == "SameStep":
            final = info.get("final_obs", info.get("final_observation"))
            if final is None:
                raise self._failure("step", "its autoreset mode is SameStep, and its info has no 'final_obs'.")
            if isinstance(final, np.ndarray) and final.dtype == object:  # one by one, None where no episode ended
                last = [self._flatten(each) if self._flatten else each for each in final[over]]
                obs = self._checked(_stacked(last), len(last))
                self._write(self.final_obs, ids[over], obs, np.ones(len(last), bool))
                return
            obs = self._typed(final, len(ids), over)
        self._write(self.final_obs, ids[over], obs, over)
        if self._mode == "Disabled":
            mask = np.zeros(self.num_envs, bool)
            mask[ids[over]] = True
            self._write(self.obs, ids[over], self._reset(options={"reset_mask": mask}), over)

    def _row(self, name: str, values: Any, count: int) -> np.ndarray:
        """`values` as (B,), a number for each environment."""
        try:
            row = _numpy(values)
            if row.dtype == object:  # numpy takes None for NaN
                row = np.array([float(each) for each in row.flat]).reshape(row.shape)
        except (TypeError, ValueError):
            raise self._failure("step", f"{name} is {values!r}, not a number for each environment.") from None
        if row.shape != (count,) or row.dtype.kind not in "biuf":
            raise self._failure("step", f"{name} has shape {row.shape} and type {row.dtype}, not a number for each "
                                        f"environment: ({count},).")
        if name != "reward" and (wrong := row[(row != 0) & (row != 1)]).size:
            raise self._failure("step", f"{name} is {wrong[0]}, not true or false.")
        return row

    def _typed(self, obs: Any, count: int, which: np.ndarray | None = None) -> dict[str, Any]:
        """Of `count` environments, by key, as they are kept. Those outside of `which` (count,) may be of any value."""
        if self._flatten:
            if _has_tensor(obs):
                raise self._failure("step" if self.obs else "reset", "its observations are torch tensors: they have to "
                                    f"be of a Box or a Dict of Boxes, and are of the space "
                                    f"{self.env.single_observation_space}.")
            each = list(iterate(self._together, obs))
            known = self._flatten(each[0 if which is None else int(which.argmax())])
            obs = _stacked([self._flatten(one) if which is None or which[i] else known for i, one in enumerate(each)])
        return self._checked(obs, count, which)

    def _checked(self, obs: Any, count: int, which: np.ndarray | None = None) -> dict[str, Any]:
        """As `_typed`, of observations that are a Box or a Dict of Boxes."""
        doing, values = "step" if self.obs else "reset", obs if isinstance(obs, dict) else {"obs": obs}
        out = {}
        for k, kind in self._kept.items():
            if k not in values:
                raise self._failure(doing, f"the observation has no '{k}', which its space has.")
            v = values[k]
            if np.shape(v) != (count, *self._shapes[k]):
                raise self._failure(doing, f"observation '{k}' has shape {tuple(np.shape(v))}, its space says "
                                           f"{self._shapes[k]} for each of {count} environments.")
            v = v if isinstance(v, Tensor) else np.asarray(v)
            if not isinstance(v, Tensor) and v.dtype.kind not in "biufO":
                raise self._failure(doing, f"observation '{k}' is of type {v.dtype}, not of numbers.")
            if k in self._delicate:
                asked = v if which is None else v[_beside(which, v)]
                if problem := changed(k, self._delicate[k], _doubtful(asked, kind) if isinstance(v, Tensor) else asked):
                    raise self._failure(doing, problem)
            if isinstance(v, Tensor):
                out[k] = v.to(torch.uint8 if kind == np.uint8 else torch.float32)
            else:
                out[k] = np.asarray(v, kind)
        return out

    @staticmethod
    def _write(slots: dict[str, Any], ids: np.ndarray, obs: dict[str, Any], which: np.ndarray) -> None:
        """The observations of `which` (B,) into the slots of `ids`."""
        if not len(ids):
            return
        for k, slot in slots.items():
            slot[_beside(ids, slot)] = obs[k][_beside(which, slot)]

    def worker_name(self, env: int) -> str:
        """For messages."""
        return f"the batched environment {type(self.env).__name__} (number {env} of {self.num_envs})"

    def __enter__(self) -> BatchedEnvironments:
        return self

    def __exit__(self, *exception: object) -> None:
        """An error while the environment is closed is a warning, and does not hide how the run ended."""
        try:
            with in_this_process():
                self.env.close()
        except (Left, Exception) as error:
            _log.warning("the batched environment %s failed while it was closed:\n%s", type(self.env).__name__,
                         str(error) if isinstance(error, Left) else in_words(error).rstrip())


def _made(make_env: Callable[[], Any], config: CollectConfig) -> Any:
    if not callable(make_env):
        raise ValueError(f"make_env is {make_env!r}, not something that can be called to make an environment.")
    env = make_env()
    needed = ("num_envs", "single_observation_space", "single_action_space", "reset", "step", "close")
    if hasattr(env, "observation_space") and not (hasattr(env, "single_observation_space") or hasattr(env, "num_envs")):
        flat_space(env.observation_space)
        env.close()
        return SyncVectorEnv([lambda: _Figures(_flat(make_env()))] * config.num_envs,
                             autoreset_mode=AutoresetMode.SAME_STEP)
    if missing := [name for name in needed if not hasattr(env, name)]:
        raise ValueError(f"make_env gave {env!r} without {', '.join(missing)}: collect.num_workers=0 takes a "
                         "gymnasium.vector.VectorEnv or what trainer.workers.batched.BatchedEnv asks for.")
    return env


class _Figures(Wrapper):
    """An environment whose figures are floats: a vector gives all of them the type of the one that comes first, so that
    0.9 beside a 0 becomes 0 (findings/gymnasium_vector_info_dtype.sh)."""

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        *others, info = self.env.step(action)
        return *others, info | {"metrics": episode_figures(info)} if "metrics" in info else info


def _flat(env: Any) -> Any:
    """A single environment whose observations are a Box or a Dict of Boxes, of the values that it shows."""
    flatten, flat = flattener(env.observation_space), flat_space(env.observation_space)
    delicate = {k: box.dtype for k, box in getattr(flat, "spaces", {"obs": flat}).items() if may_change(box.dtype)}

    def shown(observation: Any) -> Any:
        observation = flatten(observation) if flatten else observation
        values = observation if isinstance(observation, dict) else {"obs": observation}
        for key, kind in delicate.items():
            if key in values and (problem := changed(key, kind, values[key])):
                raise NotOfItsSpace(problem)
        return observation

    return TransformObservation(env, shown, flat) if flatten or delicate else env


def _stacked(each: list[Any]) -> Any:
    """Observations of several environments as one, by key where they are a Dict; without what one of them lacks."""
    if not isinstance(each[0], dict):
        return np.stack(each)
    return {k: np.stack([one[k] for one in each]) for k in each[0] if all(k in one for one in each)}


def _has_tensor(obs: Any) -> bool:
    parts = obs.values() if isinstance(obs, dict) else obs if isinstance(obs, (tuple, list)) else ()
    return isinstance(obs, Tensor) or any(map(_has_tensor, parts))


def _doubtful(values: Tensor, kind: np.dtype) -> np.ndarray:
    """Of a tensor, on whatever device, those that may not be kept as they are: all others stay there."""
    if values.dtype == torch.uint8:
        return np.empty(0, np.uint8)
    if kind == np.uint8:
        return values[values.to(torch.uint8).to(values.dtype) != values].cpu().numpy()
    return values[(values > LARGEST_WHOLE) | (values < -LARGEST_WHOLE)].cpu().numpy()


def _told(info: dict, i: int) -> dict[str, Any]:
    """What the `i`-th environment tells of an episode that has just ended, as `gymnasium.vector` hands it on: an array
    for each figure, and under its name with `_` before it, who has told it."""
    last = info.get("final_info")
    told = (last if isinstance(last, dict) else info).get("metrics")
    if not isinstance(told, dict):
        return {}
    figures = {k: v for k, v in told.items() if np.ndim(v) and not k.startswith("_")}
    return {"metrics": {k: v[i] for k, v in figures.items() if f"_{k}" not in told or told[f"_{k}"][i]}}


def _mode(env: Any) -> str:
    mode = (getattr(env, "metadata", None) or {}).get("autoreset_mode", "NextStep")
    mode = str(getattr(mode, "value", mode))
    if mode not in ("NextStep", "SameStep", "Disabled"):
        raise ValueError(f"the autoreset mode of the batched environment is {mode}, and not NextStep, SameStep or "
                         "Disabled.")
    return mode


def _batch_size(env: Any) -> int:
    settings = getattr(env, "config", None)
    return int(settings.get("batch_size", env.num_envs)) if isinstance(settings, dict) else int(env.num_envs)


def _number(error: BaseException) -> int | None:
    """Which environment of a SyncVectorEnv raised; None where it is not known."""
    frames = [frame.f_locals for frame, _ in traceback.walk_tb(error.__traceback__)]
    for here, inner in zip(frames, [*frames[1:], None]):
        vector, i = here.get("self"), here.get("i")
        if isinstance(vector, SyncVectorEnv) and isinstance(i, int):
            if inner is None or inner.get("self") is vector.envs[i]:
                return i
    return None


def _beside(index: np.ndarray, values: Any) -> Any:
    """An index for values that are arrays or, on whatever device, tensors."""
    return torch.from_numpy(index).to(values.device) if isinstance(values, Tensor) else index


def _numpy(values: Any) -> np.ndarray:
    return values.cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)
