"""Whether a policy server is there, before anything is written."""

from __future__ import annotations

from importlib.util import find_spec

from rearrange.home.errors import UserError
from rearrange.home.settings.remote import Remote, RemoteError, RemoteSettings


def require_packages() -> None:
    """UserError where what talks to servers is not installed."""
    if find_spec("websockets") is None or find_spec("msgpack") is None:
        raise UserError("policy servers need two more packages: pip install 'rearrange[remote]'.")


def remote_at(url: str, settings: RemoteSettings) -> Remote:
    """The server at `url`, which has answered. UserError if it does not."""
    require_packages()
    from eval.remote.agent import connect_to

    remote = Remote(url, settings)
    try:
        connection, _ = connect_to(remote)
        connection.close()
    except RemoteError as error:
        raise UserError(str(error)) from error
    return remote
