"""When a policy becomes NaN: a file from which the failure can be repeated.

    python -m trainer.faults.nan_dump outputs/train/pick/<name>/diverged_rank0.pt
    torchrun --nproc-per-node=4 -m trainer.faults.nan_dump outputs/train/pick/<name>      a run of four ranks

The file holds the learner before the update that failed, and its experience; the update is repeated.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from trainer import ppo
from trainer.checkpoint import load_policy, ppo_config, read_torch_file, write_torch_file
from trainer.checkpoints.files import rng_from_plain
from trainer.errors import CheckpointError, NonFinite
from trainer.networks import MakePolicy, check_acts, check_finite
from trainer.policy import Policy
from trainer.ranks import ranks
from trainer.rollout import Rollout

if TYPE_CHECKING:
    from trainer.learner import Learner


def write_dump(run_dir: Path, learner: Learner, rollout: Rollout, error: NonFinite) -> Path:
    """`diverged_rank<r>.pt`: the learner, which must have been put back, and all experience in `rollout`."""
    path = run_dir / f"diverged_rank{learner.ranks.rank}.pt"
    tensors = {k: v.cpu() for k, v in rollout.tensors().items()}
    arrays = {k: torch.from_numpy(v) for k, v in rollout.arrays().items()}
    shape = {"num_envs": rollout.num_envs, "steps": rollout.steps, "batches": rollout.batches}
    write_torch_file(path, learner.content({}) | {
        "rollout": tensors | arrays, "shape": shape, "message": str(error), "inputs": error.inputs,
        "batch": torch.from_numpy(learner.batch), "late": learner.late})
    return path


def reproduce(path: str | os.PathLike, make_policy: MakePolicy = Policy) -> str:
    """Repeat the update that a dump is of; how it fails, in words. `make_policy`: that of the training. Raises
    ValueError if it does not fail, CheckpointError if it is of another network."""
    with ranks.join("cpu") as here:
        dump = _load(file := Path(path) / f"diverged_rank{here.rank}.pt" if Path(path).is_dir() else Path(path))
        if dump["inputs"]:
            return _act_again(dump, make_policy)
        policy, config = load_policy(dump, make_policy).train(), ppo_config(dump["train_config"]["ppo"])
        coef = ppo.EntropyCoefficient(config, torch.device("cpu"))
        with torch.no_grad():
            coef.log_alpha.copy_(dump["log_alpha"])
        optimizer = ppo.make_optimizer(policy, coef, config)
        optimizer.load_state_dict(dump["optimizer"])
        rollout, batch = _rollout(dump, policy), dump["batch"].numpy()
        try:
            ppo.update(policy, optimizer, coef, rollout, config, rng_from_plain(dump["numpy_rng"]), batch, here,
                       here.evaluator(policy), dump["late"])
            check_finite(policy)
        except NonFinite as error:
            return str(error)
    raise ValueError(f"{file} does not reproduce '{dump['message']}': the update went well.")


def _load(file: Path) -> dict[str, Any]:
    """A dump. Raises ValueError for anything else."""
    try:
        dump = read_torch_file(file)
        if "shape" in dump and "inputs" in dump:
            return dump
    except OSError as error:
        raise ValueError(f"{file} cannot be read: {error.strerror}.") from error
    except Exception:  # damaged, or something else, which fails in any way
        pass
    raise ValueError(f"{file} is no dump of a policy that became NaN, or is damaged.")


def _act_again(dump: dict[str, Any], make_policy: MakePolicy) -> str:
    """A policy that failed while acting, given the same inputs."""
    policy, inputs = load_policy(dump, make_policy), dump["inputs"]
    obs = {k[4:]: v for k, v in inputs.items() if k.startswith("obs/")}
    given = obs, inputs["state"], inputs["previous"]
    try:
        with torch.no_grad():
            check_acts(policy, *given, policy.act(*given))
    except NonFinite as error:
        return str(error)
    raise ValueError(f"'{dump['message']}' is not reproduced: the policy's output is finite.")


def _rollout(dump: dict[str, Any], policy: Any) -> Rollout:
    """The experience of a dump."""
    held = dump["rollout"]
    shapes = {k[4:]: tuple(v.shape[1:]) for k, v in held.items() if k.startswith("obs/")}
    rollout = Rollout(obs_shapes=shapes, action_size=policy.action_size, discrete=len(policy.choices),
                      state_size=policy.state_size, device=torch.device("cpu"), **dump["shape"])
    for k, tensor in rollout.tensors().items():
        tensor.copy_(held[k])
    for k, array in rollout.arrays().items():
        array[...] = held[k].numpy()
    return rollout


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m trainer.faults.nan_dump <a diverged_rank*.pt, or the directory of a run of several "
                 "ranks>")
    try:
        print(reproduce(sys.argv[1]))
    except (ValueError, CheckpointError) as error:
        sys.exit(str(error))
