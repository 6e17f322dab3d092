"""Gymnasium's spaces as the engine takes them: observations as a Box or a Dict of Boxes, actions as a row of numbers.
Without torch, which workers never load."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.spaces.utils import flatten, flatten_space

from trainer.nets.images import image_layout, to_unit
from trainer.workers.dtype_checks import NotOfItsSpace, cast, changed

__all__ = ["as_action", "badly_explored", "choices", "flat_space", "flattener", "layout", "space_from_plain",
           "space_to_plain", "stored_as", "units", "whole"]


def flat_space(space: spaces.Space) -> spaces.Space:
    """The observation space that the policy sees. Boxes stay as they are, in a Dict too. A Tuple or inner Dict with an
    image in it becomes one key for each of its parts, "sensors/camera" or "0"; whatever else there is, alone or under a
    key, becomes a vector: a Discrete a one-hot, a Tuple or inner Dict its parts one after another. ValueError if it
    cannot, or has no number."""
    if not _is_split(space):
        return _flat(space, "the observation")
    parts: dict[str, spaces.Space] = {}
    for path, part in _parts(space):
        key = _key(path)
        if key in parts:
            raise ValueError(f"two parts of the observation would both be called '{key}': rename one of them.")
        parts[key] = _flat(part, f"observation key '{key}'")
    if not parts:
        raise ValueError(f"the observation is of the space {space}; it must have at least one number.")
    return spaces.Dict(parts)


def flattener(space: spaces.Space) -> Callable[[Any], Any] | None:
    """What brings an observation of `space` into `flat_space(space)`, without what is not there; None where nothing is
    to be done. It raises NotOfItsSpace for values that its space does not have."""
    if _is_array(space):
        return None
    if not _is_split(space):
        return lambda value: _vector_of(space, value, "obs")
    parts = [(path, _key(path), None if _is_array(part) else part) for path, part in _parts(space)]
    if all(path == (key,) and part is None for path, key, part in parts):
        return None

    def flat(value: Any) -> dict[str, Any]:
        found = ((key, part, _at(value, path)) for path, key, part in parts)
        return {key: each if part is None else _vector_of(part, each, key)
                for key, part, each in found if each is not None}

    return flat


def choices(space: spaces.Space) -> tuple[int, ...]:
    """Options of each part of a discrete action; () for a Box. ValueError for another space, or one of size 0."""
    if isinstance(space, (spaces.Box, spaces.MultiDiscrete)) and 0 in space.shape:
        raise ValueError(f"the action is of the space {space} of shape {space.shape}; it must have at least one "
                         "number.")
    if isinstance(space, spaces.Box):
        return ()
    if isinstance(space, spaces.Discrete):
        return (int(space.n),)
    if isinstance(space, spaces.MultiDiscrete):
        return tuple(int(n) for n in space.nvec.flat)
    if isinstance(space, spaces.MultiBinary):
        return (2,) * int(np.prod(space.shape))
    raise ValueError(f"action space {space} is none of Box, Discrete, MultiDiscrete and MultiBinary of Gymnasium.")


def stored_as(space: spaces.Space) -> dict[str, np.dtype]:
    """In which type observations are kept, by key: bytes as bytes, all others in single precision."""
    boxes = space.spaces if isinstance(space, spaces.Dict) else {"obs": space}
    return {key: np.dtype(np.uint8 if box.dtype == np.uint8 else np.float32) for key, box in boxes.items()}


def units(space: spaces.Space) -> dict[str, float]:
    """Factors for the observations of a flat space, by key: images and bytes come into [0, 1], others stay (1)."""
    boxes: dict[str, Any] = space.spaces if isinstance(space, spaces.Dict) else {"obs": space}
    return {key: to_unit(box) if box.dtype == np.uint8 or _is_image(box) else 1.0 for key, box in boxes.items()}


def _is_image(box: spaces.Box) -> bool:
    """What cannot be told is for a network of the user's own, if for anybody."""
    try:
        return image_layout(box) is not None
    except ValueError:
        return False


