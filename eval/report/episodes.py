"""The episodes of all evaluations as one table for the script of the page, and their videos as text inside the page."""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from eval.report.runs import Evaluation
from eval.report.sections import section, words

FIRST_COLUMNS = ("index", "episode_id", "scene", "success", "stage", "ended_in", "reason", "steps", "reward")
POSTER_WIDTH_PX = 480


@dataclass(frozen=True)
class Video:
    """A video of one evaluation and the row of its episode, None if no row names it."""

    run: int
    file: Path
    row: int | None


@dataclass(frozen=True)
class Episodes:
    """All rows, one column `run` first; and the videos that are embedded or left out for their size."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    runs: tuple[str, ...]  # labels
    videos: tuple[Video, ...]
    left_out: tuple[Video, ...]


def collect(found: list[Evaluation], names: list[str], most_bytes: float) -> Episodes:
    """Join the tables; take videos, one of each evaluation in turn, until the next would exceed `most_bytes`."""
    named = [column for run in found for column in run.columns if column != "video"]
    first = [column for column in FIRST_COLUMNS if column in named]
    columns = tuple(dict.fromkeys([*first, *named]))
    rows, videos = [], []
    for number, run in enumerate(found):
        of_row = {}
        for episode in run.episodes:
            if name := Path(episode.get("video") or "").name:
                of_row[name] = len(rows)
            rows.append((str(number), *(episode.get(column, "") for column in columns)))
        videos.append([Video(number, file, of_row.get(name)) for name, file in run.videos.items()])
    taken, left_out, used = [], [], 0
    for video in _in_turn(videos):
        size = video.file.stat().st_size * 4 / 3
        if used + size <= most_bytes:
            taken.append(video)
            used += size
        else:
            left_out.append(video)
    taken.sort(key=lambda video: (video.run, video.file.name))
    return Episodes(columns, tuple(rows), tuple(names), tuple(taken), tuple(left_out))


def _in_turn(lists: list[list[Video]]) -> Iterator[Video]:
    for turn in range(max(map(len, lists), default=0)):
        yield from (videos[turn] for videos in lists if turn < len(videos))


def data(episodes: Episodes) -> str:
    """The rows as JSON that can stand inside a script element."""
    content: dict[str, Any] = {
        "columns": episodes.columns,
        "first": [c for c in FIRST_COLUMNS if c in episodes.columns],
        "runs": episodes.runs,
        "rows": episodes.rows,
        "videos": {str(v.row): i for i, v in enumerate(episodes.videos) if v.row is not None},
    }
    text = (
        json.dumps(content, separators=(",", ":"))
        .replace("<", "\\u003c")
        .replace("\u2028", "\\u2028")
        .replace("\u2029", "\\u2029")
    )
    return f'<script type="application/json" id="episode-data">{text}</script>'


def videos_section(episodes: Episodes) -> Iterator[str]:
    """The gallery, in pieces, since a video is large."""
    if not episodes.videos and not episodes.left_out:
        return
    yield '<section id="videos"><h2>Videos</h2>'
    if episodes.left_out:
        paths = ", ".join(f"<code>{escape(str(v.file))}</code>" for v in episodes.left_out)
        yield f'<p class="note">Left out for their size (raise video_mb= to embed them): {paths}.</p>'
    yield '<div class="gallery">'
    for number, video in enumerate(episodes.videos):
        yield from _figure(number, video, episodes)
    yield "</div></section>"


def _figure(number: int, video: Video, episodes: Episodes) -> Iterator[str]:
    poster = poster_of(video.file)
    still = f' poster="data:image/jpeg;base64,{_base64(poster)}"' if poster else ""
    yield f'<figure class="video" id="video-{number}"><video controls preload="none" playsinline{still} '
    yield 'src="data:video/mp4;base64,'
    yield _base64(video.file.read_bytes())
    yield '"></video>'
    caption = f"{escape(episodes.runs[video.run])}<br>"
    if video.row is None:
        caption += words(video.file.stem)
    else:
        row = dict(zip(("run", *episodes.columns), episodes.rows[video.row], strict=True))
        name = words(video.file.stem) if "index" not in row else f"episode {escape(row['index'])}"
        won = row.get("success", "").lower() in ("1", "1.0", "true")
        why = " in ".join(words(row[key]) for key in ("reason", "ended_in") if row.get(key))
        outcome = "success" if won else why or "failure"
        caption += f'<button type="button" class="link" data-row="{video.row}">{name}</button>: {outcome}'
    yield f"<figcaption>{caption}</figcaption></figure>"


def poster_of(file: Path) -> bytes:
    """A small JPEG of a moment in the first third; empty if the file cannot be decoded."""
    import imageio_ffmpeg

    try:
        frames, seconds = imageio_ffmpeg.count_frames_and_secs(str(file))
        start = ["-ss", f"{seconds / 3:.2f}"] if frames > 3 else []
        done = subprocess.run([imageio_ffmpeg.get_ffmpeg_exe(), "-v", "error", *start, "-i", str(file), "-frames:v",
                               "1", "-vf", f"scale='min({POSTER_WIDTH_PX},iw)':-2", "-q:v", "5", "-f", "image2pipe",
                               "-c:v", "mjpeg", "-"], capture_output=True, timeout=60)
    except (OSError, RuntimeError, subprocess.TimeoutExpired):
        return b""
    return done.stdout


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")


def table_section(episodes: Episodes) -> str:
    """Head, filters and an empty table, which the script fills."""
    if not episodes.rows:
        return ""
    runs = "".join(f'<option value="{i}">{escape(name)}</option>' for i, name in enumerate(episodes.runs))
    reasons = sorted(_values(episodes, "reason"))
    ends = sorted(_values(episodes, "ended_in"))
    filters = (
        '<form id="filters" role="search" aria-label="Filter episodes">'
        '<label>Search <input type="search" id="filter-text" placeholder="scene, episode, reason" autocomplete="off">'
        "</label>"
        f'<label>Evaluation <select id="filter-run"><option value="">all</option>{runs}</select></label>'
        '<label>Outcome <select id="filter-success"><option value="">all</option><option value="1">success</option>'
        '<option value="0">failure</option></select></label>'
        + _choice("filter-reason", "Reason", reasons)
        + _choice("filter-ended_in", "Ended in", ends)
        + '<label class="check"><input type="checkbox" id="filter-video"> with video</label>'
        '<label class="check"><input type="checkbox" id="all-columns"> all columns</label>'
        '<button type="reset">Clear</button></form>'
    )
    body = (
        filters
        + '<p id="episode-count" class="faint" aria-live="polite"></p><div class="scroll"><table id="episode-table" '
        'class="numbers"><thead></thead><tbody></tbody></table></div>'
        '<button type="button" id="more" hidden>Show more</button>'
        "<noscript><p>The table of episodes needs JavaScript.</p></noscript>"
    )
    return section("episodes", "Episodes", body)


def _values(episodes: Episodes, column: str) -> set[str]:
    if column not in episodes.columns:
        return set()
    at = 1 + episodes.columns.index(column)
    return {row[at] for row in episodes.rows} - {""}


def _choice(anchor: str, label: str, values: list[str]) -> str:
    if not values:
        return ""
    options = "".join(f'<option value="{escape(value)}">{words(value)}</option>' for value in values)
    return f'<label>{label} <select id="{anchor}"><option value="">all</option>{options}</select></label>'
