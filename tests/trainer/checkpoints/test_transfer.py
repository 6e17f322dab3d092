"""What a policy takes over of one that was trained for another task."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from gymnasium import spaces

from trainer import Policy, PolicyConfig
from trainer.checkpoint import policy_content
from trainer.checkpoints.transfer import take_over
from trainer.errors import CheckpointError

TURN = spaces.Discrete(4)
SIZES = dict(encoder="light", lstm_layers=1, embedding_size=8, hidden_size=8, body_size=16)


def space(**vectors: int) -> spaces.Dict:
    return spaces.Dict({"depth": spaces.Box(0, 1, (32, 32, 1), np.float32)}
                       | {name: spaces.Box(-1, 1, (size,), np.float32) for name, size in vectors.items()})


def made(observations: spaces.Dict, actions: spaces.Space = TURN, seed: int = 0, **settings) -> Policy:
    torch.manual_seed(seed)
    return Policy(observations, actions, PolicyConfig(**SIZES | settings))


def trained(observations: spaces.Dict, actions: spaces.Space = TURN, **settings) -> tuple[Policy, dict]:
    policy = made(observations, actions, seed=1, **settings)
    for parameter in policy.parameters():
        torch.nn.init.normal_(parameter)
    return policy, policy_content(policy, observations, actions)


def test_what_both_see_is_read_as_before_and_the_rest_begins_anew():
    old, content = trained(space(compass=2, goal=4))
    new, fresh = made(space(compass=2, place=3)), made(space(compass=2, place=3))
    taken = take_over(new, content)
    assert taken.over == ("compass", "depth", "previous action", "body", "lstm")
    assert taken.anew == ("place", "normalizer", "value_body", "mean", "value", "return_scale")
    image, compass, previous = torch.rand(3, 32, 32, 1), torch.rand(3, 2), torch.eye(4)[:3]
    for policy in (old, new, fresh):
        policy.normalizer = None  # which was of other numbers
    seen = {"depth": image, "compass": compass}
    a = old.act(seen | {"goal": torch.zeros(3, 4)}, torch.zeros(3, old.state_size), previous, deterministic=True)
    b = new.act(seen | {"place": torch.zeros(3, 3)}, torch.zeros(3, new.state_size), previous, deterministic=True)
    c = fresh.act(seen | {"place": torch.zeros(3, 3)}, torch.zeros(3, new.state_size), previous, deterministic=True)
    assert torch.allclose(a.state, b.state, atol=1e-5) and not torch.allclose(a.state, c.state, atol=1e-2)
    for name in ("mean.weight", "mean.bias", "value.weight", "value_body.0.weight"):
        assert torch.equal(new.state_dict()[name], fresh.state_dict()[name]), name
    columns = new.body[0].weight[:, 2:5]
    assert torch.equal(columns, fresh.body[0].weight[:, 2:5]), "so does what is seen for the first time"


def test_other_actions_are_seen_anew():
    _, content = trained(space(goal=4))
    taken = take_over(made(space(goal=4), spaces.Box(-1, 1, (4,), np.float32)), content)
    assert {"mean", "log_std", "previous action"} <= set(taken.anew)
    assert {"goal", "normalizer", "lstm"} <= set(taken.over)


@pytest.mark.parametrize("observations, settings, words", [
    (space(goal=4), {"hidden_size": 12}, r"of other sizes: its lstm.weight_ih_l0 is \(32, 16\), this one's \(48, 16\)"),
    (space(place=4), {"encoder": None}, "sees depth, goal, this one place: there is nothing to take over"),
])
def test_what_does_not_fit_is_refused(observations, settings, words):
    _, content = trained(space(goal=4))
    with pytest.raises(CheckpointError, match=words):
        take_over(made(observations, **settings), content)
