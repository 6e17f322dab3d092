"""Evaluation while a run trains: in a process of its own (trainer/workers/evaluation_process.py).

Training goes on meanwhile. What the policy of that moment reaches becomes metrics ("eval/return", "eval/success" ...),
decides which checkpoint is the best, kept as `best.pt` beside the newest three, and may end the run. The measure is the
success that episodes report in `info["metrics"]`, or their return while none has reported one. The first episode of
each evaluation is filmed where the environment was made with render_mode="rgb_array".
"""

from __future__ import annotations

import io
import logging
import pickle
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from trainer.checkpoints.compatibility import misfit
from trainer.errors import WorkerError
from trainer.workers.channel import MESSAGE, Channel, Closed, Full
from trainer.workers.evaluation_process import GIVE
from trainer.workers.plugins import load_plugins, registered
from trainer.workers.worker import START_TIMEOUT_S, end_child, how_ended, is_stopped, start_child

if TYPE_CHECKING:
    from trainer.config import TrainConfig
    from trainer.faults.stopping import Stop

_log = logging.getLogger(__name__)
LATER = 7919  # the seed of the first episode, apart from those of training
LOOK_EVERY_S = 0.01  # while the run waits
GRACE_S = 3.0  # for the process to close its environment and leave


def measure(metrics: dict[str, float]) -> tuple[str, float]:
    """What counts of an evaluation: its name and value."""
    name = "success" if "success" in metrics else "return"
    return name, metrics[name]


