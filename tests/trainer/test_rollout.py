"""The memory of a rollout: the worked example of docs/engine_updates.md, and which experience is overwritten first."""

import numpy as np
import pytest
import torch

from trainer.rollout import NO_ROW, Rollout

CPU = torch.device("cpu")


def act(rollout: Rollout, env: int, version: int = 0) -> None:
    """Open a step of one environment."""
    one = torch.zeros(1)
    rollout.open(np.array([env]), {"obs": torch.full((1, 1), float(rollout.env_steps[env]))}, one[:, None],
                 one[:, None],
                 one[:, None], one, np.zeros(1, np.float32), np.array([False]), version)


def answer(rollout: Rollout, env: int) -> None:
    """Close the open step of one environment."""
    rollout.close(np.array([env]), np.zeros(1), np.zeros(1))


def picture(rollout: Rollout, used: int) -> str:
    """`o0` an open row of environment 0, `c1` a closed one of environment 1."""
    return " ".join(("o" if row in rollout.open_row else "c") + str(rollout.env[row]) for row in range(used))


def test_the_rows_of_two_environments():
    """The worked example."""
    rollout = Rollout(2, 4, {"obs": (1,)}, 1, False, 1, CPU)
    assert rollout.rows == 6
    rollout.begin()
    act(rollout, 0)
    act(rollout, 1)
    assert picture(rollout, 2) == "o0 o1"
    for env, after in ((0, "c0 o1 o0"), (0, "c0 o1 c0 o0"), (1, "c0 c1 c0 o0 o1"), (0, "c0 c1 c0 c0 o1 o0")):
        assert rollout.remaining
        answer(rollout, env)
        act(rollout, env)
        assert picture(rollout, len(after.split())) == after
    assert not rollout.remaining and rollout.finish().tolist() == [0, 2, 1, 3]
    rollout.begin()
    answer(rollout, 1)
    act(rollout, 1, version=1)
    assert picture(rollout, 6) == "o1 c1 c0 c0 c1 o0"


@pytest.mark.parametrize("batches", [1, 2, 4])
@pytest.mark.parametrize("fill", [True, False])
def test_a_rollout_ended_early_is_filled_with_the_newest_of_the_one_before(batches, fill):
    """Over many rollouts of random length: no row is in a batch twice, none of it was overwritten or is open, fresh
    steps come first, then steps of the rollout before alone, as many as there are room and steps; so no step is in more
    than two batches. With room for several all but the oldest are untouched."""
    rng = np.random.default_rng(0)
    n, steps = 3, 12
    rollout = Rollout(n, steps, {"obs": (1,)}, 1, False, 1, CPU, batches)
    where: dict[tuple[int, int], int] = {}
    uses: dict[tuple[int, int], int] = {}
    last = 0
    before: list[np.ndarray] = []
    for version in range(40):
        kept = [rollout.obs["obs"][rows].clone() for rows in before]
        rollout.begin()
        count = steps if version == 0 else int(rng.integers(0, steps + 1))
        for env in np.flatnonzero(rollout.open_row == NO_ROW):
            act(rollout, env, version)
        while rollout.num_closed < count:
            env = int(rng.integers(n))
            answer(rollout, env)
            act(rollout, env, version)
        fresh = rollout.closed[:count].copy()
        batch = rollout.finish(fill)
        assert batch[:count].tolist() == fresh.tolist() and len(batch) == (min(steps, count + last) if fill else count)
        assert len(set(batch)) == len(batch) and not set(batch) & set(rollout.open_row)
        for row in batch[:count]:
            where[int(rollout.env[row]), int(rollout.step[row])] = version
        assert all((int(rollout.env[r]), int(rollout.step[r])) in where
                   for r in batch), "a row that was closed in some rollout"
        assert all(where[int(rollout.env[r]), int(rollout.step[r])] == version - 1 for r in batch[count:])
        for r in batch:
            uses[key] = uses.get(key := (int(rollout.env[r]), int(rollout.step[r])), 0) + 1
        last = count
        assert all(torch.equal(then, rollout.obs["obs"][rows]) for then, rows in zip(kept, before))
        before = [*before, batch][-(batches - 1) :] if batches > 1 else []
    assert max(uses.values()) == (2 if fill else 1)


def test_content_and_restore_are_inverse():
    rollout = Rollout(2, 4, {"obs": (1,)}, 1, False, 1, CPU, batches=2)
    rollout.begin()
    for env in (0, 1):
        act(rollout, env)
    for env in (0, 1, 0, 0):
        answer(rollout, env)
        act(rollout, env, version=3)
    rollout.finish()
    other = Rollout(2, 4, {"obs": (1,)}, 1, False, 1, CPU, batches=2)
    other.restore(rollout.content())
    for a, b in ((rollout.open_row, other.open_row), (rollout.batch, other.batch)):
        assert rollout.env[a].tolist() == other.env[b].tolist() and rollout.step[a].tolist() == other.step[b].tolist()
        assert torch.equal(rollout.obs["obs"][a],
                           other.obs["obs"][b]) and (rollout.version[a] == other.version[b]).all()
    assert rollout.env_steps.tolist() == other.env_steps.tolist()


def test_bytes_are_stored_as_bytes_and_handed_out_as_floats():
    rollout = Rollout(1, 4, {"image": (2, 2), "x": (1,)}, 1, False, 1, CPU,
                      obs_types={"image": np.dtype("u1"), "x": np.dtype("f4")})
    rollout.begin()
    one, image = torch.zeros(1), torch.tensor([[[0.0, 255.0], [7.0, 128.0]]])
    rollout.open(np.array([0]), {"image": image, "x": one[:, None] + 0.5}, one[:, None], one[:, None], one[:, None],
                 one,
                 np.zeros(1, np.float32), np.array([True]), 0)
    rows = rollout.open_row
    assert rollout.obs["image"].dtype == torch.uint8 and torch.equal(rollout.observations(rows)["image"], image)
    assert rollout.gather(rows, np.ones(1, int)).obs["x"].item() == 0.5
