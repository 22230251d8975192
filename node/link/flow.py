"""How many bytes of a channel may be on their way: each channel of each conversation is counted by itself.

Who writes may send `WINDOW` bytes more than were read at the other end. So a
reader who is slow stops that one channel, holds at most a window of memory on
its side, and nobody else waits for him.
"""

from __future__ import annotations

from node.link.frames import MAX_DATA, BadFrame

WINDOW = 512 * 1024
CREDIT_STEP = WINDOW // 4  # the bytes that one CREDIT frame grants at least


class Sending:
    """What the writer of a channel may send."""

    __slots__ = ("credit",)

    def __init__(self) -> None:
        self.credit = WINDOW

    def take(self, wanted: int) -> int:
        """Return how many of the wanted bytes may go now, and count them."""
        granted = min(wanted, self.credit)
        self.credit -= granted
        return granted

    def grant(self, count: int) -> None:
        """Let more go; BadFrame when more was granted than was sent."""
        self.credit += count
        if self.credit > WINDOW:
            raise BadFrame("More bytes were said to be read than were sent.")


class Receiving:
    """What came of a channel and was not read yet: its bytes together, as many small parts would take far more memory."""

    __slots__ = ("_data", "_read", "unread")

    def __init__(self) -> None:
        self.unread = 0  # bytes that came and whose reader is not done with them
        self._data = bytearray()
        self._read = 0  # bytes that were read and not granted again yet

    def add(self, data: bytes) -> None:
        """Buffer what came; BadFrame when it is nothing, or more than was granted."""
        if not data:
            raise BadFrame("A frame of data has none.")
        self.unread += len(data)
        if self.unread + self._read > WINDOW:
            raise BadFrame("More bytes were sent than may be on their way.")
        self._data += data

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits for the reader."""
        return not self._data

    def next(self) -> bytes:
        """Return the oldest bytes that were not read, as many as a frame has at most."""
        data = bytes(self._data[:MAX_DATA])
        del self._data[:MAX_DATA]
        return data

    def done(self, count: int) -> int:
        """Note that the reader is done with so many bytes; return how many to grant the writer now, 0 for later."""
        self.unread -= count
        self._read += count
        if self._read < CREDIT_STEP:
            return 0
        credit, self._read = self._read, 0
        return credit
