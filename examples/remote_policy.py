"""A policy server of one's own, and its evaluation by `rearrange eval`.

    python examples/remote_policy.py
"""

import threading

import numpy as np
from websockets.sync.server import serve

from eval.remote.wire import pack, unpack
from rearrange.command_line.cli import main


def talk(connection):
    """One episode: a chunk of actions for each observation."""
    connection.send(pack({"policy": "reaches ahead"}))
    for message in connection:
        observation = unpack(message)
        if observation.get("reset"):
            print(observation["prompt"], observation["observation/joint"].shape)
        chunk = np.zeros((10, 10), np.float32)  # 10 actions: arm (7), grip, base (2)
        chunk[:, 8] = 0.2  # ahead
        connection.send(pack({"actions": chunk}))


if __name__ == "__main__":
    with serve(talk, "127.0.0.1", 0, compression=None) as server:  # port 0: a free one
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = "ws://{}:{}".format(*server.socket.getsockname())
        main(["eval", "skill=pick", "agent=remote", f"url={url}", "remote.image_size=0", "episodes=4", "workers=1",
              "skill.max_steps=60", "video=0"])
        server.shutdown()
