"""Checkpoints: written atomically, tensors and plain values only, loadable with `weights_only=True`."""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from gymnasium import spaces

from trainer.checkpoints.checkpoint_check import OF_TRAINING, Wrong, check, policy_config
from trainer.checkpoints.files import check_unchanged, open_regular, seal
from trainer.config import PolicyConfig, PPOConfig
from trainer.errors import CheckpointError
from trainer.nets.images import image_layout
from trainer.networks import MakePolicy, content_of, make, refuse_another
from trainer.policy import EXPERT_ACTION, Policy, observation_shapes
from trainer.spaces import space_from_plain, space_to_plain

__all__ = ["CheckpointError", "best", "list_checkpoints", "load_checkpoint", "load_policy", "newest"]

FORMAT = 1
KEEP = 3
KEPT = "kept_"  # instead of "step_": one that stays for good
BEST = "best.pt"  # beside them: the policy that did best in the evaluations of its run
NAME = re.compile(r"step_(\d+)\.pt$")


def save(directory: Path, step: int, content: dict[str, Any]) -> Path:
    """Write `content` as `step_<step>.pt`. Older ones beyond KEEP go.

    Raises OSError (a full disk, say) with every earlier checkpoint intact and no partial file left.
    """
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"step_{step:012d}.pt"
    write(path, content | {"step": step})
    for other in [*list_checkpoints(directory), *directory.glob(f"{KEPT}*.pt")]:
        if other.name[len(KEPT):] > path.name[len(KEPT):]:  # of a run that went on from an older one than its newest
            other.replace(other.with_suffix(".abandoned"))
    for old in list_checkpoints(directory)[:-KEEP]:
        old.unlink(missing_ok=True)
    return path


def write(path: Path, content: dict[str, Any]) -> None:
    """Write a checkpoint: to a temporary name, synced, then renamed. Raises OSError with the file as it was before."""
    partial = path.with_suffix(".partial")
    try:
        write_torch_file(partial, {"format": FORMAT, **content})
        os.replace(partial, path)
    except BaseException as error:
        partial.unlink(missing_ok=True)
        if isinstance(error, RuntimeError):  # torch's zip writer turns a failed write into a RuntimeError
            raise OSError(f"could not write {path}: {str(error).splitlines()[0]}") from error
        raise


def write_torch_file(path: Path, content: Any) -> None:
    """Write what `read_torch_file` reads, with its checksum, and sync it."""
    with open(path, "w+b") as file:
        torch.save(content, file)
        seal(file)
        file.flush()
        os.fsync(file.fileno())


def remove_partial(directory: Path) -> None:
    """Remove what a process that was killed while it wrote has left; only whoever owns the directory may."""
    for partial in directory.glob("*.partial"):
        partial.unlink(missing_ok=True)


def list_checkpoints(directory: Path) -> list[Path]:
    """Complete checkpoints of a directory, oldest first."""
    return sorted((p for p in directory.glob("step_*.pt") if NAME.search(p.name)), key=lambda p: p.name)


def newest(path: Path) -> Path:
    """The checkpoint that `path` means: the file itself, or the newest in a run's or checkpoint directory."""
    try:
        if path.is_file():
            return path
        for directory in (path / "checkpoints", path):
            if found := list_checkpoints(directory):
                return found[-1]
        special = path.exists() and not path.is_dir()
    except (OSError, ValueError) as error:  # no permission, or no name that a file can have
        raise CheckpointError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}.") from None
    if special:
        raise CheckpointError(f"{path} is no regular file, but a pipe, a socket or a device: give a .pt file or the "
                              "directory of a training run.")
    raise CheckpointError(f"no checkpoint at {path}: give a .pt file or the directory of a training run.")


def best(path: Path) -> Path:
    """The checkpoint to play from `path`: the best one of a run with evaluations, else `newest`."""
    for directory in (path / "checkpoints", path):
        try:
            if (directory / BEST).is_file():
                return directory / BEST
        except (OSError, ValueError):  # as `newest` says
            break
    return newest(path)


def load_checkpoint(path: str | os.PathLike, to_continue: bool = False) -> dict[str, Any]:
    """Read a checkpoint on the CPU, checked by `trainer.checkpoints.checkpoint_check`.

    `to_continue`: a run shall go on from it, which takes more than its policy. Raises CheckpointError, in one sentence,
    for anything that is not a checkpoint."""
    file = newest(Path(path)) if to_continue else best(Path(path))
    try:
        content = read_torch_file(file)
    except OSError as error:
        raise CheckpointError(f"{file} cannot be read: {error.strerror or error}.") from error
    except Exception as error:  # foreign bytes read as a pickle fail in any way: struct.error, IndexError, ...
        raise CheckpointError(f"{file} is not a complete checkpoint: it is damaged, or another kind of file."
                              f"{_instead(file)}") from error
    if not isinstance(content, dict) or "policy" not in content or "format" not in content:
        raise CheckpointError(f"{file} is not a checkpoint of rearrange: it holds no 'policy' and 'format'.")
    if content["format"] != FORMAT:
        raise CheckpointError(f"{file} has checkpoint format {content['format']}; this version reads format {FORMAT}.")
    try:
        check(content)
    except Wrong as error:
        raise CheckpointError(f"{file} is damaged: {error}.{_instead(file)}") from error
    if to_continue and (missing := [name for name in OF_TRAINING if name not in content]):
        raise CheckpointError(f"{file} cannot be continued: it holds a policy without {', '.join(missing)}. A new run "
                              "can begin with it.")
    return content


