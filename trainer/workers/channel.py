"""Messages between the learner and an environment worker over one Unix socket, and memory both of them see.

Observations never travel here: they lie in shared memory. The socket carries environment numbers, and, rarely, a
pickled message. When either side dies the kernel closes its end and the other side reads end-of-file at once.
"""

from __future__ import annotations

import array
import mmap
import os
import socket
import struct
import tempfile

import numpy as np

HEADER = struct.Struct("<cI")  # tag, payload bytes
STEP = b"s"  # payload: the worker's own numbers of environments, uint16; one way "step these", back "these are done"
MESSAGE = b"m"  # payload: pickle


class Closed(ConnectionError):
    """The other side is gone."""


class Full(ConnectionError):
    """The other side lives, but does not read what it is sent."""


class Channel:
    """Tagged messages over a stream socket."""

    def __init__(self, sock: socket.socket):
        self.sock = sock
        self._buffer = bytearray()

    def fileno(self) -> int:
        return self.sock.fileno()

    def limit_sends(self, seconds: float) -> None:
        """From now on `send` raises Full when the other side leaves no room for so long."""
        limit = struct.pack("@ll", int(seconds), int(seconds % 1 * 1e6))
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)

    def send(self, tag: bytes, payload: bytes) -> None:
        try:
            self.sock.sendall(HEADER.pack(tag, len(payload)) + payload)
        except BlockingIOError as error:
            raise Full("not read in time") from error
        except OSError as error:
            raise Closed(str(error)) from error

    def receive(self) -> list[tuple[bytes, bytes]]:
        """Wait for data, return every complete message. Raises Closed at end-of-file."""
        try:
            data = self.sock.recv(1 << 16)
        except OSError as error:
            raise Closed(str(error)) from error
        if not data:
            raise Closed("end of file")
        self._buffer += data
        messages = []
        while len(self._buffer) >= HEADER.size:
            tag, length = HEADER.unpack_from(self._buffer)
            end = HEADER.size + length
            if len(self._buffer) < end:
                break
            messages.append((tag, bytes(self._buffer[HEADER.size : end])))
            del self._buffer[:end]
        return messages

    def send_with_fd(self, payload: bytes, fd: int) -> None:
        """A MESSAGE with an open file attached."""
        rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))
        self.sock.sendmsg([HEADER.pack(MESSAGE, len(payload)) + payload], [rights])

    def receive_with_fd(self) -> tuple[bytes, int]:
        """The counterpart of `send_with_fd`: payload and file descriptor."""
        data, ancillary, _, _ = self.sock.recvmsg(1 << 16, socket.CMSG_LEN(array.array("i").itemsize))
        if not ancillary:
            raise Closed("no file arrived")
        return data[HEADER.size :], int(array.array("i", ancillary[0][2])[0])


Fields = dict[str, tuple[tuple[int, ...], str]]  # name -> shape, dtype


class SharedArrays:
    """Named numpy arrays in one block of memory shared between processes.

    The block is a file that has no name from the start, so nothing is left behind whoever dies, however.
    """

    def __init__(self, fields: Fields, fd: int | None = None):
        offsets, size = {}, 0
        for name, (shape, dtype) in fields.items():
            offsets[name] = size
            size += -(-int(np.prod(shape)) * np.dtype(dtype).itemsize // 64) * 64  # rounded up to a cache line
        self.fields = fields
        self.fd = _anonymous_file(size) if fd is None else fd
        self._map = mmap.mmap(self.fd, size)
        self.arrays = {
            name: np.frombuffer(self._map, dtype, int(np.prod(shape)), offsets[name]).reshape(shape)
            for name, (shape, dtype) in fields.items()
        }

    def __getitem__(self, name: str) -> np.ndarray:
        return self.arrays[name]

    def close(self) -> None:
        self.arrays = {}
        os.close(self.fd)


def _anonymous_file(size: int) -> int:
    directory = "/dev/shm" if os.path.isdir("/dev/shm") and os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryFile(dir=directory) as file:
        try:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, max(size, 1))  # a full /dev/shm fails here, not with SIGBUS later
            else:
                os.ftruncate(file.fileno(), max(size, 1))
        except OSError as error:
            raise OSError(f"{size / 2**20:.0f} MiB of shared memory are not to be had in "
                          f"{directory or 'the temporary folder'} ({error.strerror}): lower collect.num_envs or the "
                          "image size, or enlarge /dev/shm.") from error
        return os.dup(file.fileno())
