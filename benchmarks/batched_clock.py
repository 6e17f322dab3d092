"""When a measured run is over, and what it took. Sample Factory's interpreter reads this file too: it imports nothing
of ours.
"""

from __future__ import annotations

import time


class Clock:
    """Told of the steps after every update; the first update warms up."""

    def __init__(self, seconds: float):
        self.seconds = seconds
        self.ticks: list[tuple[int, float, float]] = []

    def tick(self, steps: int) -> bool:
        """Whether the run is over."""
        self.ticks.append((steps, time.perf_counter(), time.process_time()))
        return len(self.ticks) > 2 and self.ticks[-1][1] - self.ticks[0][1] >= self.seconds

    def result(self) -> dict[str, float]:
        """Steps, seconds, and seconds of all processors that this process used, threads included."""
        (first, begun, before), (last, ended, after) = self.ticks[0], self.ticks[-1]
        return {"steps": last - first, "wall_s": ended - begun, "cpu_s": after - before}
