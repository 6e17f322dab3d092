"""The report, opened and clicked through in a real browser without a window."""

from __future__ import annotations

import io
from collections.abc import Iterator

import numpy as np
import pytest
from PIL import Image

from eval.report import page as report_page
from tests.eval.report.browser import Page, browser, missing
from tests.eval.report.report_directories import add_video, scenario_evaluation, skill_evaluation, training

ROWS = "[...document.querySelectorAll('#episode-table tbody tr')]"


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> Iterator[Page]:
    """A report of two agents on a scenario, one evaluation of a skill and two seeds, opened in a browser."""
    if reason := missing():
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("browser") / "outputs"
    for seed in range(2):
        training(folder / f"train/pick/seed={seed}", seed)
    skill = skill_evaluation(folder / "eval/pick/first")
    scenario_evaluation(folder / "eval/tidy_house/a", "tp_srl", [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.1])
    scenario_evaluation(folder / "eval/tidy_house/b", "tp_srl_nonav", [0.5, 0.2, 0.1, 0, 0, 0, 0, 0, 0, 0])
    add_video(skill, 0, "episode_0000_success.mp4", "libvpx-vp9")
    add_video(skill, 33, "episode_0033_failure.mp4", "libx264")
    out = report_page.make([str(folder)], folder.parent / "report.html", folder, None, 100).path
    with browser() as opened:
        opened.open(out)
        opened.value("document.querySelector('#videos').scrollIntoView({block: 'center', behavior: 'instant'})")
        opened.until(  # each video of the gallery has been looked at: nothing moves any more
            "[...document.querySelectorAll('.gallery video')].every((v) => v.src.startsWith('blob:') && "
            "(v.readyState > 0 || v.parentElement.querySelector('.cannot')))"
        )
        yield opened


@pytest.fixture(autouse=True)
def as_loaded(page):
    """Each test begins with an ordinary window, no filter and nothing open."""
    page.window(1200, 900)
    if page.value("document.querySelector('#episode').open"):
        page.press("Escape")
    page.click("#filters button[type=reset]")
    page.until(f"{ROWS}.length === 100")


def count(page: Page) -> str:
    return page.value("document.querySelector('#episode-count').textContent")


def test_it_loads_without_errors_and_without_the_network(page):
    assert page.messages == []
    outside = [address for address in page.requests if not address.startswith(("file:", "data:", "blob:"))]
    assert outside == [] and sum(address.startswith("file:") for address in page.requests) == 1
    assert page.value("document.querySelector('h1').textContent") == "Report on pick and tidy house"


def test_the_security_policy_refuses_the_network(page):
    """Also for what might get into the page."""
    refused = page.value("fetch('http://127.0.0.1:9/').then(() => 'loaded', (error) => error.name)")
    assert refused == "TypeError"
    assert any("Content Security Policy" in message for message in page.messages)
    page.messages.clear()


def test_the_menu_leads_to_the_parts(page):
    names = page.value("[...document.querySelectorAll('nav a')].map((a) => a.hash)")
    assert names == ["#summary", "#scenarios", "#paper", "#caveats", "#skills", "#training", "#videos", "#episodes",
                     "#settings"]
    for name in names:
        page.click(f"nav a[href='{name}']")
        page.until(f"location.hash === '{name}' && document.querySelector('{name}').getBoundingClientRect().top "
                   "< innerHeight")


def test_plots_are_drawn_and_have_colours(page):
    """Visible pixels in the colours of the two agents."""
    page.value("document.querySelector('#scenario-tidy_house').scrollIntoView({behavior: 'instant'})")
    box = page.value("(() => { const r = document.querySelector('.wide .plot').getBoundingClientRect(); return [r.x, "
                     "r.y, r.right, r.bottom]; })()")
    picture = np.asarray(Image.open(io.BytesIO(page.look())).convert("RGB").crop(tuple(map(round, box)))).astype(int)
    for colour in ((0x00, 0x72, 0xB2), (0xC9, 0x55, 0x00)):
        assert (np.abs(picture - colour).max(-1) < 12).sum() > 300