def action_numbers(space: spaces.Space) -> int:
    """How many numbers an action has, or options where it is discrete."""
    return sum(choices(space)) or int(np.prod(space.shape))


def badly_explored(space: spaces.Space, mean: Any, deviation: Any) -> str | None:
    """Why actions drawn around `mean` with this deviation show little of a Box; None if they do not, or it is
    infinite."""
    if not isinstance(space, spaces.Box):
        return None
    low, high = (np.asarray(bound, np.float64).ravel() for bound in (space.low, space.high))
    mean, deviation = (np.broadcast_to(np.asarray(each, np.float64), low.shape) for each in (mean, deviation))
    half, beyond = (high - low) / 2, np.maximum(low - mean, mean - high)
    one_sided = (beyond >= 0) & (half > 5 * deviation)
    bad = np.flatnonzero(np.isfinite(half) & (one_sided | (beyond > 3 * deviation) | (half < deviation / 10)))
    if not len(bad):
        return None
    k = bad[0]
    return (f"number {k} of an action lies between {low[k]:g} and {high[k]:g}, and the policy begins with {mean[k]:g}, "
            f"give or take {deviation[k]:g}: little of that is explored. Wrap the environment in "
            "gymnasium.wrappers.RescaleAction(env, -1.0, 1.0), or set policy.mean_init and policy.log_std_init")


def layout(observation_space: spaces.Space, action_space: spaces.Space) -> tuple:
    """What two environments must have in common to be stepped together: keys and shapes, and the kind of action."""
    flat = flat_space(observation_space)
    parts = sorted(flat.items()) if isinstance(flat, spaces.Dict) else [("obs", flat)]
    return tuple((key, part.shape) for key, part in parts), action_space.shape, choices(action_space)


def whole(space: spaces.Space) -> bool:
    """Whether it is a Box of whole numbers, to which actions are rounded."""
    return isinstance(space, spaces.Box) and not np.issubdtype(space.dtype, np.floating)


def as_action(space: spaces.Space) -> Callable[[np.ndarray], Any]:
    """A function from numbers to an action in the space's shape and type: a copy, which an environment may keep."""
    if isinstance(space, spaces.Box) and space.dtype == np.float32:  # as the engine has them, within bounds
        return lambda numbers: np.array(numbers, np.float32)
    if isinstance(space, spaces.Box):
        rounded = whole(space)
        return lambda numbers: np.clip(np.array(np.rint(numbers) if rounded else numbers, space.dtype),
                                       space.low, space.high)
    start = getattr(space, "start", 0)
    if isinstance(space, spaces.Discrete):
        return lambda number: space.dtype.type(number + start)
    return lambda numbers: np.array(numbers + start, space.dtype)


def space_to_plain(space: spaces.Space) -> dict[str, Any]:
    """A space of the engine as plain values: bounds, which policies clip actions to, and numbers of options."""
    if isinstance(space, spaces.Dict):
        return {"dict": {k: space_to_plain(s) for k, s in space.items()}}
    if isinstance(space, spaces.Discrete):
        return {"discrete": int(space.n), "start": int(space.start)}
    if not isinstance(space, spaces.Box):
        start = getattr(space, "start", np.zeros(0, int)).reshape(-1)
        return {"choices": list(choices(space))} | ({"start": start.tolist()} if start.any() else {})
    uniform = all((bound == bound.flat[0]).all() for bound in (space.low, space.high))
    low, high = (b.flat[0].item() if uniform else b.tolist() for b in (space.low, space.high))
    return {"box": list(space.shape), "low": low, "high": high} | ({"dtype": space.dtype.name} if whole(space) else {})


