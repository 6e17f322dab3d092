"""A short film of an episode, as an animated GIF: what TensorBoard and W&B show without a further package."""

from __future__ import annotations

import io

import numpy as np

MOST_FRAMES = 60  # of an episode of any length
SIDE = 256  # pixels at most
SHOWN_S = 5.0  # how long a film of MOST_FRAMES takes


class Film:
    """Frames at even distances: when there are too many, every second one goes, and half as many are taken from then
    on."""

    def __init__(self) -> None:
        self._frames: list[np.ndarray] = []
        self._every, self._seen = 1, 0

    @property
    def is_due(self) -> bool:
        """Whether the frame of this moment is wanted; ask once for each step."""
        self._seen += 1
        return (self._seen - 1) % self._every == 0

    def add(self, frame: np.ndarray) -> None:
        """A frame that was due: uint8 (H, W, 3)."""
        self._frames.append(_small(frame))
        if len(self._frames) >= MOST_FRAMES:
            self._frames, self._every = self._frames[::2], 2 * self._every

    def gif(self) -> bytes | None:
        """The film; None without a frame."""
        from PIL import Image

        if not self._frames:
            return None
        first, *others = (Image.fromarray(frame).quantize(128, dither=Image.Dither.NONE) for frame in self._frames)
        file = io.BytesIO()
        shown_ms = round(1000 * SHOWN_S / MOST_FRAMES)
        first.save(file, "gif", save_all=True, append_images=others, duration=shown_ms, loop=0)
        return file.getvalue()


def _small(frame: np.ndarray) -> np.ndarray:
    """A frame of at most SIDE pixels on a side."""
    from PIL import Image

    frame = np.asarray(frame, np.uint8)
    scale = SIDE / max(frame.shape[:2])
    if scale >= 1.0:
        return frame.copy()
    size = max(1, round(frame.shape[1] * scale)), max(1, round(frame.shape[0] * scale))
    return np.asarray(Image.fromarray(frame).resize(size, Image.Resampling.BILINEAR))
