"""What the proxy recognises commands by: the digests of dsched's scripts, and the broker's lists."""

import hashlib

from dsched.cluster.standalone import stored
from dsched.state import scripts


def _digest(name: str) -> bytes:
    return hashlib.sha1(scripts.read(scripts.FOLDER, name).encode()).hexdigest().encode()


POP = _digest("queue_pop")
RESERVE = _digest("reserve")
CONFIRM = _digest("reservation_confirm")
RELEASE = _digest("reservation_release")
ALLOW = _digest("reservation_allow")
ADOPT = _digest("reservation_adopt")
BIND_BEGIN = _digest("bind_begin")
RENEW = _digest("lease_renew")
ACKNOWLEDGE = _digest("results_ack")
BIND = hashlib.sha1(scripts.read(stored.SCRIPTS, "pods_bind").encode()).hexdigest().encode()
"""Of a standalone cluster."""
EVICT = hashlib.sha1(scripts.read(stored.SCRIPTS, "pods_delete").encode()).hexdigest().encode()
STATUS = hashlib.sha1(scripts.read(stored.SCRIPTS, "pods_report").encode()).hexdigest().encode()
"""Of a standalone cluster, as BIND."""
HAND_OUT = b"celery:binders"
"""The list that bind messages are pushed to."""
REPORT = b"bind:results"
NOTHING_POPPED = b"*3\r\n"
"""How the answer of `POP` begins when no pod was there."""
