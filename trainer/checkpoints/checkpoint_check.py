"""What a checkpoint must hold, key by key: kinds of values, bounds, finite weights.

A file may load and still be nonsense: damaged, edited, or made by somebody else. `check` looks at every checkpoint that
is read. Whoever uses one finds what is promised here, and nothing it says asks for more memory than the file has.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any

import numpy as np
import torch
from torch import Tensor

from trainer.checkpoints.files import rng_from_plain
from trainer.config import BEFORE_0_2, PolicyConfig, TrainConfig
from trainer.machine import SIZED_ENCODERS, least_weights
from trainer.nets.images import image_layout
from trainer.spaces import space_from_plain

MOST_STEPS = 10**15
MOST_VALUES = 1 << 26  # in one observation: 256 MB
MOST_CHOICES = 1 << 20  # options of a discrete action
WHOLE = ("uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64", "bool")  # of a Box, beside float32
LARGEST_IMAGE = 1024  # pixels on a side
OF_TRAINING = ("optimizer", "log_alpha", "counters", "torch_rng", "numpy_rng")  # what a run needs to be continued


class Wrong(ValueError):
    """What is wrong, with the key and its value."""


def check(content: dict[str, Any]) -> None:
    """Raise Wrong for the first thing that is not as in a checkpoint that `trainer.checkpoint.save` wrote."""
    try:
        for name, tensor in _tensors("", content):
            _stored(name, tensor)
        _whole("step", content.get("step"), 0, MOST_STEPS)
        weights = content.get("policy")
        _need(isinstance(weights, dict) and weights
              and all(isinstance(k, str) and isinstance(v, Tensor) for k, v in weights.items()),
              "policy", weights, "the weights by name")
        _policy(content)
        _meta(content.get("meta", {}))
        for name, rule in _TRAINING.items():
            if name in content:
                rule(name, content[name])
    except RecursionError:
        raise Wrong("its values are nested too deep") from None


def policy_config(plain: dict[str, Any]) -> PolicyConfig:
    """PolicyConfig from the plain values of a checkpoint."""
    return PolicyConfig(**{k: tuple(v) if isinstance(v, list) else v for k, v in (BEFORE_0_2 | plain).items()})


def _tensors(name: str, value: Any) -> Iterator[tuple[str, Tensor]]:
    """Every tensor, however deep, with its name."""
    if isinstance(value, Tensor):
        yield name, value
    elif isinstance(value, (dict, list, tuple)):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _tensors(f"{name}.{key}" if name else str(key), part)


def _stored(name: str, tensor: Tensor) -> None:
    """A tensor that is no larger than what is stored of it, and has numbers."""
    odd = tensor.layout != torch.strided or tensor.is_quantized or tensor.device.type != "cpu" or tensor.is_complex()
    if odd or tensor.numel() * tensor.element_size() > tensor.untyped_storage().nbytes():
        raise Wrong(f"{name} is no plain tensor: its shape {tuple(tensor.shape)} has more numbers than are stored, or "
                    "another kind")
    is_learned = name.split(".")[0] in ("policy", "optimizer", "log_alpha")
    if is_learned and tensor.is_floating_point() and not tensor.isfinite().all():
        raise Wrong(f"{name} has numbers that are NaN or infinite")


def _policy(content: dict[str, Any]) -> None:
    """The configuration of the network, its spaces, and that all of these are no larger than the weights."""
    plain = _mapping("policy_config", content.get("policy_config"))
    known = {field.name for field in fields(PolicyConfig)}
    if wrong := sorted(set(plain) - known, key=str):
        raise Wrong(f"policy_config has {wrong[0]!r}, which is no setting of a policy")
    try:
        config = policy_config(plain)
        TrainConfig(policy=config).check()
    except (ValueError, TypeError) as error:
        raise Wrong(f"policy_config: {str(error).rstrip('.')}") from None
    is_own = "network" not in content  # another one is only made with its make_policy
    vectors, images = _observation("observation_space", content.get("observation_space"), any_shape=not is_own)
    actions = _action("action_space", content.get("action_space"))
    if not is_own:
        return _network(content["network"])
    stored = sum(weight.numel() for weight in content["policy"].values())
    asked = least_weights(config, vectors, images if config.encoder else [], actions)
    if config.encoder in (None, *SIZED_ENCODERS) and asked > stored:
        raise Wrong(f"policy_config and spaces describe a network of at least {asked:,} numbers, and {stored:,} are "
                    "stored")


def _network(value: Any) -> None:
    """A network that the engine does not know (trainer.networks)."""
    plain = _mapping("network", value)
    _need(isinstance(plain.get("name"), str), "network.name", plain.get("name"), "a name")
    for key, shape in _mapping("network.seen", plain.get("seen")).items():
        _need(isinstance(key, str) and isinstance(shape, (list, tuple)), f"network.seen.{key}", shape, "a shape")
        for n in shape:
            _whole(f"network.seen.{key}", n, 1, MOST_VALUES)


def _observation(name: str, value: Any, any_shape: bool) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
    """Shapes of its vectors, and of its images. `any_shape`: what may be an image or not is a vector."""
    plain = _mapping(name, value)
    parts = _mapping(f"{name}.dict", plain["dict"]) if "dict" in plain else {"obs": plain}
    vectors, images = [], []
    for key, part in parts.items():
        _need(isinstance(key, str), name, key, "names of observations")
        shape = _box(f"{name}.{key}", part)
        try:
            image = image_layout(space_from_plain(part))
        except ValueError as error:
            if not any_shape:
                raise Wrong(f"{name}.{key}: {error}") from None
            image = None
        if image:
            _need(max(image.shape[:2]) <= LARGEST_IMAGE, f"{name}.{key}", shape,
                  f"an image of at most {LARGEST_IMAGE} pixels on a side")
        (images if image else vectors).append(image.shape if image else shape)
    return vectors, images


def _action(name: str, value: Any) -> int:
    """Numbers of an action, or of its options where it is discrete."""
    plain = _mapping(name, value)
    if "discrete" in plain:
        _whole(f"{name}.start", plain.get("start", 0), -MOST_STEPS, MOST_STEPS)
        return _whole(f"{name}.discrete", plain["discrete"], 1, MOST_CHOICES)
    if "choices" in plain:
        options = plain["choices"]
        _need(isinstance(options, (list, tuple)) and options, where := f"{name}.choices", options,
              "a list of numbers of options")
        start = plain.get("start", [0] * len(options))
        _need(isinstance(start, (list, tuple)) and len(start) == len(options), f"{name}.start", start,
              f"a list of {len(options)}")
        for n in start:
            _whole(f"{name}.start", n, -MOST_STEPS, MOST_STEPS)
        return _within(where, sum(_whole(where, n, 1, MOST_CHOICES) for n in options), MOST_CHOICES)
    return _within(f"{name}.box", math.prod(_box(name, plain, 0)), MOST_CHOICES)


def _box(name: str, value: Any, least: int = 1) -> tuple[int, ...]:
    """Its shape, of at least so many dimensions."""
    plain = _mapping(name, value)
    shape = plain.get("box")
    _need(isinstance(shape, (list, tuple)) and least <= len(shape) <= 8, f"{name}.box", shape, "a shape")
    for n in shape:
        _whole(f"{name}.box", n, 1, MOST_VALUES)
    _within(f"{name}.box", math.prod(shape), MOST_VALUES)
    kind = plain.get("dtype", "float32")
    _need(kind in WHOLE or kind == "float32", f"{name}.dtype", kind, f"one of {', '.join(WHOLE)}, or not there")
    bounds = []
    for bound in ("low", "high"):
        try:
            array = np.asarray(plain.get(bound), np.float32)
            fits = array.shape in ((), tuple(shape)) and not np.isnan(array).any()
            if kind in WHOLE:
                with np.errstate(invalid="raise"):
                    np.asarray(plain[bound], kind)
        except (ValueError, TypeError, OverflowError, FloatingPointError):
            fits = False
        _need(fits, f"{name}.{bound}", plain.get(bound), f"a number, or numbers of shape {tuple(shape)}, of {kind}")
        bounds.append(array)
    _need((bounds[0] <= bounds[1]).all(), f"{name}.low", plain["low"], "at most as great as high")
    return tuple(shape)


def _meta(value: Any) -> None:
    meta = _mapping("meta", value)
    for key, part in meta.items():
        _need(isinstance(key, str), "meta", key, "names")
        if key in ("skill", "scenario", "started_from"):
            _need(isinstance(part, str), f"meta.{key}", part, "a name")
    for key in _mapping("meta.env", meta.get("env", {})):
        _need(isinstance(key, str), "meta.env", key, "names of settings")
    _whole("meta.image_size", meta.get("image_size", 0), 0, LARGEST_IMAGE)
    if "gymnasium" in meta:  # trainer.loop: what gymnasium.make made the environment from
        made = _mapping("meta.gymnasium", meta["gymnasium"])
        _need(isinstance(made.get("id"), str), "meta.gymnasium.id", made.get("id"), "a name")
        kwargs = _mapping("meta.gymnasium.kwargs", made.get("kwargs"))
        _whole("meta.gymnasium.kwargs.depth_size", kwargs.get("depth_size", 0), 0, LARGEST_IMAGE)


def _optimizer(name: str, value: Any) -> None:
    plain = _mapping(name, value)
    state, groups = plain.get("state"), plain.get("param_groups")
    _need(isinstance(groups, list)
          and all(isinstance(each, dict) and isinstance(each.get("params"), list) for each in groups),
          f"{name}.param_groups", groups, "a list of groups of parameters")
    for key, of_one in _mapping(f"{name}.state", state).items():
        for what, number in _mapping(f"{name}.state.{key}", of_one).items():
            _need(isinstance(number, (Tensor, int, float)), f"{name}.state.{key}.{what}", number, "numbers")


def _log_alpha(name: str, value: Any) -> None:
    fine = isinstance(value, Tensor) and value.shape == () and value.is_floating_point()
    _need(fine, name, value, "one number in a tensor")


def _counters(name: str, value: Any) -> None:
    counters = _mapping(name, value)
    _need(set(counters) == {"steps", "updates", "episodes", "seconds"}, name, sorted(counters, key=str),
          "steps, updates, episodes and seconds")
    for key in ("steps", "updates", "episodes"):
        _whole(f"{name}.{key}", counters[key], 0, MOST_STEPS)
    seconds = counters["seconds"]
    _need(_is_number(seconds) and 0 <= seconds < MOST_STEPS, f"{name}.seconds", seconds, "a time in seconds")


def _torch_rng(name: str, value: Any) -> None:
    _generator(name, "torch", torch.Generator().set_state, value)


def _numpy_rng(name: str, value: Any) -> None:
    _generator(name, "NumPy", rng_from_plain, value)


def _generator(name: str, library: str, take: Callable[[Any], Any], state: Any) -> None:
    try:
        take(state)
    except (KeyError, TypeError, ValueError, OverflowError, IndexError, RuntimeError):
        raise Wrong(f"{name} is no state of {library}'s random generator") from None


def _window(name: str, value: Any) -> None:
    rows = value if isinstance(value, (list, tuple)) else [None]
    _need(all(isinstance(row, dict) and all(isinstance(key, str) and _is_number(number, finite=False)
                                            for key, number in row.items()) for row in rows),
          name, value, "a list of the figures of episodes")


def _ranks(name: str, value: Any) -> None:
    _need(isinstance(value, list), name, value, "a list of what each rank saved")
    for number, each in enumerate(value):
        where = f"{name}.{number}"
        _numpy_rng(f"{where}.numpy_rng", _mapping(where, each).get("numpy_rng"))
        if "collector" in each:  # of deterministic=true
            count = _collector(f"{where}.collector", each["collector"])
            _experience(f"{where}.rollout", each.get("rollout"), count)
            pending = each.get("pending")
            _need(pending is None or isinstance(pending, dict) and set(pending) == {"steps", "episodes", "batches"},
                  f"{where}.pending", pending, "nothing, or steps, episodes and batches")


def _collector(name: str, value: Any) -> int:
    """How many environments it has."""
    plain = _mapping(name, value)
    starts, episodes, actions, waiting = (plain.get(key) for key in ("starts", "episode", "actions", "waiting"))
    _need(isinstance(starts, Tensor) and starts.dim() == 1 and starts.dtype == torch.bool, f"{name}.starts", starts,
          "a row of bools")
    count = len(starts)
    for key, row in (("episode", episodes), ("actions", actions)):
        _need(isinstance(row, list) and len(row) == count, f"{name}.{key}", row, f"a list of {count}")
    for episode in episodes:
        _whole(f"{name}.episode", episode, 0, MOST_STEPS)
    _need(all(isinstance(taken, Tensor) for taken in actions), f"{name}.actions", actions, "tensors")
    _need(isinstance(waiting, list), f"{name}.waiting", waiting, "a list of environments")
    for env in (plain.get("turn"), *waiting):
        _whole(f"{name}.turn or waiting", env, 0, max(0, count - 1))
    for key in ("state", "previous"):
        _need(isinstance(plain.get(key), Tensor), f"{name}.{key}", plain.get(key), "a tensor")
    _need(isinstance(plain.get("generator"), Tensor) and plain["generator"].dtype == torch.uint8, f"{name}.generator",
          plain.get("generator"), "a state of torch's random generator")
    return count


def _experience(name: str, value: Any, envs: int) -> None:
    plain = _mapping(name, value)
    rows = _mapping(f"{name}.fields", plain.get("fields"))
    lengths = {len(field) if isinstance(field, Tensor) and field.dim() else -1 for field in rows.values()}
    _need(len(lengths) == 1 and -1 not in lengths, f"{name}.fields", list(rows), "tensors of one length")
    _whole(f"{name}.open", plain.get("open"), 0, min(envs, *lengths))
    steps = plain.get("env_steps")
    _need(isinstance(steps, Tensor) and steps.shape == (envs,) and not steps.is_floating_point(),
          f"{name}.env_steps", steps, f"{envs} numbers of steps")
    of = rows.get("env")
    _need(isinstance(of, Tensor) and of.dim() == 1 and not of.is_floating_point() and ((of >= 0) & (of < envs)).all(),
          f"{name}.fields.env", of, "numbers of environments")


_TRAINING: dict[str, Callable[[str, Any], Any]] = {
    "optimizer": _optimizer, "log_alpha": _log_alpha, "counters": _counters, "torch_rng": _torch_rng,
    "numpy_rng": _numpy_rng, "window": _window, "ranks": _ranks,
}


def _need(fine: Any, name: str, value: Any, wanted: str) -> None:
    if not fine:
        is_short = isinstance(value, (list, tuple)) and len(value) <= 8 and all(
            isinstance(each, (int, float, str)) for each in value)
        large = isinstance(value, (Tensor, dict, list, tuple)) and not is_short
        shown = f"a {type(value).__name__}" if large else repr(value)
        raise Wrong(f"{name} is {shown[:80]}; it must be {wanted}")


def _mapping(name: str, value: Any) -> dict[Any, Any]:
    _need(isinstance(value, dict), name, value, "a mapping")
    return value


def _whole(name: str, value: Any, low: int, high: int) -> int:
    fine = isinstance(value, int) and not isinstance(value, bool)
    _need(fine and low <= value <= high, name, value, f"a whole number from {low:,} to {high:,}")
    return value


def _within(name: str, value: int, high: int) -> int:
    _need(value <= high, name, value, f"at most {high:,} numbers")
    return value


def _is_number(value: Any, finite: bool = True) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and (not finite or math.isfinite(value))
