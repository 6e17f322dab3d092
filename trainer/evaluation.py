"""Evaluation while a run trains: in a process of its own, in environments of its own, one episode after another.

Training goes on meanwhile. What the policy of that moment reaches becomes metrics ("eval/return", "eval/success" ...), decides which
checkpoint is the best, kept as `best.pt` beside the newest three, and may end the run. The measure is the success that episodes
report in `info["metrics"]`, or their return while none has reported one. The first episode of each evaluation is filmed where the
environment was made with render_mode="rgb_array".
"""

from __future__ import annotations

import io
import logging
import math
import pickle
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from trainer.checkpoints.fit import misfit
from trainer.errors import WorkerError
from trainer.film import Film
from trainer.workers.channel import MESSAGE, Channel, Closed, Full
from trainer.workers.plugins import load_plugins, register, registered
from trainer.workers.worker import START_TIMEOUT_S, begin_child, end_child, how_ended, in_words, is_stopped, start_child

if TYPE_CHECKING:
    from trainer.config import TrainConfig
    from trainer.faults.stopping import Stop

_log = logging.getLogger(__name__)
LATER = 7919  # the seed of the first episode, apart from those of training
LOOK_EVERY_S = 0.01  # while the run waits
SIGN_EVERY_S = 0.2  # of life, from the process
GRACE_S = 3.0  # for the process to close its environment and leave
MOST_STEPS = 100_000  # of an episode: one without a time limit may never end
GIVE = "give train(eval_env=) a function that makes one single environment of the spaces that are trained in"


def measure(metrics: dict[str, float]) -> tuple[str, float]:
    """What counts of an evaluation: its name and value."""
    name = "success" if "success" in metrics else "return"
    return name, metrics[name]


