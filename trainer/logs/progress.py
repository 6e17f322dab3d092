"""How a run shows itself: one live line on a terminal, plain lines elsewhere, and the learning curve in text."""

from __future__ import annotations

import math
import os
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TextIO

from trainer.callbacks import TrainState
from trainer.logs import screen
from trainer.logs.printable import without_codes

__all__ = ["Progress", "counting"]

_BLOCKS = " ▁▂▃▄▅▆▇█"
_ASCII_BLOCKS = " ._-=+*#@"
_WINDOW_S = 30.0  # steps/s is the mean over so long
_LIVE_INTERVAL_S = 0.1
_CURVE_POINTS = 24
_FEW = 20  # episodes, of which the success is told with their number
WIDTH, HEIGHT = 64, 10  # of the learning curve, in characters


class Progress:
    """Context manager; a callback of `trainer.train`.

    total: steps at the end; it grows with a run that goes beyond. start: where a resumed run begins. live: whether a
    terminal gets a live line; elsewhere there is a plain line every `every_s`. log: called with every plain line, also
    of a live run, for a log file.
    unit: what is counted.
    """

    def __init__(
        self,
        total: int,
        title: str,
        start: int = 0,
        live: bool = True,
        every_s: float = 10.0,
        out: TextIO | None = None,
        log: Callable[[str], None] | None = None,
        unit: str = "steps",
    ) -> None:
        self.total, self.title, self.every_s, self.unit = total, title, every_s, unit
        self.note = ""  # stands before the time that is left
        self.out = screen.safe(out or sys.stdout)  # what is counted matters more than what is shown
        self.live = live and is_terminal(self.out)
        self._log = log or (lambda line: None)
        self._times: deque[tuple[float, int]] = deque([(time.monotonic(), start)])
        self._began_s = self._times[0][0]
        self._work: float | None = None
        self._success: list[tuple[int, float]] = []  # (step, success)
        self._shown: dict[str, float] = {}
        self._episodes = math.inf  # that ended, where it is told
        self._next_line_s = self._next_live_s = -math.inf
        self._display: Any = None

    def __enter__(self) -> Progress:
        if self.live:
            from rich.console import Console
            from rich.live import Live

            self._display = Live(console=Console(file=screen.with_codes(self.out)), auto_refresh=False)
            self._display.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._display:
            self._refresh(self._times[-1][1])
            self._display.stop()
        self._display = None

    def update(self, step: int, metrics: Mapping[str, float], work: float | None = None) -> None:
        """Show the state at `step`. Success and return are read from "episode/success" and "episode/return".

        work: the share of the work that is done, where steps do not all take as long; the time left is told by it.
        """
        now = time.monotonic()
        self._work = work
        self.total = max(self.total, step)
        self._times.append((now, step))
        while len(self._times) > 2 and now - self._times[1][0] > _WINDOW_S:
            self._times.popleft()
        for name in ("success", "return"):
            value = of_episodes(metrics, name)
            if value is not None:
                self._shown[name] = value
                if name == "success":
                    self._success.append((step, value))
        self._episodes = metrics.get("episodes", math.inf)
        if (error := metrics.get("learn/action_error")) is not None:
            self._shown["error"] = error
        else:
            self._shown.pop("error", None)
        done = step >= self.total
        if now >= self._next_line_s or done:
            self._next_line_s = now + self.every_s
            self._log(self.line(step))
            if not self.live:
                self.print(self.line(step))
        if self._display and (now >= self._next_live_s or done):
            self._next_live_s = now + _LIVE_INTERVAL_S
            self._refresh(step)

    __call__ = update

    def at_log(self, state: TrainState) -> None:
        """As a callback."""
        self.update(state.step, state.metrics)

    def print(self, text: str) -> None:
        """Print a line above the live line."""
        if self._display:
            self._display.console.print(without_codes(text), markup=False, highlight=False)
        else:
            print(text, file=self.out, flush=True)

    def line(self, step: int) -> str:
        """`train pick  430k/1.20M 36%  3,412 steps/s  success 45%  return 61.2  left 4:17`."""
        rate = self._rate()
        parts = [self.title, f"{short(step)}/{short(self.total)} {100 * step // max(self.total, 1)}%"]
        parts += [spoken_rate(rate, self.unit)] if rate > 0 else []
        if "success" in self._shown:
            few = f" of {self._episodes:.0f}" if self._episodes < _FEW else ""
            parts.append(f"success {self._shown['success']:.0%}{few}")
        if "error" in self._shown:
            parts.append(f"action error {self._shown['error']:.3f}")
        if "return" in self._shown:
            parts.append(f"return {self._shown['return']:.1f}")
        parts += [self.note] if self.note else []
        if self._work:
            left = (self._times[-1][0] - self._began_s) * (1.0 - self._work) / self._work
        else:
            left = max(self.total - step, 0) / rate if rate > 0 else math.nan
        parts.append(f"left {'?' if math.isnan(left) else spoken_time(left)}")
        return "  ".join(parts)

    def remember(self, rows: Sequence[Mapping[str, float]]) -> None:
        """Logged rows of the part of a run that a resumed one continues, for its curve."""
        known = [(int(row["step"]), of_episodes(row, "success")) for row in rows]
        self._success = [(step, success) for step, success in known if success is not None]

    def curve(self) -> list[str]:
        """The success over the run as a picture in text, line by line."""
        steps, values = zip(*self._success, strict=True) if self._success else ((), ())
        return learning_curve(steps, values, f"{self.title}: success", unicode=speaks_unicode(self.out)).splitlines()

    def _refresh(self, step: int) -> None:
        """Redraw the live line: the state, and the success so far as a small curve in the space that is left."""
        from rich.text import Text

        line = without_codes(self.line(step))
        space = min(self._display.console.width - len(line) - 3, _CURVE_POINTS)
        if space >= 4:
            line += "  " + sparkline([value for _, value in self._success], space, unicode=speaks_unicode(self.out))
        self._display.update(Text(line, no_wrap=True, overflow="crop"), refresh=True)

    def _rate(self) -> float:
        (start_s, start), (end_s, end) = self._times[0], self._times[-1]
        return (end - start) / (end_s - start_s) if end_s > start_s else 0.0


