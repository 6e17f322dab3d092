"""How a remote policy is asked."""

from __future__ import annotations

from dataclasses import dataclass

from rearrange.home.settings.setting_fields import setting


class RemoteError(RuntimeError):
    """A policy server is not there, or its answer is of no use."""


HOST, PORT = "127.0.0.1", 8000  # as OpenPI's server has it


@dataclass(frozen=True)
class RemoteSettings:
    """Settings of `rearrange eval agent=remote`."""

    image_size: int = setting(
        128, "pixels on a side of the depth image that is sent; 0 = no image", at_least=0, at_most=1024)
    chunk: int | None = setting(
        None, "actions of an answer that are carried out before the next is asked for; null = all of them", above=0,
        at_most=1000)
    timeout_s: float = setting(
        10.0, "for how long an answer, or a connection that was lost, is waited for", above=0, at_most=3600)


@dataclass(frozen=True)
class Remote:
    """A server and how it is asked."""

    url: str
    settings: RemoteSettings = RemoteSettings()
