"""Messages between a worker process and its parent: pickles through a pair of sockets.

`multiprocessing` has connections that do the same. But a process with many threads may fork while one of them closes such a connection: the
child then has an object for a number that belongs to another file already, and closing that in the child closes the other one. Here an
end forgets its number before it closes it, so that a child at worst keeps a number too many.
"""

from __future__ import annotations

import pickle
import socket
import struct
from multiprocessing.connection import wait
from typing import Any

HEADER = struct.Struct("<Q")  # the length of the pickle that follows


class End:
    """One end of a pair. `multiprocessing.connection.wait` takes it; a process that is being started may get it."""

    def __init__(self, pair_end: socket.socket) -> None:
        self.socket = pair_end
        self.socket.settimeout(None)  # the program may have set another default

    def __reduce__(self) -> tuple[Any, ...]:
        return End, (self.socket,)

    def fileno(self) -> int:
        return self.socket.fileno()

    def send(self, message: Any) -> None:
        """Raises OSError if the other end is closed."""
        body = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
        self.socket.sendall(HEADER.pack(len(body)) + body)

    def receive(self) -> Any:
        """The next message; waits for it. Raises EOFError or OSError if the other end is closed."""
        (length,) = HEADER.unpack(self._exactly(HEADER.size))
        return pickle.loads(self._exactly(length))

    def _exactly(self, count: int) -> bytearray:
        data = bytearray(count)
        rest = memoryview(data)
        while rest:
            came = self.socket.recv_into(rest)
            if not came:
                raise EOFError
            rest = rest[came:]
        return data

    def ready(self) -> bool:
        """Whether there is something to receive, be it the end."""
        return bool(wait([self.socket], 0))

    def close(self) -> None:
        number = self.socket.detach()
        if number >= 0:
            socket.close(number)


def pair() -> tuple[End, End]:
    """Two ends: what goes into one comes out of the other."""
    one, other = socket.socketpair()
    return End(one), End(other)
