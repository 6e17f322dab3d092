"""What only a GPU can show; the other tests of the engine also run there, with device=auto."""

import numpy as np
import pytest
import torch
from gymnasium import spaces

from trainer import PolicyConfig, TrainConfig, train
from trainer.acting import SIZES, RecordedActs
from trainer.checkpoint import load_checkpoint, load_policy
from trainer.config import CollectConfig
from trainer.policy import ACTION_MASK, Policy

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no GPU here")
GPU = torch.device("cuda")
SEES = {"depth": spaces.Box(0, 1, (32, 32, 1), np.float32), "joint": spaces.Box(-np.inf, np.inf, (5,), np.float32)}
MASKED = SEES | {ACTION_MASK: spaces.Box(0, 1, (4,), np.float32)}
CASES = {
    "Gaussian": (SEES, spaces.Box(-1, 1, (3,), np.float32), PolicyConfig(lstm_layers=2, hidden_size=16)),
    "ResNet in bfloat16": (SEES, spaces.Box(-1, 1, (3,), np.float32),
                           PolicyConfig(encoder="resnet18", image_precision="bfloat16", lstm_layers=1, hidden_size=16)),
    "discrete, masked, GRU": (MASKED, spaces.Discrete(4), PolicyConfig(lstm_layers=1, hidden_size=16, memory="gru")),
    "no memory": (SEES, spaces.Box(-1, 1, (3,), np.float32), PolicyConfig()),
}


@pytest.mark.parametrize("case", CASES)
def test_a_recorded_act_is_the_act_itself(case):
    """For every number of environments, also after the weights have changed."""
    sees, actions, config = CASES[case]
    torch.manual_seed(0)
    policy = Policy(spaces.Dict(sees), actions, config).to(GPU)
    acts, exact = RecordedActs(policy, GPU), 1e-3 if config.image_precision == "float32" else 0.05
    assert acts.records
    for count in (1, 3, 17, 17, 256, 1, 300):
        obs = {k: torch.rand(count, *space.shape, device=GPU) for k, space in sees.items()}
        if ACTION_MASK in obs:
            obs[ACTION_MASK] = (obs[ACTION_MASK] > 0.5).float().index_fill(1, torch.tensor([2], device=GPU), 1.0)
        state = torch.rand(count, policy.state_size, device=GPU)
        previous = torch.rand(count, policy.action_size, device=GPU)
        ours, theirs = (torch.Generator(GPU).manual_seed(count) for _ in range(2))
        act = acts(obs, state, previous, ours)
        noise = torch.randn(count, policy.action_size, generator=theirs, device=GPU) if count <= SIZES[-1] else None
        with torch.no_grad():
            true = policy.act(obs, state, previous, noise=noise, generator=theirs)
            for name, value in vars(true).items():
                torch.testing.assert_close(getattr(act, name), value, rtol=exact, atol=exact, msg=f"{name}, {count}")
            for parameter in policy.parameters():
                parameter.add_(0.1 * torch.randn_like(parameter))


def test_what_was_learned_on_a_gpu_is_played_on_the_cpu(tmp_path):
    collect = CollectConfig(num_envs=4, num_workers=2, rollout_steps=32)
    train(_pendulum,
          TrainConfig(steps=512, collect=collect, device="cuda", policy=PolicyConfig(lstm_layers=1, hidden_size=16)),
          run_dir=tmp_path)
    here, there = (load_policy(load_checkpoint(tmp_path)).to(device) for device in ("cpu", GPU))
    seen, state, previous = torch.randn(5, 3), torch.randn(5, here.state_size), torch.zeros(5, 1)
    with torch.no_grad():
        expected = there.act({"obs": seen.to(GPU)}, state.to(GPU), previous.to(GPU), deterministic=True).action.cpu()
        torch.testing.assert_close(here.act({"obs": seen}, state, previous, deterministic=True).action, expected,
                                   rtol=1e-3, atol=1e-3)


def _pendulum():
    import gymnasium

    return gymnasium.make("Pendulum-v1")
