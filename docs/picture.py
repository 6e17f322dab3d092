"""The picture of the README, from the video of an evaluation: three moments of one episode, each with the depth image.

    rearrange eval skill=pick video=5 name=for_the_readme
    python docs/picture.py outputs/eval/pick/for_the_readme/videos/episode_0004_success.mp4 docs/images/pick.png
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import imageio.v3 as iio
import numpy as np
from PIL import Image

from eval.video import DEPTH_SIZE, HOLD_S, MARGIN, TITLE_SIZE

MOMENTS = (0.0, 0.6, 1.0)  # of the episode
WIDTH_PX, GAP_PX = 380, 6


def column(frame: np.ndarray) -> np.ndarray:
    """The scene from outside, with the depth image in its lower right corner."""
    side = frame.shape[0]
    top, left = MARGIN - 4 + TITLE_SIZE + 10, side + MARGIN  # where eval.video.compose puts the depth image
    depth = frame[top : top + DEPTH_SIZE, left : left + DEPTH_SIZE]
    scene = Image.fromarray(frame[:, :side]).resize((WIDTH_PX, WIDTH_PX), Image.LANCZOS)
    inset = WIDTH_PX // 3
    scene.paste(Image.fromarray(depth).resize((inset, inset), Image.LANCZOS), (WIDTH_PX - inset, WIDTH_PX - inset))
    return np.asarray(scene)


def strip(frames: Sequence[np.ndarray]) -> np.ndarray:
    """The moments of an episode side by side, from its video frames."""
    gap = np.full((WIDTH_PX, GAP_PX, 3), 255, np.uint8)
    parts = [part for moment in MOMENTS for part in (gap, column(frames[round(moment * (len(frames) - 1))]))][1:]
    return np.concatenate(parts, axis=1)


def main(video: str, picture: str) -> None:
    frames = iio.imread(video)[: -round(HOLD_S * 30)]
    Image.fromarray(strip(frames)).save(picture, optimize=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
