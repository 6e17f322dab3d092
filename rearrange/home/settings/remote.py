"""How a remote policy is asked."""

from __future__ import annotations

from dataclasses import dataclass

from rearrange.home.settings.setting_fields import setting


class RemoteError(RuntimeError):
    """A policy server is not there, or its answer is of no use."""


HOST, PORT = "127.0.0.1", 8000  # as OpenPI's server has it
MOST_ACTIONS = 1000  # of a chunk


@dataclass(frozen=True)
class RemoteSettings:
    """Settings of `rearrange eval agent=remote`."""

    image_size: int = setting(
        128, "pixels on a side of the depth image that is sent; 0 = no image", at_least=0, at_most=1024)
    chunk: int | None = setting(
        None, "actions of an answer that are asked for, and carried out before the next question; null = all that are "
              "answered", above=0, at_most=MOST_ACTIONS)
    protocol: str = setting("openpi", "how the server is spoken to: as OpenPI's, or as that of a participant of the "
                                      "BEHAVIOR challenge of 2026", choices=("openpi", "behavior"))
    task_id: int = setting(0, "of protocol=behavior: the number that the server's policy knows the task by",
                           at_least=0, at_most=1_000_000)
    timeout_s: float = setting(
        10.0, "for how long an answer, or a connection that was lost, is waited for", above=0, at_most=3600)


@dataclass(frozen=True)
class Remote:
    """A server and how it is asked."""

    url: str
    settings: RemoteSettings = RemoteSettings()
