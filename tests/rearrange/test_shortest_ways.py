"""Shortest ways are those of Dijkstra's search, to the last bit, in whatever order cells are reached."""

import heapq

import numpy as np
import pytest

from rearrange.home.apartments.shortest_ways import STEP_I, STEP_J, is_open, shortest_distances


def dijkstra(blocked: np.ndarray, goals: np.ndarray, cell_m: float, weight: np.ndarray) -> np.ndarray:
    length = (np.sqrt((STEP_I**2 + STEP_J**2).astype(float)) * cell_m).astype(np.float32)
    distance = np.full(blocked.shape, np.inf, np.float32)
    heap = [(np.float32(0), *goal) for goal in goals.tolist()]
    for _, i, j in heap:
        distance[i, j] = 0
    while heap:
        d, i, j = heapq.heappop(heap)
        for q in range(16 if d == distance[i, j] else 0):
            a, b = i + int(STEP_I[q]), j + int(STEP_J[q])
            if 0 <= a < blocked.shape[0] and 0 <= b < blocked.shape[1] and is_open(blocked, i, j, q):
                longer = d + length[q] * weight[a, b]
                if longer < distance[a, b]:
                    distance[a, b] = longer
                    heapq.heappush(heap, (longer, a, b))
    return distance


@pytest.mark.parametrize("heaviest", [1.0, 9.0])
def test_distances_are_those_of_dijkstras_search(heaviest):
    rng = np.random.default_rng(0)
    for share in (0.0, 0.1, 0.3, 0.45):
        blocked = rng.random((31, 24)) < share
        goals = np.argwhere(~blocked)[rng.integers(300, size=3)]
        weight = rng.uniform(1.0, heaviest, blocked.shape).astype(np.float32)
        expected = dijkstra(blocked, goals, 0.05, weight)
        assert np.array_equal(shortest_distances(blocked, goals, 0.05, weight), expected)
        whole = shortest_distances(blocked, goals, 0.05, weight, near=(0, 0))  # no way over it is too long
        assert np.array_equal(whole, expected) and np.isfinite(expected).sum() > 100


def test_a_goal_that_is_named_twice_counts_once_and_none_leaves_no_way():
    blocked, weight = np.zeros((4, 6), bool), np.ones((4, 6), np.float32)
    once, twice = (shortest_distances(blocked, np.array(goals), 1.0, weight) for goals in ([[1, 2]], [[1, 2], [1, 2]]))
    assert np.array_equal(once, twice) and once[1, 2] == 0 and once[3, 3] == np.float32(5**0.5)
    assert np.isinf(shortest_distances(blocked, np.empty((0, 2)), 1.0, weight)).all()