class Evaluator:
    """The other process, as the run sees it. One policy at a time is evaluated.

    A process that dies or hangs is started again, once; the evaluation begins anew. `is_over`: there are no more.
    """

    def __init__(self, make_env: Callable[[], Any], make_policy: Any, config: TrainConfig):
        """ValueError if `make_env` is nothing that another process can call."""
        import cloudpickle

        if not callable(make_env):
            raise ValueError(f"evaluations (eval_every) cannot call {make_env!r} to make an environment: {GIVE}.")
        load_plugins()
        try:
            blob = cloudpickle.dumps(
                (make_env, make_policy, config.eval_episodes, config.seed + LATER, config.eval_film))
        except Exception as error:
            raise ValueError(f"what makes the environment of evaluations (eval_every) cannot be sent to their process "
                             f"({error}): {GIVE}.") from error
        self._setup = pickle.dumps((list(sys.path), tuple(registered()), blob))
        self._limit_s = config.collect.step_timeout_s
        without = config.stop_at is not None
        self._without = f", and stop_at={config.stop_at:g} cannot end the run any more" if without else ""
        self._under_way: dict[str, Any] | None = None
        self._made: tuple[str, Any] | None = None  # what the first process that made its environment told of it
        self._may_start_again, self.is_over = True, False
        self._silent_s, self._looked_at = 0.0, time.monotonic()  # how long it had said nothing at that time
        self._start()

    def _start(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = start_child("trainer.workers.evaluation_process", theirs)
        self._channel = Channel(ours)
        self._channel.limit_sends(self._limit_s)
        self._is_ready = False  # its environment is made
        self._send(self._setup)

    def check(self, policy: Any, stop: Stop) -> None:
        """Wait until the environment is made, or somebody asks to stop. ValueError if it is none that `policy` can be
        played in, WorkerError if making it raises."""
        from trainer.policy import observation_shapes
        from trainer.spaces import action_numbers, choices, flat_space, units

        while not (self._made or self.is_over or stop.asked):
            self._hear()
            time.sleep(LOOK_EVERY_S)
        if self._made is None:
            return
        kind, told = self._made
        if kind == "error":
            raise WorkerError(f"the environment of evaluations (eval_every) cannot be made: {told.rstrip()}")
        if kind == "several":
            raise ValueError(f"evaluations (eval_every) play one environment, and were given {told}, several in one: "
                             f"{GIVE}.")
        if kind == "none":
            raise ValueError(f"evaluations (eval_every) were given {told}, which is no Gymnasium environment: {GIVE}.")
        seen, action = pickle.loads(told)
        flat = flat_space(seen)
        if problem := misfit(policy, observation_shapes(flat), action_numbers(action), choices(action),
                             "that of evaluations", units(flat)):
            raise ValueError(f"the policy cannot be played in the environment of evaluations (eval_every): {problem}; "
                             f"{GIVE}.")

    @property
    def is_busy(self) -> bool:
        return self._under_way is not None

    def ask(self, content: dict[str, Any]) -> None:
        """Evaluate the policy of a checkpoint's content, which must not change any more."""
        self._under_way = content
        if self._is_ready:
            self._send_policy()

    def answer(self) -> tuple[dict[str, Any], dict[str, float], bytes | None] | None:
        """Content that was evaluated, what it reached and a film (GIF), if known by now. An evaluation that raises is a
        warning, and the last one."""
        if self._under_way is None or (heard := self._hear()) is None:
            return None
        content, self._under_way = self._under_way, None
        kind, told, *film = heard
        if kind == "error":
            self._end(f"the policy is not evaluated any more{self._without}: {told}")
            return None
        return content, told, film[0]

    def _hear(self) -> tuple | None:
        """The outcome of an evaluation, if it is known by now. Starts a process that has died or hangs again. Time in
        which nobody listened counts as a quarter of the limit at most."""
        has_ended = self._process.poll() is not None  # asked before, lest its last words are overlooked
        self._channel.sock.setblocking(False)
        try:
            messages = [pickle.loads(payload) for _, payload in self._channel.receive()]
        except Closed:  # or nothing there yet
            messages = []
        now, limit_s = time.monotonic(), self._limit_s if self._is_ready else START_TIMEOUT_S
        self._silent_s = 0.0 if messages else self._silent_s + min(now - self._looked_at, limit_s / 4)
        self._looked_at = now
        for message in messages:
            if message[0] == "does":
                self._doing = message[1]
            elif self._is_ready or message[0] == "error" and self._made:
                return message
            else:
                self._is_ready, self._made = True, self._made or message
                if self._under_way:
                    self._send_policy()
        if has_ended and not messages:
            self._begin_again(how_ended(self._process), may_pass=True)
        elif self._silent_s > limit_s:
            stopped = is_stopped(self._process)
            why = "was stopped by a signal" if stopped else "hangs"
            limit = f" (collect.step_timeout_s={limit_s:g})" if self._is_ready else ""
            self._begin_again(f"{why}: it has not finished {self._doing} for {self._silent_s:.0f} s{limit}",
                              may_pass=stopped or self._is_ready)
        return None

    def _begin_again(self, why: str, may_pass: bool) -> None:
        """Once. may_pass: another process may do better."""
        self._end()
        if self._may_start_again and may_pass:
            self._may_start_again, self.is_over = False, False
            _log.warning("the evaluation process %s; it is started again.", why)
            self._start()
        else:
            before = "" if self._may_start_again else ", after it had been started again"
            self._end(f"the evaluation process {why}{before}: no more evaluations come{self._without}.")

    def _send_policy(self) -> None:
        import torch

        file = io.BytesIO()
        torch.save(self._under_way, file)
        self._send(file.getvalue())

    def _send(self, payload: bytes) -> None:
        """What does not arrive is noticed when the process says nothing."""
        self._doing = "what it was told" if self._is_ready else "making its environment"
        self._channel.sock.setblocking(True)
        try:
            self._channel.send(MESSAGE, payload)
        except (Closed, Full):
            pass
        self._silent_s, self._looked_at = 0.0, time.monotonic()

    def _end(self, warning: str = "") -> None:
        """End the process at once, for good."""
        self.is_over = True
        self._channel.sock.close()
        end_child(self._process)
        if warning:
            self._under_way = None
            _log.warning(warning)

    def close(self) -> None:
        """Let the process close its environment, and end it."""
        self._channel.sock.close()
        if self._is_ready and not self.is_over:
            try:
                self._process.wait(GRACE_S)
            except subprocess.TimeoutExpired:
                _log.warning("the evaluation process has not finished a step, or close() of its environment, for %g s, "
                             "and is killed.", GRACE_S)
        end_child(self._process)