def test_filters(page):
    assert count(page) == "240 of 240 episodes, 40 with success (16.7 %); the first 100 are shown"
    page.click("#more")
    page.until(f"{ROWS}.length === 200")
    page.choose("#filter-run", page.value("[...document.querySelectorAll('#filter-run option')].find((o) => o.text === "
                                          "'pick: policy').value"))
    assert count(page) == "40 of 40 episodes, 30 with success (75.0 %)".replace("of 40", "of 240")
    page.choose("#filter-success", "0")
    assert count(page) == "10 of 240 episodes, 0 with success (0.0 %)"
    page.choose("#filter-reason", "force_limit")
    assert count(page) == "4 of 240 episodes, 0 with success (0.0 %)"
    page.click("#filter-video")
    assert count(page) == "1 of 240 episodes, 0 with success (0.0 %)"
    page.click("#filters button[type=reset]")
    page.until(f"{ROWS}.length === 100")
    page.click("#filter-text")
    page.write("Tidy_House/17")
    assert count(page) == "2 of 240 episodes, 0 with success (0.0 %)"
    page.write(" nothing like this")
    assert count(page) == "0 of 240 episodes, 0 with success"


def test_sorting_by_a_column_that_holds_numbers_and_one_that_holds_words(page):
    steps = f"{ROWS}.map((row) => Number(row.children[head.indexOf('steps')].textContent))"
    names = "[...document.querySelectorAll('#episode-table th')].map((th) => th.dataset.column)"
    head = f"(() => {{ const head = {names}; return %s; }})()"
    before = page.value(head % steps)
    page.click("#episode-table th[data-column=steps] button")
    up = page.value(head % steps)
    assert up == sorted(up) and up[0] == 83
    page.click("#episode-table th[data-column=steps] button")
    down = page.value(head % steps)
    assert down == sorted(down, reverse=True) and down[0] == 2187
    assert page.value("document.querySelector('th[data-column=steps]').ariaSort") == "descending"
    page.click("#episode-table th[data-column=steps] button")
    assert page.value(head % steps) == before
    page.click("#episode-table th[data-column=reason] button")
    reasons = page.value(head % f"{ROWS}.map((row) => row.children[head.indexOf('reason')].textContent)")
    assert reasons[0] == "force limit" and reasons == sorted(reasons)  # what is missing comes last


def test_all_columns(page):
    before = page.value("document.querySelectorAll('#episode-table th').length")
    page.click("#all-columns")
    names = page.value("[...document.querySelectorAll('#episode-table th')].map((th) => th.dataset.column)")
    assert len(names) == before + 2 and {"reward/slack", "handoff_m"} <= set(names)


def test_an_episode_opens_with_its_video_and_the_video_plays(page):
    page.click("#filter-video")
    page.choose("#filter-success", "1")
    page.click("#episode-table tbody tr button")
    page.until("document.querySelector('#episode').open")
    assert page.value("document.querySelector('#episode-title').textContent") == "pick: policy, episode 0"
    facts = page.value("Object.fromEntries([...document.querySelectorAll('#episode-facts div')].map((d) => "
                       "[...d.children].map((c) => c.textContent)))")
    assert facts["scene"] == "val/0" and facts["steps"] == "200" and facts["reward/slack"] == "-0.0"
    video = "document.querySelector('#episode-video video')"
    page.until(f"{video}.currentTime > 0.3")
    assert page.value(f"[{video}.videoWidth, Math.round({video}.duration * 10)]") == [64, 20]
    page.press("Escape")
    page.until("!document.querySelector('#episode').open && !document.querySelector('#episode-video video')")


def test_a_video_of_the_gallery_leads_to_its_episode(page):
    page.click("#video-1 button")
    assert page.value("document.querySelector('#episode-title').textContent") == "pick: policy, episode 33"
    page.click("#episode form button")
    page.until("!document.querySelector('#episode').open")


