"""Statistics of columns for LeRobot's normalisation: of each number of a vector, of each channel of an image."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

QUANTILES = {"q01": 0.01, "q10": 0.10, "q50": 0.50, "q90": 0.90, "q99": 0.99}
EVERY, SIDE = 5, 32  # of images every fifth, and at most so many pixels on a side

Stats = dict[str, np.ndarray]


def of_rows(rows: np.ndarray) -> Stats:
    """Of rows (N, numbers), or of numbers (N,): arrays of as many numbers, and the count, (1,)."""
    values = np.asarray(rows, np.float64).reshape(len(rows), -1) if rows.ndim < 2 else np.asarray(rows, np.float64)
    found = {"min": values.min(0), "max": values.max(0), "mean": values.mean(0), "std": values.std(0),
             "count": np.array([len(values)])}
    quantiles = np.quantile(values, list(QUANTILES.values()), axis=0)
    return found | dict(zip(QUANTILES, quantiles, strict=True))


class Pixels:
    """A sample of the pixels of an episode's images, as a reader of the data set gets them: colours from 0 to 1."""

    def __init__(self) -> None:
        self._sample: list[np.ndarray] = []
        self._seen = 0

    def add(self, image: np.ndarray) -> None:
        """One more image, (H, W, channels)."""
        if self._seen % EVERY == 0:
            step = max(1, -(-max(image.shape[:2]) // SIDE))
            self._sample.append(image[::step, ::step].reshape(-1, image.shape[2]))
        self._seen += 1

    def stats(self, scale: float = 1.0) -> Stats:
        """Arrays of shape (channels, 1, 1); the count is that of images."""
        found = of_rows(np.concatenate(self._sample) * scale)
        return {name: value if name == "count" else value[:, None, None] for name, value in found.items()} | {
            "count": np.array([len(self._sample)])}


def together(several: Sequence[Mapping[str, np.ndarray]]) -> Stats:
    """Of all, from those of parts; quantiles are the means of the parts', as LeRobot has them."""
    counts = np.array([float(part["count"][0]) for part in several])
    share = counts / counts.sum()

    def mean(values: Sequence[np.ndarray]) -> np.ndarray:
        return np.tensordot(share, np.stack(values), axes=1)

    center = mean([part["mean"] for part in several])
    square = mean([part["std"] ** 2 + (part["mean"] - center) ** 2 for part in several])
    found = {"min": np.min([part["min"] for part in several], axis=0),
             "max": np.max([part["max"] for part in several], axis=0), "mean": center, "std": np.sqrt(square),
             "count": np.array([int(counts.sum())])}
    return found | {name: mean([part[name] for part in several]) for name in QUANTILES}
