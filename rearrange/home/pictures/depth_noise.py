"""Errors of a real depth camera: noise that grows with distance, and holes. Images 0..1 over a range; 0: not measured.

Numbers of the noise: habitat-sim, redwood_depth_noise_model.py (after Choi et al., "Robust Reconstruction of Indoor
Scenes", CVPR 2015), without its table of a lens's distortion.
"""

from __future__ import annotations

import numpy as np

from rearrange.home.numba_cache import njit

_PATCH = 8  # pixels between the points from which the noise of holes is interpolated
_JUMP = 0.05  # share of the depth from which on a neighbour that is farther makes an edge


def noisy_depth(depth: np.ndarray, far_m: float, multiplier: float, rng: np.random.Generator) -> None:
    """Add noise to a depth image (size, size, 1), 0..1 over `far_m`, in place. What is 10 m away or more reads 0."""
    _noisy_depth(depth, far_m, multiplier, rng.standard_normal((*depth.shape[:2], 3), np.float32))


@njit(cache=True, nogil=True)
def _noisy_depth(depth, far, multiplier, drawn):
    rows, columns = depth.shape[0], depth.shape[1]
    before = depth.copy()
    for i in range(rows):
        for j in range(columns):
            y = int(min(max(i + drawn[i, j, 0] * 0.25 * multiplier, 0.0), rows - 1.0) + 0.5)
            x = int(min(max(j + drawn[i, j, 1] * 0.25 * multiplier, 0.0), columns - 1.0) + 0.5)
            z = before[y - y % 2, x - x % 2, 0] * far
            disparity = round((35.13 / max(z, 1e-3) + drawn[i, j, 2] * 0.027778 * multiplier) * 8.0)
            seen = z < 10.0 and disparity > 0
            depth[i, j, 0] = min(35.13 * 8.0 / disparity / far, 1.0) if seen else 0.0


def punch_holes(depth: np.ndarray, share: float, rng: np.random.Generator) -> None:
    """Set this share of a depth image (rows, columns, 1) to 0, in place: patches, most of them along edges."""
    rows, columns = depth.shape[:2]
    count = round(share * rows * columns)
    if not count:
        return
    points = rng.uniform(0.0, 1.0, (rows // _PATCH + 2, columns // _PATCH + 2))
    score = _between(points, rows, columns) + 0.25 * rng.uniform(0.0, 1.0, (rows, columns))
    image = depth[:, :, 0]
    for one, other, at in ((image[1:], image[:-1], score[:-1]), (image[:, 1:], image[:, :-1], score[:, :-1])):
        at += 0.4 * (np.abs(one - other) > _JUMP * np.minimum(one, other))
    flat = np.argsort(score, axis=None, kind="stable")[rows * columns - count:]
    image[np.unravel_index(flat, image.shape)] = 0.0


def _between(points: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """Values (rows, columns) between points that are _PATCH pixels apart, bilinear."""
    (i, y), (j, x) = (divmod(np.arange(count) / _PATCH, 1.0) for count in (rows, columns))
    i, j, y, x = i.astype(int)[:, None], j.astype(int)[None, :], y[:, None], x[None, :]
    upper, lower = ((1.0 - x) * points[k, j] + x * points[k, j + 1] for k in (i, i + 1))
    return (1.0 - y) * upper + y * lower