@contextmanager
def counting(total: int, title: str, silent: bool = False, **options: Any) -> Iterator[Callable[..., None]]:
    """Progress of episodes: gives a function to call with (episodes done, successes so far), and with the share of the
    work that is done where episodes do not all take as long."""
    with Progress(total, title, unit="episodes", **options) as progress:
        if not silent:
            progress.update(0, {})  # the first episode of a scenario may take minutes
        yield lambda done, successes, *work: progress.update(done, {"episode/success": successes / max(done, 1)}, *work)


def short(number: float) -> str:
    """430, 43k, 1.2M: three digits are enough for a line."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size * (1 if letter != "k" else 10):
            return f"{number / size:.3g}{letter}"
    return f"{number:,.0f}"


def spoken_rate(rate: float, unit: str) -> str:
    """3,412 steps/s, 1.7 episodes/s, or 12.5 s/episode where less than one is done in a second."""
    if rate < 1:
        return f"{1 / rate:,.1f} s/{unit.removesuffix('s')}"
    return f"{rate:,.{0 if rate >= 10 else 1}f} {unit}/s"


def is_terminal(out: TextIO) -> bool:
    """Whether a live line makes sense: a terminal that can move its cursor, and no batch job."""
    return out.isatty() and os.environ.get("TERM") != "dumb" and "SLURM_JOB_ID" not in os.environ


def speaks_unicode(out: TextIO) -> bool:
    """Whether the stream can print block characters."""
    return (getattr(out, "encoding", None) or "").lower().replace("-", "") == "utf8"


def of_episodes(metrics: Mapping[str, float], name: str) -> float | None:
    """The mean over episodes of a measure, "episode/<name>", or of an evaluation where none are run, "eval/<name>";
    None if it is not there or not a number."""
    value = metrics.get(f"episode/{name}", metrics.get(f"eval/{name}"))
    return value if value is not None and math.isfinite(value) else None


def spoken_time(seconds: float) -> str:
    """4:17, or 1:02:03."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def resample(values: Sequence[float], points: int) -> list[float]:
    """At most `points` values: means of equal stretches, in order."""
    if len(values) <= points:
        return list(values)
    edges = [round(i * len(values) / points) for i in range(points + 1)]
    return [sum(values[a:b]) / (b - a) for a, b in zip(edges, edges[1:], strict=False)]


def sparkline(values: Sequence[float], points: int = _CURVE_POINTS, unicode: bool = True) -> str:
    """A small curve of block characters, of values between 0 and 1."""
    blocks = _BLOCKS if unicode else _ASCII_BLOCKS
    return "".join(blocks[1 + round(_share(value) * (len(blocks) - 2))] for value in resample(values, points))


def learning_curve(steps: Sequence[float], values: Sequence[float], title: str = "success",
                   unicode: bool = True) -> str:
    """A picture in text of `values` from 0 to 1, shown as percent, over `steps`. Its twenty lines are less than a
    dependency such as plotext, and it also goes to log files and to terminals without Unicode."""
    points = [(s, v) for s, v in zip(steps, values, strict=True) if v is not None and math.isfinite(v)]
    if not points:
        return f"{title}: no episode has ended yet"
    blocks = _BLOCKS if unicode else _ASCII_BLOCKS
    last = max(points[-1][0], 1)
    filled = [_share(_at(points, (column + 1) * last / WIDTH)) * HEIGHT for column in range(WIDTH)]
    lines = [title]
    for row in range(HEIGHT, 0, -1):
        cells = "".join(blocks[round(min(max(value - (row - 1), 0.0), 1.0) * (len(blocks) - 1))] for value in filled)
        label = f"{row / HEIGHT:>5.0%}" if row % 2 == 0 else " " * 5
        lines.append(f"{label} |{cells}".rstrip())
    end = f"{last:,.0f} steps"
    return "\n".join([*lines, f"   0% +{'-' * WIDTH}", " " * 7 + "0" + end.rjust(WIDTH - 1)])


def _share(value: float) -> float:
    return min(max(value, 0.0), 1.0)


def _at(points: Sequence[tuple[float, float]], step: float) -> float:
    """The value of the last point at or before `step`; the first point's before that."""
    before = [value for s, value in points if s <= step]
    return before[-1] if before else points[0][1]
