"""N environments in worker processes, as the collector sees them: ask some to step, hear which are ready."""

from __future__ import annotations

import itertools
import logging
import os
import pickle
import selectors
import socket
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any, Callable

import numpy as np
from gymnasium.spaces import Box

from trainer.config import CollectConfig
from trainer.errors import WorkerError
from trainer.policy import observation_shapes
from trainer.spaces import choices, flat_space, layout, stored_as
from trainer.workers.channel import MESSAGE, STEP, Channel, Closed, Full, SharedArrays
from trainer.workers.plugins import load_plugins, registered
from trainer.workers.worker import DOING, START_TIMEOUT_S, Setup, end_child, how_ended, is_stopped, start_child

LOOK_EVERY_S = 1.0  # for workers that hang
GRACE_S = 3.0  # for all workers together to close their environments and leave

_log = logging.getLogger(__name__)


class WorkerProcess:
    """The learner's handle of one worker."""

    def __init__(self, index: int, setup: Setup):
        self.index, self.setup = index, setup
        ours, theirs = socket.socketpair()
        with theirs:
            self.process = start_child("trainer.workers.worker", theirs)
        self.channel = Channel(ours)
        self.channel.limit_sends(START_TIMEOUT_S)
        try:
            self.channel.send(MESSAGE, pickle.dumps(setup))
        except (Closed, Full):  # it died or stopped at once: the first read tells how
            pass

    @property
    def name(self) -> str:
        last = self.setup.first_env + self.setup.num_envs - 1
        return f"environment worker {self.index} (environments {self.setup.first_env}-{last}, pid {self.process.pid})"

    def kill(self, grace_s: float) -> None:
        """Wait for the process to end, `grace_s` at most; then end it."""
        if not end_child(self.process, grace_s):
            _log.warning("%s does not end although it was killed: it waits for a device or a network file.", self.name)


