"""No test depends on how busy the machine is: what sleeps, measures, or has a limit below a minute says why it may."""

from pathlib import Path

import pytest

from tests.waiting import all_places, places, until


def test_every_place_that_depends_on_a_clock_says_why_it_may():
    assert not [str(place) for place in all_places() if not place.reason]


@pytest.mark.parametrize("line, kind", [
    ("time.sleep(1.0)", "sleeps"), ("from time import sleep; sleep(2)", "sleeps"),  # timed: data
    ("began = time.monotonic()", "measures"),  # timed: data
    ("process.communicate(timeout=20)", "limit"), ("process.wait(10)", "limit"), ("thread.join(5.0)", "limit"),
    ("finish(process, timeout_s=30.0)", "limit"), ("agent(step_timeout_s=1)", "limit"),
    ("CODE = 'import time; time.sleep(3)'", "sleeps"),  # timed: data
    ("process.wait()", None), ("process.wait(60)", None), ("', '.join(names)", None), ("events.get('a')", None),
    ("time.ctime()", None),
])
def test_a_place_that_depends_on_a_clock_is_found(tmp_path: Path, line, kind):
    (file := tmp_path / "test_x.py").write_text(f"import time\n{line}\n{line}  # timed: an environment that is slow\n")
    assert [(place.line, place.kind, place.reason) for place in places(file)] == (
        [(2, kind, ""), (3, kind, "an environment that is slow")] if kind else [])


def test_what_does_not_come_is_named():
    with pytest.raises(AssertionError, match="a second dawn: not within 0 s"):
        until(lambda: False, "a second dawn", limit_s=0.05)  # timed: it never comes
    until(lambda: True, "anything")
