"""Somebody else binds pods of ours: another scheduler that answers to the same name, or a hand.

The API server lets one bind through, so no pod is bound twice. But two schedulers that do not know of each other give
the same room away, which only a kubelet can refuse; so it is told, counted and left to the user. A bind that an earlier
leader's binder makes after its reservation has ended looks the same and counts as well.
"""

from dsched.clock import Clock
from dsched.log import logger
from dsched.metrics import FOREIGN_BINDS
from dsched.model.meta import NodeName, PodKey, PodUid

_log = logger(__name__)

TOLD_EVERY_S = 60.0


class ForeignBinds:
    """Counts such binds and tells of them, at most once a minute."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._binds = 0
        self._told_at = -TOLD_EVERY_S

    def bound(self, key: PodKey, uid: PodUid, node: NodeName) -> None:
        """A pod that waited here was bound, and not by us."""
        FOREIGN_BINDS.inc()
        self._binds += 1
        now = self._clock.monotonic()
        if now - self._told_at < TOLD_EVERY_S:
            return
        self._told_at = now
        _log.warning(
            "somebody else binds pods of ours; does another scheduler answer to the same schedulerName?",
            extra={"action": "foreign_bind", "pod": key, "uid": uid, "node": node, "binds": self._binds},
        )
