"""How many torch threads to learn with: one while collecting, the faster choice while learning.

Whether a second thread helps depends on the network and on who else uses the machine. On two cores, learning the
`light` policy took 0.22 ms per step with one thread, 0.13 ms with two, and 0.78 ms with two beside a program that keeps
a core busy, where OpenMP threads wait for each other by spinning (`trainer` lets them sleep, OMP_WAIT_POLICY=PASSIVE,
unless the user says otherwise). So both are timed, again and again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

import torch

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