def test_a_video_that_the_browser_cannot_play_is_told_and_offered(page):
    """H.264, which QtWebEngine lacks and other browsers have."""
    able = page.value("document.createElement('video').canPlayType('video/mp4; codecs=\"avc1.64000A\"') !== ''")
    page.click("#video-1 button")
    if able:
        page.until("document.querySelector('#episode-video video').currentTime > 0.3")
        return
    page.until("document.querySelector('#episode-video .cannot a')")
    link = "document.querySelector('#episode-video .cannot a')"
    size = page.value(f"fetch({link}.href).then((answer) => answer.blob()).then((blob) => blob.slice(4, 8).text())")
    assert size == "ftyp" and page.value(f"{link}.download") == "episode.mp4"


def test_an_episode_without_a_video_shows_its_figures(page):
    page.click("#filter-text")
    page.write("tidy_house/99")
    page.click("#episode-table tbody tr")
    assert page.value("document.querySelector('#episode').open && !document.querySelector('#episode-video video')")


@pytest.mark.parametrize("width", [360, 768])
def test_nothing_hangs_over_the_edge_of_a_small_screen(page, width):
    page.window(width, 780)
    over = page.value("[...document.body.querySelectorAll('*')].filter((e) => !e.closest('.scroll, dialog, script, "
                      "title') && e.getBoundingClientRect().right > innerWidth + 1).map((e) => "
                      "e.outerHTML.slice(0, 80))")
    assert over == []
    assert page.value("document.documentElement.scrollWidth <= innerWidth")
    kind = "narrow" if width == 360 else "wide"
    assert page.value("[...document.querySelectorAll('.wide, .narrow')].filter((e) => e.offsetParent).every((e) => "
                      f"e.className === '{kind}')")
    smallest = page.value("Math.min(...[...document.querySelectorAll('.plot text')].filter((t) => "
                          "t.getBoundingClientRect().width).map((t) => 12 * "
                          "t.ownerSVGElement.getBoundingClientRect().width / t.ownerSVGElement.viewBox.baseVal.width))")
    assert smallest > 9  # pixels: letters stay readable


def test_no_row_is_tall_and_empty_on_a_phone(page):
    """A card of the paper's table takes a few lines, whatever stands in its last column; its words are not cut off."""
    page.window(360, 780)
    for table in ("paper", "summary"):
        rows = page.value(f"[...document.querySelectorAll('table.{table} tbody tr')].map((r) => [r.offsetHeight, "
                          "r.scrollWidth - innerWidth])")
        assert rows and all(height < 130 and over <= 0 for height, over in rows), rows


def test_dark_and_light_and_print(page):
    """The background follows the wish of the reader; paper is white; text has contrast in all of them."""
    for dark, media, light_back in ((False, "", True), (True, "", False), (True, "print", True)):
        page.window(1000, 800, dark=dark, media=media)
        back, text, faint = (
            luminance(page.value(f"getComputedStyle(document.querySelector('{place}')).{key}"))
            for place, key in (("body", "backgroundColor"), ("body", "color"), (".note", "color"))
        )
        assert (back > 0.5) == light_back
        for ink in (text, faint):
            assert (max(back, ink) + 0.05) / (min(back, ink) + 0.05) > 4.5  # WCAG 2.1, level AA
        series = page.value("[0, 1, 2, 3, 4, 5].map((i) => { const e = "
                            "document.body.appendChild(document.createElement('i')); e.className = 's' + i; const c = "
                            "getComputedStyle(e).color; e.remove(); return c; })")
        assert len(set(series)) == 6
        for ink in map(luminance, series):
            assert (max(back, ink) + 0.05) / (min(back, ink) + 0.05) > 3  # for graphics
    assert page.value("getComputedStyle(document.querySelector('nav')).display") == "none"


def luminance(colour: str) -> float:
    """Relative luminance of `rgb(r, g, b)` (WCAG 2.1)."""
    parts = [int(number) / 255 for number in colour.removeprefix("rgb(").rstrip(")").split(",")[:3]]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
