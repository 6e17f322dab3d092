r"""Pictures of episodes. The moving one of the README, from videos of evaluations:

    rearrange eval skill=pick agent=pretrained episodes=4 video=4 video_speed=1 name=moving
    rearrange eval skill=open_fridge agent=pretrained episodes=4 video=4 video_speed=1 name=moving
    rearrange eval hab=tidy_house episodes=4 video=1 name=moving
    python docs/picture.py docs/images/skills.webp \
        outputs/eval/pick/moving outputs/eval/open_fridge/moving outputs/eval/tidy_house/moving

Each evaluation is a panel. It shows the successes one after another, for SECONDS: the scene from outside and, in the
upper right corner, the depth image of the head camera. One evaluation alone shows its whole first success in SECONDS:

    rearrange eval hab=set_table episodes=1 video=1 seed=97 name=clip
    python docs/picture.py docs/images/set_table.webp outputs/eval/set_table/clip
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import imageio.v3 as iio
import numpy as np
import yaml
from PIL import Image

from eval.video import DEPTH_SIZE, MARGIN, PANEL_WIDTH, TITLE_SIZE, default_speed
from rearrange.home.pictures.overlay import draw_text

MOMENTS = (0.0, 0.6, 1.0)  # of the episode, in a still picture
WIDTH_PX, GAP_PX = 380, 6
SECONDS, VIDEO_FPS, EVERY = 9, 30, 2  # of the moving picture: every second frame of the videos
PANEL_PX, CAPTION_PX, QUALITY = 300, 24, 60


def column(frame: np.ndarray, width: int = WIDTH_PX) -> np.ndarray:
    """The middle of the scene from outside, with the depth image in its upper right corner."""
    side, wide = frame.shape[0], frame.shape[1] - PANEL_WIDTH
    top, left = MARGIN - 4 + TITLE_SIZE + 10, wide + MARGIN  # where eval.video.compose puts the depth image
    depth = frame[top : top + DEPTH_SIZE, left : left + DEPTH_SIZE]
    cut = (wide - side) // 2
    scene = Image.fromarray(frame[:, cut : cut + side]).resize((width, width), Image.LANCZOS)
    inset = width // 3
    scene.paste(Image.fromarray(depth).resize((inset, inset), Image.LANCZOS), (width - inset, 0))
    return np.asarray(scene)


def strip(frames: Sequence[np.ndarray]) -> np.ndarray:
    """The moments of an episode side by side, from its video frames."""
    return beside([column(frames[round(moment * (len(frames) - 1))]) for moment in MOMENTS])


def beside(pictures: Sequence[np.ndarray]) -> np.ndarray:
    """Pictures of one height in a row, with white gaps."""
    gap = np.full((pictures[0].shape[0], GAP_PX, 3), 255, np.uint8)
    return np.concatenate([part for picture in pictures for part in (gap, picture)][1:], axis=1)


def successes(evaluation: str) -> list[Path]:
    """The videos of episodes that succeeded."""
    videos = sorted(Path(evaluation, "videos").glob("*_success.mp4"))
    if not videos:
        raise SystemExit(f"{evaluation}/videos has no video of a success")
    return videos


def whole(evaluation: str) -> list[np.ndarray]:
    """Frames of one episode from its beginning to its end, as many as SECONDS have."""
    frames = [column(frame, PANEL_PX) for frame in iio.imiter(successes(evaluation)[0])]
    return [frames[round(k)] for k in np.linspace(0, len(frames) - 1, SECONDS * VIDEO_FPS // EVERY)]


def panel(evaluation: str) -> Iterator[np.ndarray]:
    """The frames of one panel, without end: the successes of an evaluation, over and over."""
    text = caption(Path(evaluation))
    for video in itertools.cycle(successes(evaluation)):
        for frame in itertools.islice(iio.imiter(video), 0, None, EVERY):
            picture = np.full((PANEL_PX + CAPTION_PX, PANEL_PX, 3), 255, np.uint8)
            picture[CAPTION_PX:] = column(frame, PANEL_PX)
            draw_text(picture, (2, 2), text, 16, (36, 40, 48))
            yield picture


def caption(directory: Path) -> str:
    """Which skill or scenario, and how much faster than the robot it is shown."""
    name = directory.parent.name.replace("_", " ")
    settings = yaml.safe_load((directory / "config.yaml").read_text(encoding="utf-8"))
    return f"{name.title()}, {default_speed(settings):g} times as fast" if settings.get("hab") else name.capitalize()


def main(target: str, *evaluations: str) -> None:
    """Write the moving picture."""
    if len(evaluations) == 1:
        frames = whole(evaluations[0])
    else:
        rows = zip(*map(panel, evaluations), strict=True)
        frames = [beside(row) for row in itertools.islice(rows, SECONDS * VIDEO_FPS // EVERY)]
    shown = list(map(Image.fromarray, frames))
    shown[0].save(target, save_all=True, append_images=shown[1:], duration=round(1000 * EVERY / VIDEO_FPS), loop=0,
                  quality=QUALITY, method=6)


if __name__ == "__main__":
    main(*sys.argv[1:])
