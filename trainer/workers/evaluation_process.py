"""The process of evaluations (trainer/evaluation.py): it makes an environment, and plays each policy that it is
sent."""

from __future__ import annotations

import io
import logging
import math
import pickle
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from trainer.film import Film
from trainer.workers.channel import MESSAGE, Channel, Closed
from trainer.workers.plugins import register
from trainer.workers.worker import begin_child, episode_figures, in_words

_log = logging.getLogger(__name__)
SIGN_EVERY_S = 0.2  # of life
MOST_STEPS = 100_000  # of an episode: one without a time limit may never end
GIVE = "give train(eval_env=) a function that makes one single environment of the spaces that are trained in"


def evaluate(player: Any, env: Any, episodes: int, seed: int, film: Film | None = None,
             does: Callable[[str], None] = lambda what: None) -> dict[str, float]:
    """Means over episodes with seeds `seed`, `seed` + 1 ...: return, length, and the figures in `info["metrics"]` of
    their ends, each over the episodes that give it as a finite number. film: gets the first episode. does: is called
    with what begins, as "a step". RuntimeError for an episode that does not end, and for a reward that is not
    finite."""
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
                raise RuntimeError(f"the reward of step {length} of an episode is {reward}, or the return is not "
                                   "finite with it.")
            if length >= MOST_STEPS and not over:
                raise RuntimeError(f"an episode has not ended after {MOST_STEPS:,} steps: {GIVE}, with a time limit.")
        if film:
            _taken(film, env)
        film = None
        told.append({"return": total, "length": float(length)} | episode_figures(info))
    known = [{k: v for k, v in each.items() if math.isfinite(v)} for each in told]
    keys = sorted({key for each in known for key in each})
    return {key: float(np.mean([each[key] for each in known if key in each])) for key in keys}


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
            player = Player.of(load_policy(content, make_policy), env, seed=seed)
            reached = evaluate(player, env, episodes, seed, film, _Told(channel))
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
