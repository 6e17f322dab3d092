#!/usr/bin/env bash
# websockets' threading client ends a connection that is only waiting, where the socket that it was given had a timeout to connect with.
#
# What one expects: `connect(url, sock=socket.create_connection(address, timeout))` limits how long connecting takes, as `open_timeout=`
#   does without `sock=`; once the handshake is done, an idle connection stays for hours, kept alive by pings.
# What happens: the timeout stays on the socket, whose reading thread takes it for a lost connection. As soon as the other side has sent
#   nothing for so many seconds, `recv` raises ConnectionClosedError, "no close frame received or sent", of a server that is fine. Of a
#   socket that websockets makes itself it takes the timeout away after connecting. Pings come every 20 s, so that timeouts above that go
#   unnoticed. The answer to it: `sock.settimeout(None)` before the socket is handed over.
# Version: websockets 16.1.1
# Source: https://pypi.org/project/websockets/16.1.1/, websockets/sync/client.py, connect: `sock.settimeout(None)` stands within
#   `if sock is None`
# Date: 2026-11-30
# Seen:
#     made by websockets, open_timeout=2         answered after 4 s of silence
#     given, made with a timeout of 2            ConnectionClosedError: no close frame received or sent
#     given, and the timeout taken away          answered after 4 s of silence

set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check websockets==16.1.1
cat > "$folder/idle.py" <<'PYTHON'
import socket
import threading
import time

from websockets.sync.client import connect
from websockets.sync.server import serve


def answer(connection):
    for message in connection:
        time.sleep(4)
        connection.send(message)


server = serve(answer, "127.0.0.1", 0)
threading.Thread(target=server.serve_forever, daemon=True).start()
host, port = server.socket.getsockname()


def asked(**words):
    with connect(f"ws://{host}:{port}", **words) as connection:
        try:
            connection.send("?")
            connection.recv()
            return "answered after 4 s of silence"
        except Exception as error:
            return f"{type(error).__name__}: {error}"


given = socket.create_connection((host, port), 2)
without = socket.create_connection((host, port), 2)
without.settimeout(None)
seen = [asked(open_timeout=2), asked(sock=given), asked(sock=without)]
for how, what in zip(("made by websockets, open_timeout=2", "given, made with a timeout of 2",
                      "given, and the timeout taken away"), seen):
    print(f"{how:<42} {what}")
answered = "answered after 4 s of silence"
raise SystemExit(seen != [answered, "ConnectionClosedError: no close frame received or sent", answered])
PYTHON
"$folder/venv/bin/python" "$folder/idle.py"
