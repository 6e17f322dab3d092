"""Where the processor time of a training goes: a run with clocks around its parts."""

from __future__ import annotations

import functools
import json
import os
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest import mock

from eval.bench.processor_time import spent_s

ENV_PARTS = ("physics", "image", "observation", "reward", "reset")


class Clock:
    """Adds up the processor time of one thread in functions; time in an inner one does not count for the outer."""

    def __init__(self) -> None:
        self.total_s: dict[str, float] = {}
        self._inner_s = 0.0

    def timed(self, name: str, function: Callable) -> Callable:
        self.total_s[name] = 0.0

        def call(*args: Any, **kwargs: Any) -> Any:
            outer, self._inner_s = self._inner_s, 0.0
            start = time.thread_time()
            try:
                return function(*args, **kwargs)
            finally:
                spent = time.thread_time() - start
                self.total_s[name] += spent - self._inner_s
                self._inner_s = outer + spent

        return call


def clocked(make: Callable[[], Any], folder: str) -> Any:
    """An environment with clocks around its parts, which are written to a file of `folder` when it is closed. What a
    reset does is its own part, physics and images included."""
    env, clock = make(), Clock()
    for owner, name, part in ((env.sim, "step", "physics"), (env.scene, "look", "image"),
                              (env, "_observe", "observation"), (env, "_judge", "reward")):
        setattr(owner, name, clock.timed(part, getattr(owner, name)))
    inner = Clock()
    reset, close, parts = inner.timed("reset", env.reset), env.close, clock.total_s

    def whole_reset(*args: Any, **kwargs: Any) -> Any:
        before = dict(parts)
        result = reset(*args, **kwargs)
        parts.update(before)
        return result

    def closed() -> None:
        file = Path(folder) / f"{os.getpid()}-{id(env)}.json"
        file.write_text(json.dumps(parts | inner.total_s), encoding="utf-8")
        close()

    env.reset, env.close = whole_reset, closed
    return env


class Watch:
    """A callback that reads the processor time after every update, and how long the learner waited for environments."""

    def __init__(self) -> None:
        self.looks: list[tuple[int, dict[str, float]]] = []
        self.waited_s = self.collected_s = 0.0

    def after_update(self, state: Any) -> None:
        self.looks.append((state.step, spent_s(os.getpid())))
        self.waited_s += state.metrics["time/wait_s"]
        self.collected_s += state.metrics["time/collect_s"] + state.metrics["time/learn_s"]


def split(words: list[str]) -> dict[str, Any]:
    """Train as `rearrange train` would with these words; microseconds of processor time per step of each part, start-up
    of the processes left out, and the share of the time in which the learner waits for environments."""
    from eval.engine_settings import engine_config, per_action
    from eval.task_from_settings import skill_task
    from rearrange.command_line.composition.options import options_of
    from rearrange.command_line.composition.parse_overrides import compose
    from trainer import collect, learner, train

    options = options_of(compose("train", words))
    task = skill_task(options, options.split, options.policy.image_size)
    config = per_action(engine_config(options), task, task.make())
    watch, clock = Watch(), Clock()
    with tempfile.TemporaryDirectory(prefix="rearrange-bench-") as folder, ExitStack() as stack:
        for owner, name, part in ((collect.Collector, "_infer", "acting"), (learner.Learner, "update", "learning")):
            method = clock.timed(part, getattr(owner, name))
            stack.enter_context(mock.patch.object(owner, name, functools.partialmethod(_call, method)))
        train(functools.partial(clocked, task.make, folder), config, callbacks=(watch,))
        of_envs = [json.loads(file.read_text(encoding="utf-8")) for file in Path(folder).glob("*.json")]
    (first, before), (last, after) = watch.looks[0], watch.looks[-1]
    parts = {name: sum(env[name] for env in of_envs) / last for name in ENV_PARTS}
    workers = (after["workers"] - before["workers"]) / (last - first)
    own = (after["learner"] - before["learner"]) / (last - first)
    parts["other work of workers"] = max(0.0, workers - sum(parts.values()))
    parts |= {name: seconds / last for name, seconds in clock.total_s.items()}
    parts["other work of learner"] = max(0.0, own - sum(clock.total_s.values()) / last)
    return {"parts_us": {name: 1e6 * seconds for name, seconds in parts.items()},
            "waiting_share": watch.waited_s / watch.collected_s}


def _call(self: Any, method: Callable, *args: Any, **kwargs: Any) -> Any:
    return method(self, *args, **kwargs)
