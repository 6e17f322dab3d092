"""`rearrange serve`: which policy, and the words that say where it listens."""

from __future__ import annotations

from contextlib import suppress

import gymnasium

from eval.agents import PolicyAgent
from eval.policy_choice import asked_for, table
from eval.protocol import protocol, words
from eval.remote.connecting import require_packages
from eval.trained_policy import of_what, training_of
from rearrange.command_line.composition.options import ServeOptions
from rearrange.home.errors import UserError
from rearrange.home.robot.robot import RANGE_M


def run(options: ServeOptions) -> None:
    """Serve until Ctrl-C. UserError for a policy or an address that cannot be had."""
    require_packages()
    from eval.remote.server import make_server
    from trainer.checkpoint import CheckpointError
    from trainer.spaces import space_from_plain

    choice, content = asked_for("serve", options)
    meta = training_of(content)
    try:
        first = PolicyAgent(content, 1, options.deterministic, options.network)
    except CheckpointError as error:
        raise UserError(str(error)) from error
    shapes = {name: tuple(shape) for name, shape in first.policy.seen.items()}
    about = {"policy": of_what(meta), "observations": {name: list(shape) for name, shape in shapes.items()},
             "action_numbers": first.policy.action_size}
    seen, actions = space_from_plain(content["observation_space"]), space_from_plain(content["action_space"])
    spaces = seen.spaces if isinstance(seen, gymnasium.spaces.Dict) else {"obs": seen}
    try:
        server = make_server(lambda: PolicyAgent(content, 1, options.deterministic, options.network, actions),
                             {name: spaces[name] for name in shapes}, about, options.host, options.port,
                             options.chunk, float(meta.get("env", {}).get("far_m", RANGE_M)))
    except OSError as error:
        raise UserError(f"host={options.host} port={options.port} cannot be listened at: "
                        f"{error.strerror}.") from error
    for line in table([choice]):
        print(line)
    if task := meta.get("skill") or meta.get("nav"):
        size, env = int(meta.get("image_size") or 0), meta.get("env", {})
        with suppress(UserError):  # of a skill that is not here, or that only its user imports
            typed = [*words(task, env), *([f"remote.image_size={size}"] if size else [])]
            print(f"trained with: {protocol(task, env)}" + (
                f"; whoever evaluates it with agent=remote types {' '.join(typed)}" if typed else ""))
    print("observations: " + ", ".join(f"{name} {shape}" for name, shape in shapes.items()))
    host, port = server.socket.getsockname()[:2]
    print(f"serves {of_what(meta)} at ws://{host}:{port}; Ctrl-C ends it", flush=True)
    with server:
        server.serve_forever()
