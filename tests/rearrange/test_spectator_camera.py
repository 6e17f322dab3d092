"""The spectator's camera: on which side it stands, how near, and that it moves smoothly."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rearrange.home.pictures.spectator_camera import FAR_M, NEAR_M, PATIENCE, SIDES_RAD, SpectatorCamera, passes_column

BASE, HAND = (0.0, 0.0, 0.0), (0.7, 0.0, 0.9)


def free(start, end):
    return False


def wall(left: bool):
    """Something that hides the hand from every eye on one side of the robot."""
    return lambda start, end: (start[1] > 0.0) == left


def follow(camera, steps, base=BASE, hand=HAND, blocked=free):
    for _ in range(steps):
        view = camera.follow(base, hand, blocked)
    return view


@pytest.mark.parametrize("hidden_left", [True, False])
def test_it_stands_on_the_side_from_which_the_hand_is_seen(hidden_left):
    eye, _ = SpectatorCamera().follow(BASE, HAND, wall(hidden_left))
    assert (eye[1] < 0.0) == hidden_left


def test_where_all_sides_see_the_hand_it_stands_behind_the_left_shoulder_and_the_trunk_hides():
    eye, _ = SpectatorCamera().follow(BASE, HAND, free)
    assert eye[0] < 0.0 < eye[1]
    eye, _ = SpectatorCamera().follow(BASE, (0.35, -0.45, 0.8), free)  # behind the torso, as seen from there
    assert eye[1] < 0.0


def test_it_does_not_flip_for_a_moment_and_turns_without_jumps():
    camera = SpectatorCamera()
    follow(camera, 5)
    for _ in range(5):
        follow(camera, PATIENCE - 1, blocked=wall(True))
        follow(camera, 1)
    assert camera.side == 0
    eyes = [follow(camera, 1, blocked=wall(True))[0] for _ in range(200)]
    assert np.linalg.norm(np.diff(eyes, axis=0), axis=1).max() < 0.1
    assert eyes[0][1] > 1.0 and eyes[-1][1] < -1.0
    assert min(math.hypot(*eye[:2]) for eye in eyes) > 1.3  # around the robot, not through it
    side = camera.side
    follow(camera, 100)  # all sides are as good again: no reason to move
    assert camera.side == side


def test_it_comes_nearer_while_the_hand_works_and_goes_away_while_the_robot_drives():
    camera, far = SpectatorCamera(), []
    eye, target = follow(camera, 1)
    assert math.hypot(*eye[:2]) == pytest.approx(FAR_M[0], abs=1e-9) and eye[2] == FAR_M[1]
    for k in range(150):
        eye, target = camera.follow(BASE, (0.7, 0.0, 0.9 + 0.05 * math.sin(0.2 * k)), free)
        far.append(np.linalg.norm(eye - target))
    assert far[-1] < 0.75 * far[0] and (np.diff(far) < 0.05).all() and eye[2] == pytest.approx(NEAR_M[1], abs=0.02)
    assert np.linalg.norm(target - HAND) < 0.25
    follow(camera, 60)  # the hand rests: it stays
    assert np.linalg.norm(np.subtract(*follow(camera, 1))) < 0.75 * far[0]
    for k in range(150):
        eye, _ = camera.follow((0.03 * k, 0.0, 0.0), (0.03 * k + 0.7, 0.0, 0.9), free)
    assert eye[2] == pytest.approx(FAR_M[1], abs=0.02)


def test_it_keeps_its_side_of_a_robot_that_turns():
    camera = SpectatorCamera()
    follow(camera, 1)
    for k in range(300):
        yaw = min(0.01 * k, math.pi / 2)
        eye, _ = camera.follow((0.0, 0.0, yaw), (0.7 * math.cos(yaw), 0.7 * math.sin(yaw), 0.9), free)
    assert math.atan2(eye[1], eye[0]) % (2 * math.pi) == pytest.approx((math.pi / 2 + SIDES_RAD[0]) % (2 * math.pi),
                                                                       abs=0.02)


def test_a_line_crosses_a_column_where_points_on_it_are_inside():
    rng, middle, agree = np.random.default_rng(0), np.array([0.2, -0.1]), []
    for _ in range(300):
        start, end = rng.uniform((-2, -2, 0), (2, 2, 2.5), (2, 3))
        points = start + np.linspace(0.0, 1.0, 2001)[:, None] * (end - start)
        inside = (np.linalg.norm(points[:, :2] - middle, axis=1) < 0.5) & (points[:, 2] < 1.2)
        agree.append(passes_column(start, end, middle, 0.5, 1.2) == inside.any())
    assert sum(agree) >= 298  # all but such as touch it
