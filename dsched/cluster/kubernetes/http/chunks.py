"""``Transfer-Encoding: chunked``, taken off as it comes."""


class ChunkDecoder:
    """Takes the frames of ``Transfer-Encoding: chunked`` off what comes, wherever it is cut."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._left = 0
        self.done = False

    def feed(self, data: bytes) -> bytes:
        """The payload in what has come so far and was not given out yet.

        Raises:
            ValueError: this is not chunked.
        """
        if self.done:
            return b""
        rest = self._rest
        rest += data
        found: list[bytes] = []
        at = 0
        while at < len(rest):
            if self._left > 2:
                taken = bytes(rest[at : at + self._left - 2])
                found.append(taken)
                at += len(taken)
                self._left -= len(taken)
            elif self._left:
                skipped = min(self._left, len(rest) - at)
                at += skipped
                self._left -= skipped
            else:
                end = rest.find(b"\n", at)
                if end < 0:
                    break
                size = int(rest[at:end].partition(b";")[0], 16)
                at = end + 1
                if size == 0:
                    self.done = True
                    break
                self._left = size + 2  # the line end that follows counts too
        del rest[:at]
        return b"".join(found)
