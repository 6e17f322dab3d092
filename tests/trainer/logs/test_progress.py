"""The live line, the plain lines and the curve."""

from __future__ import annotations

import errno
import io

import pytest

from trainer.logs import progress
from trainer.logs.progress import Progress, counting, learning_curve, of_episodes, sparkline


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self):
        return True


class Clock:
    def __init__(self, monkeypatch):
        self.now = 100.0
        monkeypatch.setattr(progress.time, "monotonic", lambda: self.now)


@pytest.fixture
def clock(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    return Clock(monkeypatch)


def test_a_line_has_steps_rate_success_return_and_time_left(clock):
    shown = Progress(1000, "train pick", start=200, out=io.StringIO())
    clock.now += 2
    shown.update(400, {"episode/success": 0.5, "episode/return": 12.34, "learn/kl": 1.0})
    assert shown.line(400) == "train pick  400/1,000 40%  100 steps/s  success 50%  return 12.3  left 0:06"


def test_the_time_left_goes_by_the_work_where_steps_do_not_all_take_as_long(clock):
    with counting(30, "eval", out=(out := io.StringIO())) as told:
        clock.now += 60
        told(3, 3, 0.5)
        clock.now += 30
        told(4, 4)
    assert [line.split("left ")[1] for line in out.getvalue().splitlines()] == ["?", "1:00", "9:45"]


def test_plain_lines_come_every_ten_seconds_and_at_the_end(clock):
    out, log = io.StringIO(), []
    with Progress(100, "t", out=out, log=log.append) as shown:
        for step in range(1, 101):
            clock.now += 0.25
            shown.update(step, {})
    lines = out.getvalue().splitlines()
    assert len(lines) == 4 and lines == log and lines[-1].startswith("t  100/100 100%")
    assert "\x1b" not in out.getvalue()


def test_a_terminal_gets_one_line_with_a_growing_curve(clock):
    out = Terminal()
    with Progress(100, "t", out=out) as shown:
        for step in range(10, 100, 10):
            clock.now += 1
            shown.update(step, {"episode/success": step / 100})
        shown.print("a message")
    text = out.getvalue()
    assert "\x1b[2K" in text and "a message" in text and "▂▂▃▄▅▅▆▇▇" in text
    assert text.rstrip().count("\n") <= 2


@pytest.mark.parametrize("name, value", [("SLURM_JOB_ID", "1"), ("TERM", "dumb")])
def test_no_live_line_in_batch_jobs(clock, monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    assert not Progress(1, "t", out=Terminal()).live


def test_live_can_be_turned_off(clock):
    assert Progress(1, "t", out=Terminal()).live and not Progress(1, "t", out=Terminal(), live=False).live


@pytest.mark.parametrize("live", [True, False])
def test_a_closed_terminal_ends_nothing(clock, live):
    class Closing(Terminal):
        closed_now = False

        def write(self, text):
            if self.closed_now:
                raise OSError(errno.EIO, "Input/output error")
            return super().write(text)

    out, log = Closing(), []
    with Progress(100, "t", out=out, live=live, log=log.append) as shown:
        shown.update(10, {})
        out.closed_now = True
        for step in (20, 100):
            clock.now += 20
            shown.update(step, {})
        shown.print("a message")
    assert len(log) == 3 and "100" not in out.getvalue().replace("/100", "")


def test_counting_episodes(clock):
    out = io.StringIO()
    with counting(4, "eval pick", out=out) as told:
        assert out.getvalue() == "eval pick  0/4 0%  left ?\n", "before the first has ended"
        for done in range(1, 5):
            clock.now += 1
            told(done, done // 2)
    assert out.getvalue().splitlines()[-1] == "eval pick  4/4 100%  1.0 episodes/s  success 50%  left 0:00"


def test_slow_episodes_are_said_in_seconds_each(clock):
    shown = Progress(8, "eval tidy_house", out=io.StringIO(), unit="episodes")
    assert shown.line(0) == "eval tidy_house  0/8 0%  left ?"
    clock.now += 90
    shown.update(4, {})
    assert shown.line(4) == "eval tidy_house  4/8 50%  22.5 s/episode  left 1:30"
    assert [progress.spoken_rate(rate, "steps") for rate in (0.25, 1, 9.96, 10, 3412.4)] == [
        "4.0 s/step", "1.0 steps/s", "10.0 steps/s", "10 steps/s", "3,412 steps/s"]


def test_a_share_is_whole_only_at_the_end_and_never_more(clock):
    shown = Progress(1000, "t", out=io.StringIO())
    assert "999/1,000 99%" in shown.line(999)
    shown.update(1640, {})
    assert "1,640/1,640 100%" in shown.line(1640)


def test_sparkline_covers_its_range():
    assert sparkline([0.0, 0.5, 1.0], 3) == "▁▅█"
    assert len(sparkline([0.1] * 1000, 24)) == 24
    assert sparkline([-5, 5], 2, unicode=False).isascii()


def test_the_curve_of_a_rising_run_rises():
    steps = list(range(1000, 100_001, 1000))
    picture = learning_curve(steps, [step / 100_000 for step in steps])
    rows = picture.splitlines()[1:11]
    filled = [sum(row[7:].ljust(64)[column] != " " for row in rows) for column in range(64)]
    assert filled == sorted(filled) and filled[0] <= 2 and filled[-1] == 10
    assert "100% |" in picture and "100,000 steps" in picture
    assert learning_curve(steps, [0.5] * 100, unicode=False).isascii()
    assert "no episode" in learning_curve([], [])
    assert "no episode" in learning_curve([1], [float("nan")])


def test_small_words():
    assert (progress.spoken_time(257), progress.spoken_time(3723)) == ("4:17", "1:02:03")
    assert [progress.short(n) for n in (999, 4096, 43_210, 1_200_000, 5e8)] == ["999", "4,096", "43.2k", "1.2M", "500M"]
    assert of_episodes({"reward/success": 3.0, "episode/success": 0.5}, "success") == 0.5
    assert of_episodes({"episode/success": float("nan")}, "success") is None


def test_a_resumed_run_draws_its_whole_curve():
    shown = Progress(100, "train", start=50, out=io.StringIO())
    shown.remember([{"step": 10}, {"step": 25, "episode/success": 0.0}, {"step": 50, "episode/success": 0.2}])
    shown.update(100, {"episode/success": 0.9})
    bottom = shown.curve()[-3]
    assert bottom.count("█") + bottom.count("#") < 40  # the first half of the run, without success, stays empty
