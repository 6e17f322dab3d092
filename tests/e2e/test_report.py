"""rearrange report: the page of the shared training run and of an evaluation of it."""

from __future__ import annotations

import base64
import re
import shutil

import pytest

from tests.e2e.front_door import rearrange, steps_logged, succeed
from tests.eval.report.browser import browser, missing


@pytest.fixture(scope="module")
def reported(trained, tmp_path_factory):
    """Where nothing but the training run is: two episodes of its policy, one of them recorded, and the report of both
    runs, made by default. The folder and what the command printed."""
    home = tmp_path_factory.mktemp("report")
    shutil.copytree(trained.run, home / "outputs/train/pick/tiny")
    succeed(home, "eval", "skill=pick", "checkpoint=outputs/train/pick/tiny", "episodes=2", "video=1",
            "name=for_report", "skill.max_steps=20", "sim.num_layouts=4", "workers=1")
    return home, succeed(home, "report")


def test_the_page_holds_the_runs(reported):
    home, out = reported
    text = (home / "outputs/report.html").read_text()
    assert "outputs/eval/pick/for_report" in out and "outputs/train/pick/tiny" in out and "outputs/report.html" in out
    video = next((home / "outputs/eval/pick/for_report/videos").glob("*.mp4"))
    assert base64.b64encode(video.read_bytes()).decode() in text
    assert "rearrange eval skill=pick checkpoint=outputs/train/pick/tiny episodes=2 video=1" in text
    assert re.search(r"commit <code>[0-9a-f]{12}</code>", text) or "no git checkout" in text
    assert len(re.findall(r'<svg class="plot"', text)) >= 1
    last = steps_logged(home / "outputs/train/pick/tiny")[-1]
    assert f"{last / 1000:.4g}k steps" in text


def test_the_page_opens(reported):
    if reason := missing():
        pytest.skip(reason)
    with browser() as page:
        page.open(reported[0] / "outputs/report.html")
        page.until("document.querySelectorAll('#episode-table tbody tr').length >= 2")
        page.click("#filter-video")
        page.click("#episode-table tbody tr button")
        page.until("document.querySelector('#episode-video video')")
        assert page.messages == []


def test_a_typo_writes_nothing(trained):
    done = rearrange(trained.home, "report", "outputs/train/pick/tinny", "out=typo.html")
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert "outputs/train/pick/tinny does not exist" in done.stderr
    assert not (trained.home / "typo.html").exists()
