"""Videos of episodes: one frame from its parts, and an mp4 file that is either complete or absent.

Frames are uint8 (H, W, 3) with even sides, as H.264 with yuv420p, which every browser plays, wants them.
"""

from __future__ import annotations

import math
import os
import subprocess
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rearrange.home.mapping.floor_map import SHOWN_CELL_M
from rearrange.home.pictures.overlay import depth_picture, draw_text, floor_picture, text_width
from trainer.faults.signals import signal_name

if TYPE_CHECKING:
    from rearrange.env.home_env import HomeScene
    from skills.skill import Skill

SCENE_SIZE = (960, 720)  # width and height of the scene in a video, which is 1280 x 720 with the panel beside it
PANEL_WIDTH, MARGIN, DEPTH_SIZE, MAP_SIZE, HAND_SIZE = 320, 16, 256, 128, 224
PANEL_RGB, TEXT_RGB, FAINT_RGB = (24, 27, 33), (232, 234, 238), (150, 156, 166)
SUCCESS_RGB, FAILURE_RGB = (46, 160, 87), (201, 65, 55)
BADGE_RGB = (255, 255, 255)
TITLE_SIZE, BADGE_SIZE, TEXT_SIZE, SMALL_SIZE = 20, 18, 16, 13
MOST_THREADS = 8  # that draw frames of a video; each has 30 MB to draw in
FPS = 30  # of a video in real time: a frame for each step of the simulator
SLOWEST = 0.1  # times as fast as the robot
HOLD_S = 0.7  # how long the last frame stays, so that the outcome can be read


class VideoError(Exception):
    """A video could not be written."""


def known_floor(scene: HomeScene, skill: Skill) -> tuple[np.ndarray, np.ndarray | None] | None:
    """What the policy of a skill knows of the floor, and its route; None where it looks at neither."""
    known = scene.floor_map
    return known and (known.around(scene.sim.base_pose, skill.nav_point[:2]), known.latest_route)


def default_speed(settings: Mapping[str, Any]) -> float:
    """Speed of an evaluation's videos, times as fast as the robot: `video_speed` of its settings, else a usual one.

    A skill is shown at half the robot's speed, so that the hand is seen at work; a scenario, which lasts minutes,
    faster.
    """
    if settings.get("video_speed") is not None:
        return float(settings["video_speed"])
    return 4.0 if settings.get("hab") else 1.0 if settings.get("nav") else 0.5


def pace(speed: float) -> tuple[int, float]:
    """Steps of 1/30 s for each frame, and frames per second, of a video that is `speed` times as fast as the robot."""
    steps = max(1, round(speed))
    return steps, FPS * speed / steps


def in_words(speed: float) -> str:
    """What the panel says of the speed, behind the step."""
    return "" if speed == 1.0 else f"   x{speed:g}"