class Evaluator:
    """The other process, as the run sees it. One policy at a time is evaluated.

    A process that dies or hangs is started again, once; the evaluation under way begins anew. `is_over`: no more evaluations come.
    """

    def __init__(self, make_env: Callable[[], Any], make_policy: Any, config: TrainConfig):
        """ValueError if `make_env` is nothing that another process can call."""
        import cloudpickle

        if not callable(make_env):
            raise ValueError(f"evaluations (eval_every) cannot call {make_env!r} to make an environment: {GIVE}.")
        load_plugins()
        try:
            blob = cloudpickle.dumps((make_env, make_policy, config.eval_episodes, config.seed + LATER, config.eval_film))
        except Exception as error:
            raise ValueError(f"what makes the environment of evaluations (eval_every) cannot be sent to their process ({error}): "
                             f"{GIVE}.") from error
        self._setup = pickle.dumps((list(sys.path), tuple(registered()), blob))
        self._limit_s = config.collect.step_timeout_s
        self._without = "" if config.stop_at is None else f", and stop_at={config.stop_at:g} cannot end the run any more"
        self._under_way: dict[str, Any] | None = None
        self._made: tuple[str, Any] | None = None  # what the first process that made its environment told of it
        self._may_start_again, self.is_over = True, False
        self._silent_s, self._looked_at = 0.0, time.monotonic()  # how long it had said nothing, and when that was looked at
        self._start()

    def _start(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = start_child("trainer.evaluation", theirs)
        self._channel = Channel(ours)
        self._channel.limit_sends(self._limit_s)
        self._is_ready = False  # its environment is made
        self._send(self._setup)

    def check(self, policy: Any, stop: Stop) -> None:
        """Wait until the environment is made, or somebody asks to stop. ValueError if it is none that `policy` can be played in,
        WorkerError if making it raises."""
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
            raise ValueError(f"evaluations (eval_every) play one environment, and were given {told}, several in one: {GIVE}.")
        if kind == "none":
            raise ValueError(f"evaluations (eval_every) were given {told}, which is no Gymnasium environment: {GIVE}.")
        seen, action = pickle.loads(told)
        flat = flat_space(seen)
        problem = misfit(policy, observation_shapes(flat), action_numbers(action), choices(action), "that of evaluations", units(flat))
        if problem:
            raise ValueError(f"the policy cannot be played in the environment of evaluations (eval_every): {problem}; {GIVE}.")

    @property
    def is_busy(self) -> bool:
        return self._under_way is not None

    def ask(self, content: dict[str, Any]) -> None:
        """Evaluate the policy of a checkpoint's content, which must not change any more."""
        self._under_way = content
        if self._is_ready:
            self._send_policy()

    def answer(self) -> tuple[dict[str, Any], dict[str, float], bytes | None] | None:
        """The content that was evaluated, what it reached and a film (GIF), if that is known by now. An evaluation that raises is a
        warning, and the last."""
        if self._under_way is None or (heard := self._hear()) is None:
            return None
        content, self._under_way = self._under_way, None
        kind, told, *film = heard
        if kind == "error":
            self._end(f"the policy is not evaluated any more{self._without}: {told}")
            return None
        return content, told, film[0]

    def _hear(self) -> tuple | None:
        """The outcome of an evaluation, if it is known by now. Starts a process that has died or hangs again. Time in which nobody
        listened counts as a quarter of the limit at most."""
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
            self._begin_again(f"{why}: it has not finished {self._doing} for {self._silent_s:.0f} s{limit}", stopped or self._is_ready)
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
                _log.warning("the evaluation process has not finished a step, or close() of its environment, for %g s, and is killed.", GRACE_S)
        end_child(self._process)


def evaluate(player: Any, env: Any, episodes: int, seed: int, film: Film | None = None,
             does: Callable[[str], None] = lambda what: None) -> dict[str, float]:
    """Means over episodes with seeds `seed`, `seed` + 1 ...: return, length, and what `info["metrics"]` of their ends says, of the
    episodes that say it as a finite number. film: gets the first one. does: is told what is begun. RuntimeError for an episode that
    does not end, and for a reward that is not finite."""
    from trainer.workers.worker import episode_figures

    told: list[dict[str, float]] = []
    for number in range(episodes):
        does("a reset")
        observation, _ = env.reset(seed=seed + number)
        player.reset()
        total, length, over = 0.0, 0, False
        while not over:
            does("a step")
            film = film and _taken(film, env)
            observation, reward, terminated, truncated, info = env.step(player.act(observation))
            total, length, over = total + float(reward), length + 1, bool(terminated or truncated)
            if not math.isfinite(total):
                raise RuntimeError(f"the reward of step {length} of an episode is {reward}, or the return is not finite with it.")
            if length >= MOST_STEPS and not over:
                raise RuntimeError(f"an episode has not ended after {MOST_STEPS:,} steps: {GIVE}, with a time limit.")
        if film:
            _taken(film, env)
        film = None
        told.append({"return": total, "length": float(length)} | episode_figures(info))
    known = [{k: v for k, v in each.items() if math.isfinite(v)} for each in told]
    return {key: float(np.mean([each[key] for each in known if key in each])) for key in sorted({k for each in known for k in each})}


def _taken(film: Film, env: Any) -> Film | None:
    """The film with this moment; None where there are no pictures: figures do not need them."""
    try:
        if film.is_due:
            film.add(env.render())
        return film
    except Exception as error:  # whatever an environment of the user's own does
        _log.warning("the evaluation is not filmed any more: %s: %s", type(error).__name__, error)
        return None


def main() -> None:
    """The process: the socket's file descriptor, the learner's process id."""
    begin_child(parent=int(sys.argv[2]))
    channel = Channel(socket.socket(fileno=int(sys.argv[1])))
    env = None
    try:
        paths, specs, blob = pickle.loads(_next(channel))
        sys.path[:] = paths
        import cloudpickle
        import torch

        register(specs)
        torch.set_num_threads(1)
        make_env, make_policy, episodes, seed, films = cloudpickle.loads(blob)
        from trainer.checkpoint import load_policy
        from trainer.player import Player

        env = make_env()
        channel.send(MESSAGE, cloudpickle.dumps(_what(env)))
        while True:
            content = torch.load(io.BytesIO(_next(channel)), weights_only=True)
            began = time.perf_counter()
            film = Film() if films and getattr(env, "render_mode", None) == "rgb_array" else None
            reached = evaluate(Player.of(load_policy(content, make_policy), env, seed=seed), env, episodes, seed, film, _Told(channel))
            reached["seconds"] = time.perf_counter() - began
            channel.send(MESSAGE, pickle.dumps(("reached", reached, film and film.gif())))
    except Closed:
        pass
    except BaseException as error:
        with suppress(Closed):
            channel.send(MESSAGE, pickle.dumps(("error", in_words(error))))
    finally:
        if hasattr(env, "close"):
            env.close()


class _Told:
    """Tells the run what is being done: when that changes, and from time to time, as a sign of life."""

    def __init__(self, channel: Channel):
        self.channel, self.doing, self.told_at = channel, "", 0.0

    def __call__(self, doing: str) -> None:
        now = time.monotonic()
        if doing != self.doing or now - self.told_at > SIGN_EVERY_S:
            self.doing, self.told_at = doing, now
            self.channel.send(MESSAGE, pickle.dumps(("does", doing)))


def _what(env: Any) -> tuple[str, Any]:
    """What was made: "several" or "none" with its name, or "spaces" with those of one environment."""
    import cloudpickle

    if hasattr(env, "single_observation_space"):
        return "several", repr(env)
    if not all(hasattr(env, name) for name in ("observation_space", "action_space", "reset", "step")):
        return "none", repr(env)
    return "spaces", cloudpickle.dumps((env.observation_space, env.action_space))


_buffered: list[bytes] = []


def _next(channel: Channel) -> bytes:
    while not _buffered:
        _buffered.extend(payload for _, payload in channel.receive())
    return _buffered.pop(0)


if __name__ == "__main__":
    main()
