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
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np

from trainer.checkpoints.fit import misfit
from trainer.errors import WorkerError
from trainer.film import Film
from trainer.workers.channel import MESSAGE, Channel, Closed, Full
from trainer.workers.plugins import load_plugins, register, registered
from trainer.workers.worker import START_TIMEOUT_S, begin_child, end_child, start_child

_log = logging.getLogger(__name__)
LATER = 7919  # the seed of the first episode, apart from those of training
MOST_STEPS = 100_000  # of an episode: one without a time limit may never end
GIVE = "give train(eval_env=) a function that makes one single environment of the spaces that are trained in"


def measure(metrics: dict[str, float]) -> tuple[str, float]:
    """What counts of an evaluation: its name and value."""
    name = "success" if "success" in metrics else "return"
    return name, metrics[name]


class Evaluator:
    """The other process, as the run sees it. One policy at a time is evaluated."""

    def __init__(self, make_env: Callable[[], Any], make_policy: Any, episodes: int, seed: int, films: bool = True):
        """ValueError if `make_env` is nothing that another process can call."""
        import cloudpickle

        if not callable(make_env):
            raise ValueError(f"evaluations (eval_every) cannot call {make_env!r} to make an environment: {GIVE}.")
        load_plugins()
        try:
            blob = cloudpickle.dumps((make_env, make_policy, episodes, seed + LATER, films))
        except Exception as error:
            raise ValueError(f"what makes the environment of evaluations (eval_every) cannot be sent to their process ({error}): "
                             f"{GIVE}.") from error
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = start_child("trainer.evaluation", theirs)
        self._channel = Channel(ours)
        self._channel.limit_sends(300.0)
        self._under_way: dict[str, Any] | None = None
        self._send(pickle.dumps((list(sys.path), tuple(registered()), blob)))

    def check(self, policy: Any) -> None:
        """Wait until the environment is made. ValueError if it is none that `policy` can be played in, WorkerError if making it
        fails."""
        from trainer.policy import observation_shapes
        from trainer.spaces import action_numbers, choices, flat_space, units

        kind, told = self._made()
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

    def _made(self) -> tuple[str, Any]:
        self._channel.sock.settimeout(START_TIMEOUT_S)
        try:
            while not (messages := self._channel.receive()):
                pass
        except Closed:
            return "error", f"its process ended, or took longer than {START_TIMEOUT_S:.0f} s"
        return pickle.loads(messages[0][1])

    @property
    def is_busy(self) -> bool:
        return self._under_way is not None

    def ask(self, content: dict[str, Any]) -> None:
        """Evaluate the policy of a checkpoint's content, which must not change any more."""
        import torch

        file = io.BytesIO()
        torch.save(content, file)
        self._under_way = content
        self._send(file.getvalue())

    def answer(self) -> tuple[dict[str, Any], dict[str, float], bytes | None] | None:
        """The content that was evaluated, what it reached and a film (GIF), if that is known by now. An evaluation that fails is a warning, and the
        last."""
        if self._under_way is None:
            return None
        self._channel.sock.setblocking(False)
        try:
            messages = self._channel.receive()
        except Closed:
            if self._process.poll() is None:
                return None  # nothing there yet
            messages = [(MESSAGE, pickle.dumps(("error", "its process ended")))]
        if not messages:
            return None
        (_, payload), content = messages[0], self._under_way
        self._under_way = None
        kind, told, *film = pickle.loads(payload)
        if kind == "error":
            _log.warning("the policy is not evaluated any more: %s", told)
            self.close()
            return None
        return content, told, film[0]

    @property
    def is_over(self) -> bool:
        """Whether it has failed."""
        return self._channel.sock.fileno() < 0

    def _send(self, payload: bytes) -> None:
        if self.is_over:
            return
        self._channel.sock.setblocking(True)
        try:
            self._channel.send(MESSAGE, payload)
        except (Closed, Full):
            pass  # the answer tells

    def close(self) -> None:
        """End the process."""
        self._channel.sock.close()
        end_child(self._process)


def evaluate(player: Any, env: Any, episodes: int, seed: int, film: Film | None = None) -> dict[str, float]:
    """Means over episodes with seeds `seed`, `seed` + 1 ...: return, length, and what `info["metrics"]` of their ends says, of the
    episodes that say it as a finite number. film: gets the first one. RuntimeError for an episode that does not end, and for a reward
    that is not finite."""
    from trainer.workers.worker import episode_figures

    told: list[dict[str, float]] = []
    for number in range(episodes):
        observation, _ = env.reset(seed=seed + number)
        player.reset()
        total, length, over = 0.0, 0, False
        while not over:
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
            reached = evaluate(Player.of(load_policy(content, make_policy), env, seed=seed), env, episodes, seed, film)
            reached["seconds"] = time.perf_counter() - began
            channel.send(MESSAGE, pickle.dumps(("reached", reached, film and film.gif())))
    except Closed:
        return
    except BaseException:
        channel.send(MESSAGE, pickle.dumps(("error", traceback.format_exc())))


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
