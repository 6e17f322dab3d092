"""What a run takes of the machine: memory, which is checked before, and threads while it learns.

How many torch threads to learn with: one while collecting, the faster choice while learning.

Whether a second thread helps depends on the network and on who else uses the machine. On two cores, learning the
`light` policy took 0.22 ms per step with one thread, 0.13 ms with two, and 0.78 ms with two beside a program that keeps
a core busy, where OpenMP threads wait for each other by spinning (`trainer` lets them sleep, OMP_WAIT_POLICY=PASSIVE,
unless the user says otherwise). So both are timed, again and again.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import torch
from gymnasium import spaces

from trainer.config import PolicyConfig, TrainConfig
from trainer.nets.images import image_layout
from trainer.policy import EXPERT_ACTION
from trainer.spaces import stored_as

SIZED_ENCODERS = ("light", "resnet18")  # whose last layer has a row per feature and at least a column per 16 pixels
_CGROUP = Path("/sys/fs/cgroup/memory.max")


def least_weights(config: PolicyConfig, vectors: list[tuple[int, ...]], images: list[tuple[int, ...]],
                  action_size: int) -> int:
    """How many numbers the network has at least, for the shapes of the observations that it sees."""
    total, width = 0, sum(map(_size, vectors)) + len(images) * config.embedding_size + action_size
    if config.encoder in SIZED_ENCODERS:
        total += sum(config.embedding_size * (height * wide // 16) for height, wide, _ in images)
    for _ in range(config.body_layers if config.body_size else 0):
        total, width = total + width * config.body_size, config.body_size
    inputs = width
    for _ in range(config.lstm_layers):
        total, inputs = total + 3 * config.hidden_size * (inputs + config.hidden_size), config.hidden_size
    return total + inputs * action_size


def rollout_bytes(config: TrainConfig, observation_space: spaces.Space, action_size: int, state_size: int) -> int:
    """Bytes of the stored experience: of every step its observations, actions, recurrent state and some ten numbers."""
    rows = config.collect.kept_rollouts * config.steps_per_rollout + config.collect.num_envs
    kept = stored_as(observation_space)
    observation = sum(kept[key].itemsize * _size(box.shape) for key, box in _boxes(observation_space).items())
    return rows * (observation + 4 * (2 * action_size + state_size) + 60)


def check_memory(config: TrainConfig, observation_space: spaces.Space, action_size: int,
                 state_size: int | None = None) -> None:
    """Raise ValueError, with how much it would take, for a run that does not fit into this machine's memory.
    `observation_space`: a Box, or a Dict of them. `state_size`: of a network that is there already, and not the
    engine's own; then only the experience is looked at."""
    wanted = {}
    if state_size is None:
        boxes = [box for key, box in _boxes(observation_space).items() if key != EXPERT_ACTION]
        layouts = [image_layout(box) for box in boxes]
        images = [layout.shape for layout in layouts if layout] if config.policy.encoder else []
        vectors = [box.shape for box, layout in zip(boxes, layouts) if not layout]
        state_size = config.policy.state_size
        weights = least_weights(config.policy, vectors, images, action_size)
        # Each weight has a gradient, and Adam's two means of it.
        wanted["the network (policy.hidden_size, body_size, embedding_size and layers)"] = 16 * weights
    steps = f"{config.steps_per_rollout:,} steps (collect.num_envs x collect.rollout_steps)"
    wanted[f"the experience of {steps}"] = rollout_bytes(config, observation_space, action_size, state_size)
    there = memory_bytes()
    for what, size in wanted.items():
        if size > there:
            raise ValueError(f"{what} would take {_spoken(size)} of memory, and this machine has {_spoken(there)}: "
                             "choose less.")


def _boxes(space: spaces.Space) -> Mapping[str, spaces.Space]:
    return space.spaces if isinstance(space, spaces.Dict) else {"obs": space}


def memory_bytes() -> int:
    """The memory of this machine, or what this container may use of it."""
    there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        return min(there, int(_CGROUP.read_text()))
    except (OSError, ValueError):  # no such group, or "max"
        return there


def _size(shape: tuple[int, ...]) -> int:
    return math.prod(map(int, shape))


def _spoken(size: float) -> str:
    return f"{size / 1e9:,.1f} GB"


PROBE_EVERY = 50  # updates between two looks at the choice that lost


class LearnThreads:
    """Context for a training run; `with threads.learning():` surrounds each update. `fixed` ends the measuring."""

    def __init__(self, fixed: int | None):
        cores = min(os.cpu_count() or 1, _omp_threads())
        self.choices = [fixed] if fixed else sorted({1, cores})
        self.seconds = dict.fromkeys(self.choices, 0.0)  # of the last update with each
        self.updates = 0

    def __enter__(self) -> LearnThreads:
        self._before = torch.get_num_threads()
        torch.set_num_threads(1)
        return self

    def __exit__(self, *_: object) -> None:
        torch.set_num_threads(self._before)

    def next(self) -> int:
        """Threads for the next update: each choice once in the beginning (the very first update does not count, it
        warms up), then the faster, and every PROBE_EVERY updates the slower for one update."""
        if self.updates <= len(self.choices):
            return self.choices[self.updates % len(self.choices)]
        fastest = min(self.choices, key=lambda n: self.seconds[n])
        if self.updates % PROBE_EVERY == 0:
            return max(self.choices, key=lambda n: self.seconds[n])
        return fastest

    @contextmanager
    def learning(self) -> Iterator[None]:
        threads = self.next()
        torch.set_num_threads(threads)
        start = time.perf_counter()
        try:
            yield
        finally:
            torch.set_num_threads(1)
            self.seconds[threads] = time.perf_counter() - start
            self.updates += 1


@contextmanager
def one_thread() -> Iterator[None]:
    """For work too small to be shared: with other programs on the cores, threads that wait make it 70 times slower."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _omp_threads() -> int:
    """The limit that the user set with OMP_NUM_THREADS; a large number without one."""
    first = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return int(first) if first.isdigit() and int(first) else 1 << 16
