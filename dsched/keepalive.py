"""How soon a connection is given up whose other end is gone without a word: its machine lost power,
a firewall forgot it.

The kernels at both ends see to it, so nothing hangs on how busy the processes are: a Redis that is stopped or runs a
long script still confirms what comes in, and no connection to it ends because of this.
"""

import socket

GONE_AFTER_MS = 5_000
"""Of what was sent, nothing was confirmed for so long: five or six attempts of TCP, each lost."""
_WANTED = (
    ("TCP_KEEPIDLE", 3),
    ("TCP_KEEPINTVL", 1),
    ("TCP_KEEPCNT", 3),
    ("TCP_USER_TIMEOUT", GONE_AFTER_MS),
)
OPTIONS: dict[int, int] = {getattr(socket, name): value for name, value in _WANTED if hasattr(socket, name)}
"""Of ``IPPROTO_TCP``; those that this platform has."""