def space_from_plain(plain: dict[str, Any]) -> spaces.Space:
    """The inverse of `space_to_plain`."""
    if "dict" in plain:
        return spaces.Dict({k: space_from_plain(v) for k, v in plain["dict"].items()})
    if "discrete" in plain:
        return spaces.Discrete(plain["discrete"], start=plain.get("start", 0))
    if "choices" in plain:
        return spaces.MultiDiscrete(plain["choices"], start=plain.get("start"))
    shape = tuple(plain["box"])
    dtype = np.dtype(plain.get("dtype", "float32")).type
    low, high = (np.broadcast_to(np.asarray(plain[b], dtype), shape) for b in ("low", "high"))
    return spaces.Box(low, high, shape, dtype)


def _is_array(space: spaces.Space) -> bool:
    return isinstance(space, spaces.Box) and space.shape != ()


def _is_split(space: spaces.Space) -> bool:
    """Whether its parts become keys."""
    return isinstance(space, spaces.Dict) or isinstance(space, spaces.Tuple) and _has_image(space)


def _has_image(space: Any) -> bool:
    if isinstance(space, (spaces.Dict, spaces.Tuple)):
        return any(_has_image(part) for _, part in _items(space))
    return isinstance(space, spaces.Box) and space.shape != () and image_layout(space) is not None


def _items(space: Any) -> Iterable[tuple[Any, spaces.Space]]:
    return space.items() if isinstance(space, spaces.Dict) else enumerate(space.spaces)


def _parts(space: Any, path: tuple = ()) -> Iterator[tuple[tuple, spaces.Space]]:
    """What becomes a key each, and where it is."""
    for name, part in _items(space):
        if isinstance(part, (spaces.Dict, spaces.Tuple)) and _has_image(part):
            yield from _parts(part, (*path, name))
        else:
            yield (*path, name), part


def _key(path: tuple) -> str:
    return "/".join(map(str, path))


def _at(value: Any, path: tuple) -> Any:
    """None where it is not there."""
    try:
        for name in path:
            value = value[name]
        return value
    except (KeyError, IndexError):
        return None


def _vector_of(space: spaces.Space, value: Any, name: str) -> np.ndarray:
    _refuse_others(space, value, name)
    return np.asarray(flatten(space, value))


def _refuse_others(space: spaces.Space, value: Any, name: str) -> None:
    """NotOfItsSpace for numbers that no value of the space has, and those that single precision does not."""
    if isinstance(space, (spaces.Dict, spaces.Tuple)):
        for part_name, part in _items(space):
            _refuse_others(part, value[part_name], f"{name}/{part_name}")
    elif isinstance(space, (spaces.Discrete, spaces.MultiDiscrete)):
        count, given = space.n if isinstance(space, spaces.Discrete) else space.nvec, np.asarray(value)
        if not np.all((space.start <= given) & (given < space.start + count) & (given == np.floor(given))):
            raise NotOfItsSpace(f"observation '{name}' is {value}, which is not of its space {space}.")
    elif isinstance(space, spaces.Box):
        if problem := changed(name, space.dtype, value) or cast(name, space.dtype, value):
            raise NotOfItsSpace(problem)


def _flat(space: spaces.Space, what: str) -> spaces.Space:
    flat = space if _is_array(space) else _vector(space, what)
    if 0 in flat.shape:
        raise ValueError(f"{what} is of the space {space} of shape {flat.shape}; it must have at least one number.")
    return flat


def _vector(space: spaces.Space, what: str) -> spaces.Space:
    if not isinstance(space, spaces.Space):
        raise ValueError(f"{what} is of the space {space!r}, which is none of Gymnasium's: the old Gym's are not "
                         "taken. Wrap it with the package shimmy.")
    if not space.is_np_flattenable:
        raise ValueError(f"{what} is of the space {space}, which has no fixed number of values.")
    if _lacks_parts(space):
        raise ValueError(f"{what} is of the space {space}; it must have at least one number in each of its parts.")
    return flatten_space(space)


def _lacks_parts(space: spaces.Space) -> bool:
    """Whether it is a Dict or Tuple of nothing, or has one inside."""
    if not isinstance(space, (spaces.Dict, spaces.Tuple)):
        return False
    parts = [part for _, part in _items(space)]
    return not parts or any(map(_lacks_parts, parts))
