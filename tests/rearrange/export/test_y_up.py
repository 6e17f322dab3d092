"""Between our frame and Habitat's: the same both ways, and a rotation moves what it turned."""

import numpy as np
import pytest

from rearrange.home.axis_conventions import AXES, matrix_to_pose, pose_to_matrix, to_y_up, to_z_up
from rearrange.home.geometry import quat_matrix


def test_up_is_up():
    assert to_y_up((0.0, 0.0, 1.0)) == (0.0, 1.0, 0.0) and to_z_up(0.0, 1.0, 0.0) == (0.0, 0.0, 1.0)
    assert np.linalg.det(AXES) == pytest.approx(1.0), "a mirror is no change of frame"


@pytest.mark.parametrize("seed", range(5))
def test_there_and_back(seed):
    rng = np.random.default_rng(seed)
    point = tuple(rng.normal(size=3).tolist())
    assert to_z_up(*to_y_up(point)) == point and to_y_up(to_z_up(*point)) == point
    assert AXES @ point == pytest.approx(to_y_up(point))
    quat = rng.normal(size=4)
    quat *= np.sign(quat[0]) / np.linalg.norm(quat)
    pose = (*point, *quat.tolist())
    assert matrix_to_pose(pose_to_matrix(pose)) == pytest.approx(pose)


def test_a_pose_moves_points_as_in_our_frame():
    rng = np.random.default_rng(7)
    quat = rng.normal(size=4)
    quat /= np.linalg.norm(quat)
    position, point = rng.normal(size=3), rng.normal(size=3)
    matrix = np.array(pose_to_matrix((*position, *quat)))
    there = matrix[:3, :3] @ AXES @ point + matrix[:3, 3]
    assert there == pytest.approx(AXES @ (quat_matrix(quat) @ point + position))