def read_torch_file(file: Path) -> Any:
    """What torch wrote to a file, without taking more memory than the file is long. Raises OSError, or any other error
    for a file that is something else or of which a bit has changed."""
    with open_regular(file) as opened:
        with zipfile.ZipFile(opened) as archive:
            parts = archive.infolist()
        if sum(part.file_size for part in parts) > os.fstat(opened.fileno()).st_size:
            raise ValueError("it is compressed, which torch does not do")
        if any(part.filename.endswith("constants.pkl") for part in parts):
            raise ValueError("it is a program of TorchScript")
        check_unchanged(opened)
        opened.seek(0)
        return torch.load(opened, map_location="cpu", weights_only=True)


def _instead(file: Path) -> str:
    """Which checkpoint may be taken instead of a damaged one."""
    older = [str(p) for p in list_checkpoints(file.parent) if p.name < file.name][-1:] if NAME.search(file.name) else []
    return f" The one before it is {older[0]}." if older else ""


@contextmanager
def using(file: str | os.PathLike) -> Iterator[None]:
    """Tell what goes wrong while a checkpoint is put to use as a CheckpointError that names its file."""
    try:
        yield
    except CheckpointError as error:
        raise CheckpointError(f"{file}: {error}") from error
    except (KeyError, TypeError, ValueError, IndexError, RuntimeError, AttributeError) as error:
        raise CheckpointError(f"{file} cannot be continued: what it says of its run does not fit together "
                              f"({(str(error).splitlines() or [type(error).__name__])[0]}).") from error


def load_policy(content: dict[str, Any], make_policy: MakePolicy = Policy) -> Any:
    """The policy of a checkpoint, in evaluation mode, on the CPU. `make_policy`: that of its training. Raises
    CheckpointError if it is of another network."""
    refuse_another(content, make_policy)
    observation_space, action_space = (space_from_plain(content[key]) for key in ("observation_space", "action_space"))
    try:
        policy = make(make_policy, observation_space, action_space, policy_config(content["policy_config"]))
    except ValueError as error:
        raise CheckpointError(f"no network can be made of what the checkpoint says: {error}") from error
    try:
        policy.load_state_dict(content["policy"])
    except RuntimeError as error:
        raise CheckpointError("the weights do not fit the network they are stored with: "
                              f"{str(error).splitlines()[-1].strip()}") from error
    policy.observation_space, policy.action_space = observation_space, action_space  # an export needs them
    return policy.eval()


def seen(content: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    """Shapes of the observations that a checkpoint's policy uses, by key."""
    if "network" in content:
        return {k: tuple(shape) for k, shape in content["network"]["seen"].items()}
    space, encoder = space_from_plain(content["observation_space"]), content["policy_config"]["encoder"]
    boxes: dict[str, Any] = space.spaces if isinstance(space, spaces.Dict) else {"obs": space}
    return {k: shape for k, shape in observation_shapes(space).items() if encoder or not image_layout(boxes[k])}


def ppo_config(plain: dict[str, Any]) -> PPOConfig:
    """PPOConfig from the plain values of a checkpoint."""
    return PPOConfig(**plain | {"entropy_bounds": tuple(plain["entropy_bounds"])})


def policy_content(policy: Any, observation_space: spaces.Space, action_space: spaces.Space,
                   config: PolicyConfig | None = None, make_policy: MakePolicy = Policy) -> dict[str, Any]:
    """What `load_policy` needs, as tensors and plain values, without what only the policy's teacher sees.

    Args:
        policy: the network.
        observation_space: of its environments, as `trainer.spaces.flat_space` gives it.
        action_space: of its environments.
        config: settings of a policy that does not keep them as `policy.config`.
        make_policy: what made the network.
    """
    if isinstance(observation_space, spaces.Dict):
        observation_space = spaces.Dict({k: s for k, s in observation_space.items() if k != EXPERT_ACTION})
    return {
        "policy": {k: v.detach().cpu() for k, v in policy.state_dict().items()},
        "policy_config": asdict(config or policy.config),
        "observation_space": space_to_plain(observation_space),
        "action_space": space_to_plain(action_space),
    } | content_of(make_policy, policy)