def compose(third_person: np.ndarray, depth: np.ndarray | None, lines: list[str], *, title: str = "", footer: str = "",
            outcome: bool | None = None, reason: str = "", floor: tuple[np.ndarray, np.ndarray | None] | None = None,
            hand: np.ndarray | None = None, mask: np.ndarray | None = None) -> np.ndarray:
    """One video frame: the scene from outside; to its right a title, the depth image, lines of text, a faint footer.

    Args:
        third_person: uint8 (H, W, 3), as SCENE_SIZE or smaller.
        depth: normalised (h, w) or (h, w, 1); None for a blind policy.
        lines: those that are too long are cut with an ellipsis.
        title: above the depth image.
        footer: below the lines.
        outcome: True or False adds a badge, success or failure.
        reason: stands below the word of the badge.
        floor: what a policy knows of the floor and its route, in the lower left corner.
        hand: what the camera at the wrist sees, uint8 (h, w, 3), in the upper right corner.
        mask: of the depth image, 1 where what is looked for is seen.
    """
    height = max(third_person.shape[0] + third_person.shape[0] % 2, 512)
    width = third_person.shape[1] + PANEL_WIDTH
    frame = _background(height, width + width % 2).copy()
    frame[: third_person.shape[0], : third_person.shape[1]] = third_person
    if floor is not None:
        top = third_person.shape[0] - MARGIN - MAP_SIZE
        frame[top - 2 : top + MAP_SIZE + 2, MARGIN - 2 : MARGIN + MAP_SIZE + 2] = PANEL_RGB
        frame[top : top + MAP_SIZE, MARGIN : MARGIN
              + MAP_SIZE] = floor_picture(floor[0], SHOWN_CELL_M, MAP_SIZE, floor[1])
    if hand is not None:
        _inset(frame, hand, third_person.shape[1])
    left, y = third_person.shape[1] + MARGIN, MARGIN - 4
    if title:
        draw_text(frame, (left, y), fit(title, TITLE_SIZE), TITLE_SIZE, TEXT_RGB)
        y += TITLE_SIZE + 10
    if depth is not None:
        frame[y : y + DEPTH_SIZE, left : left + DEPTH_SIZE] = depth_picture(depth, DEPTH_SIZE, mask)
        draw_text(frame, (left, y + DEPTH_SIZE + 3), f"head camera, depth {depth.shape[1]} "
                  f"x {depth.shape[0]}{'' if mask is None else '; green: wanted'}", SMALL_SIZE, FAINT_RGB)
        y += DEPTH_SIZE + SMALL_SIZE + 16
    bottom = height - MARGIN - (SMALL_SIZE + 8 if footer else 0)
    spacing = TEXT_SIZE + 7
    shown = [fit(line, TEXT_SIZE) for line in lines[: max(0, (bottom - y) // spacing)]]
    if shown:
        draw_text(frame, (left, y), "\n".join(shown), TEXT_SIZE, TEXT_RGB, line_gap=spacing)
    if footer:
        draw_text(frame, (left, height - MARGIN - SMALL_SIZE), fit(footer, SMALL_SIZE), SMALL_SIZE, FAINT_RGB)
    if outcome is not None:
        _badge(frame, outcome, reason, third_person.shape[1] - 4 * MARGIN)
    return frame


def composed(pictures: Callable[[], tuple[np.ndarray, np.ndarray | None]], *parts: Any, **more: Any) -> np.ndarray:
    """As `compose`, of pictures that are drawn now: the scene, and what the camera at the wrist sees."""
    scene, hand = pictures()
    return compose(scene, *parts, hand=hand, **more)


@lru_cache(maxsize=4)
def _background(height: int, width: int) -> np.ndarray:
    """A frame that shows nothing. Filling one with a colour takes numpy as long as the rest of the panel."""
    return np.full((height, width, 3), PANEL_RGB, np.uint8)


def _inset(frame: np.ndarray, hand: np.ndarray, right: int) -> None:
    """Draw the hand's view with its name in the upper right corner of a scene that ends at column `right`."""
    (height, width), left = hand.shape[:2], right - MARGIN - hand.shape[1]
    frame[MARGIN - 2 : MARGIN + height + 2, left - 2 : left + width + 2] = PANEL_RGB
    frame[MARGIN : MARGIN + height, left : left + width] = hand
    draw_text(frame, (left + 6, MARGIN + height - SMALL_SIZE - 8), "hand", SMALL_SIZE, BADGE_RGB, shadow=True)


def _badge(frame: np.ndarray, outcome: bool, reason: str, width: int) -> None:
    """Draw success or failure, and why, in the upper left corner, at most `width` pixels wide."""
    lines = wrap(reason, TEXT_SIZE, width)
    longest = max([80.0, *(text_width(line, TEXT_SIZE) for line in lines)])
    spacing = TEXT_SIZE + 6
    bottom, right = MARGIN + 32 + spacing * len(lines), 3 * MARGIN + math.ceil(longest)
    frame[MARGIN:bottom, MARGIN:right] = SUCCESS_RGB if outcome else FAILURE_RGB
    draw_text(frame, (2 * MARGIN, MARGIN + 5), "success" if outcome else "failure", BADGE_SIZE, BADGE_RGB)
    draw_text(frame, (2 * MARGIN, MARGIN + 29), "\n".join(lines), TEXT_SIZE, BADGE_RGB, line_gap=spacing)


def wrap(text: str, size: int, width: int) -> list[str]:
    """The text in lines of at most `width` pixels, broken between words; a wider word is cut with an ellipsis."""
    lines: list[str] = []
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and text_width(longer, size) <= width:
            lines[-1] = longer
        else:
            lines.append(fit(word, size, width))
    return lines


def fit(text: str, size: int, width: int = PANEL_WIDTH - 2 * MARGIN) -> str:
    """The text, cut with an ellipsis if it is wider than the panel's column (pixels)."""
    if text_width(text, size) <= width:
        return text
    while text and text_width(text + "...", size) > width:
        text = text[:-1]
    return text.rstrip() + "..."


class VideoWriter:
    """Writes frames to an mp4 file: `with VideoWriter(path) as video: video.add(frame)`.

    Frames that are still to be drawn, `video.draw(make_frame)`, are drawn on all cores meanwhile. The file gets its
    name only when it is complete; after an error nothing stays. VideoError if it cannot be written, as on a full disk.
    The last frame is held for `hold_s` seconds.
    """

    def __init__(self, path: str | Path, fps: float = FPS, hold_s: float = HOLD_S):
        if fps < 1:
            raise ValueError(f"a video's fps is {fps}; it must be at least 1")
        self.path, self.fps, self.frames = Path(path), fps, 0
        self._hold = round(hold_s * fps)
        self._partial = self.path.with_name(f".{self.path.stem}.{os.getpid()}.partial.mp4")
        self._encoder, self._last = None, None
        self._threads: ThreadPoolExecutor | None = None
        self._coming: deque[Future[np.ndarray]] = deque()  # in their order

    def __enter__(self) -> VideoWriter:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        return self

    def add(self, frame: np.ndarray) -> None:
        """Append one frame; all have the same even size."""
        if (frame.dtype != np.uint8 or frame.ndim != 3 or frame.shape[2] != 3 or frame.shape[0] % 2
            or frame.shape[1] % 2):
            raise ValueError(f"a video frame is {frame.dtype} {frame.shape}; it must be uint8 (height, width, 3) with "
                             "even height and width")
        if self._last is not None and frame.shape != self._last.shape:
            raise ValueError(f"frame {self.frames} of {self.path.name} is {frame.shape}, the frames before "
                             f"are {self._last.shape}")
        if self._encoder is None:
            self._encoder = self._start(frame.shape[1], frame.shape[0])
        self._last = np.ascontiguousarray(frame)
        self._send()
        self.frames += 1

    def draw(self, make_frame: Callable[[], np.ndarray]) -> None:
        """Append the frame that `make_frame` gives, which is called in another thread, at the same time as others."""
        threads = min(os.cpu_count() or 1, MOST_THREADS)
        self._threads = self._threads or ThreadPoolExecutor(threads, "film")
        self._coming.append(self._threads.submit(make_frame))
        while self._coming and (len(self._coming) > 2 * threads or self._coming[0].done()):
            self.add(self._coming.popleft().result())

    def _start(self, width: int, height: int) -> subprocess.Popen:
        """Start ffmpeg, which reads frames and writes the file. In a session of its own it does not get Ctrl-C."""
        from imageio_ffmpeg import get_ffmpeg_exe

        source = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}", "-r", f"{self.fps:g}", "-i", "-"]
        target = ["-an", "-vcodec", "libx264", "-pix_fmt", "yuv420p", "-crf", "23", "-preset", "veryfast",
                  "-movflags", "+faststart"]
        return subprocess.Popen([get_ffmpeg_exe(), "-y", "-v", "error", *source, *target, str(self._partial)],
                                stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                start_new_session=True)

    def _send(self) -> None:
        """Send the last frame, once more."""
        try:
            self._encoder.stdin.write(self._last)
        except OSError:  # it has ended
            self._finish()

    def _finish(self) -> None:
        """Wait until ffmpeg has written everything; VideoError if it has not."""
        said = self._encoder.communicate()[1].decode(errors="replace").strip().splitlines()
        code = self._encoder.returncode
        whole = code == 0 and self._partial.is_file() and self._partial.stat().st_size > 0
        if not whole:
            how = f"it was ended by {signal_name(-code)}" if code < 0 else f"it ended with status {code}"
            raise VideoError(f"ffmpeg could not write {self.path}: {said[-1] if said else how}. Is there room on "
                             "the disk?")

    def __exit__(self, error_type, error, traceback) -> None:
        try:
            if error_type is None:
                while self._coming:
                    self.add(self._coming.popleft().result())
                if self._encoder is None:
                    raise ValueError(f"no frame was added to {self.path}")
                for _ in range(self._hold):
                    self._send()
                self._finish()
                os.replace(self._partial, self.path)
        finally:
            if self._threads is not None:
                self._threads.shutdown(cancel_futures=True)
            if self._encoder is not None and self._encoder.returncode is None:
                self._encoder.kill()
                self._encoder.communicate()
            self._partial.unlink(missing_ok=True)