class Environments:
    """Worker processes, the memory shared with them, and who is stepping.

    With `seed_episodes`, each environment begins by playing again the episode and actions that `replay` gives for it.
    `obs`, `final_obs` (key -> (N, ...)), `reward`, `terminated`, `truncated` (N,) are the shared slots: valid for an
    environment from the moment it is `ready` until it is stepped again. `final_obs` is the state a time limit cut off.
    """

    batched = asynchronous = False

    def __init__(self, make_env: Callable[[], Any], config: CollectConfig, seed: int, offset: int = 0,
                 seed_episodes: bool = False, replay: Sequence[tuple[int, np.ndarray]] = ()):
        self.config = config
        self.workers: list[WorkerProcess] = []
        self.shared: SharedArrays | None = None
        self._selector = selectors.DefaultSelector()
        try:
            self._start(make_env, seed, offset, seed_episodes, tuple(replay))
        except BaseException:
            self.close()
            raise
        n = config.num_envs
        self.ready: list[int] = []  # environments whose observation waits for an action, oldest first
        self.under_way = np.ones(n, bool)  # stepping, or at its first reset
        self.asked_at = np.full(n, time.monotonic())  # since when
        self.ended: dict[int, dict[str, float]] = {}  # environment -> figures of the episode its last step ended
        self._lock = threading.Lock()  # one thread may read while others ask for steps
        self._owed = np.bincount(self.worker_of)  # steps that each worker has under way
        self._silent_s = np.zeros(len(self.workers))  # how long each had said nothing, while it owed a step, at ...
        self._looked_at = time.monotonic()
        self._look_every_s = min(LOOK_EVERY_S, config.step_timeout_s / 4)

    def _start(self, make_env: Callable[[], Any], seed: int, offset: int, seed_episodes: bool, replay: tuple) -> None:
        import cloudpickle

        count = min(self.config.num_workers or os.cpu_count() or 1, self.config.num_envs)
        if not callable(make_env):
            raise ValueError(f"make_env is {make_env!r}, not something that can be called to make an environment.")
        try:
            blob = cloudpickle.dumps(make_env)
        except Exception as error:
            raise ValueError(f"make_env cannot be sent to the worker processes ({error}): let it make what it needs "
                             "when it is called.") from error
        load_plugins()
        specs = tuple(registered())
        shares = np.array_split(np.arange(self.config.num_envs), count)
        for i, share in enumerate(shares):
            mine = replay[share[0] : share[-1] + 1]
            # appo's two halves: while one is answered, the worker steps the other (double-buffered sampling)
            announced = -(-len(share) // 2) if self.config.mode == "appo" else len(share)
            setup = Setup(blob, int(share[0]), len(share), seed, list(sys.path), seed_episodes, mine, specs, offset,
                          announced)
            worker = WorkerProcess(i, setup)
            self.workers.append(worker)
            self._selector.register(worker.channel, selectors.EVENT_READ, worker)
        self.worker_of = np.concatenate([np.full(len(s), i) for i, s in enumerate(shares)])
        self._local = np.concatenate([np.arange(len(s)) for s in shares]).astype("<u2")  # number among its worker's
        self.made_from: dict[str, Any] | None = None  # the id and kwargs that gymnasium.make had, if it made them
        observation_space, self.action_space = self._spaces()
        self.observation_space = flat_space(observation_space)
        self._allocate()
        for worker in self.workers:
            worker.channel.limit_sends(self.config.step_timeout_s)

    def _spaces(self) -> tuple[Any, Any]:
        """Wait until every worker has built its environments."""
        spaces: dict[int, tuple] = {}
        deadline = time.monotonic() + START_TIMEOUT_S
        while len(spaces) < len(self.workers):
            for worker, messages in self._poll(max(0.0, deadline - time.monotonic())):
                for _, payload in messages:
                    message = pickle.loads(payload)
                    if message[0] == "refused":
                        raise ValueError(message[1])
                    if message[0] == "error":
                        raise WorkerError(_failure_text(worker, message))
                    spaces[worker.index], self.made_from = message[1:]
            if time.monotonic() > deadline:
                slow = next(w for w in self.workers if w.index not in spaces)
                why = ": it was stopped by a signal" if is_stopped(slow.process) else ""
                raise WorkerError(f"{slow.name} did not start within {START_TIMEOUT_S:.0f} s{why}.")
        if len({layout(*pair) for pair in spaces.values()}) > 1:
            raise ValueError("make_env gave environments of different spaces; all have to have the same.")
        return spaces[0]

    def _allocate(self) -> None:
        n = self.config.num_envs
        shapes = observation_shapes(self.observation_space)
        action = self.action_space
        action_dtype = "i8" if choices(action) else "f4"
        kept = {k: kind.str for k, kind in stored_as(self.observation_space).items()}
        fields = {f"{what}/{k}": ((n, *s), kept[k]) for what in ("obs", "final") for k, s in shapes.items()}
        fields |= {"action": ((n, *action.shape), action_dtype), "reward": ((n,), "f4"), "step_s": ((n,), "f4"),
                   "terminated": ((n,), "?"), "truncated": ((n,), "?"), "doing": ((n,), "u1")}
        self.shared = SharedArrays(fields)
        for worker in self.workers:
            worker.channel.send_with_fd(pickle.dumps(fields), self.shared.fd)
        self.obs = {k: self.shared[f"obs/{k}"] for k in shapes}
        self.final_obs = {k: self.shared[f"final/{k}"] for k in shapes}
        self.reward, self.terminated, self.truncated = (self.shared[k] for k in ("reward", "terminated", "truncated"))

    def step(self, envs: np.ndarray, action: np.ndarray) -> None:
        """Write the actions (clipped to a Box) and tell the workers. envs (B,), action (B, A)."""
        space = self.action_space
        action = action.reshape(len(envs), *space.shape)
        self.shared["action"][envs] = np.clip(action, space.low, space.high) if isinstance(space, Box) else action
        owner = self.worker_of[envs]
        order = owner.argsort(kind="stable")
        owner, local = owner[order], self._local[envs[order]]
        cuts = (np.flatnonzero(owner[1:] != owner[:-1]) + 1).tolist()
        with self._lock:
            now = time.monotonic()
            self.asked_at[envs] = now
            self.under_way[envs] = True
            for begin, end in itertools.pairwise((0, *cuts, len(envs))):
                self._ask(self.workers[owner[begin]], local[begin:end], now)

    def _ask(self, worker: WorkerProcess, local: np.ndarray, now: float) -> None:
        if not self._owed[worker.index]:
            self._silent_s[worker.index] = self._looked_at - now  # it is waited for from now on
        self._owed[worker.index] += len(local)
        try:
            worker.channel.send(STEP, local.tobytes())
        except Full:
            self._raise_hang(worker, self.config.step_timeout_s)
        except Closed:
            self._raise_death(worker)

    def read(self, timeout_s: float) -> None:
        """Take in what workers say within `timeout_s`; raise WorkerError for one that failed, died or hangs."""
        heard = self._poll(timeout_s)
        with self._lock:
            self._take_in(heard)

    def _take_in(self, heard: list[tuple[WorkerProcess, list[tuple[bytes, bytes]]]]) -> None:
        now = time.monotonic()
        for worker, messages in heard:
            self._silent_s[worker.index] = self._looked_at - now
            for tag, payload in messages:
                if tag == STEP:
                    envs = (np.frombuffer(payload, "<u2").astype(np.int64) + worker.setup.first_env).tolist()
                    self.under_way[envs] = False
                    self._owed[worker.index] -= len(envs)
                    self.ready += envs
                else:
                    self._message(worker, pickle.loads(payload))
        if now - self._looked_at > self._look_every_s:
            self._look(now)

    def _look(self, now: float) -> None:
        """Raise WorkerError if a worker that owes a step has said nothing for too long. A worker with much to do may be
        slow with each of its environments, but says when one is done. Time in which nobody listened, because the
        learner learned or was stopped with its workers, counts as a quarter of the limit at most."""
        for worker in self.workers:
            if worker.process.poll() is not None:  # a child of its own may hold the socket open
                self._raise_death(worker)
        limit = self.config.step_timeout_s
        self._silent_s += min(now - self._looked_at, limit / 4)
        self._silent_s[self._owed == 0] = 0.0
        self._looked_at = now
        worst = int(self._silent_s.argmax())
        if self._silent_s[worst] > limit:
            self._raise_hang(self.workers[worst], self._silent_s[worst])

    def _raise_hang(self, worker: WorkerProcess, seconds: float) -> None:
        e, doing = self._occupied(worker)
        if e is None:  # it has not even begun
            mine = np.flatnonzero((self.worker_of == worker.index) & self.under_way)
            e, doing = int(mine[self.asked_at[mine].argmin()]), "step"
        why = "it was stopped by a signal, and " if is_stopped(worker.process) else ""
        raise WorkerError(f"{worker.name} hangs: {why}environment {e} has not finished its {doing} for {seconds:.0f} s "
                          f"(collect.step_timeout_s={self.config.step_timeout_s:g}).")

    def _occupied(self, worker: WorkerProcess) -> tuple[int | None, str]:
        """The environment that a worker is in, and whether at a step or a reset; (None, "") if it waits."""
        first = worker.setup.first_env
        if self.shared is not None:
            for e in first + np.flatnonzero(self.shared["doing"][first : first + worker.setup.num_envs]):
                return int(e), DOING[self.shared["doing"][e]]
        return None, ""

    def worker_name(self, env: int) -> str:
        """The worker that steps an environment, for messages."""
        return self.workers[self.worker_of[env]].name

    def _poll(self, timeout_s: float) -> list[tuple[WorkerProcess, list[tuple[bytes, bytes]]]]:
        out = []
        for key, _ in self._selector.select(timeout_s):
            try:
                out.append((key.data, key.data.channel.receive()))
            except Closed:
                self._raise_death(key.data)
        return out

    def _message(self, worker: WorkerProcess, message: tuple) -> None:
        if message[0] == "error":
            raise WorkerError(_failure_text(worker, message))
        if message[0] == "episode":
            _, env, episode = message
            self.ended[env] = episode

    def _raise_death(self, worker: WorkerProcess) -> None:
        """It has ended: prefer the worker's own last words to the bare fact."""
        worker.channel.sock.setblocking(False)
        try:
            for tag, payload in worker.channel.receive():
                if tag == MESSAGE and (message := pickle.loads(payload))[0] == "error":
                    raise WorkerError(_failure_text(worker, message))
        except Closed:
            pass
        death = how_ended(worker.process)
        e, doing = self._occupied(worker)
        raise WorkerError(f"{worker.name} {death}{'' if e is None else f' during a {doing} of environment {e}'}.")

    def __enter__(self) -> Environments:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop all workers; none outlives this call."""
        for worker in self.workers:
            worker.channel.sock.close()  # end-of-file: the worker leaves after the step it is in
        deadline = time.monotonic() + GRACE_S
        for worker in self.workers:
            worker.kill(deadline - time.monotonic())
        self._selector.close()
        if self.shared is not None:
            self.obs = self.final_obs = {}
            self.reward = self.terminated = self.truncated = None
            self.shared.close()
            self.shared = None


def _failure_text(worker: WorkerProcess, message: tuple) -> str:
    _, where, trace = message
    between = "\n" if "\n" in trace.rstrip() else ": "
    return f"{worker.name} failed: {where}{between}{trace.rstrip()}"
