"""Tells of nodes whose pods request more of something than 64 bits hold: in Redis for ``dsched status``, and
in the log.
"""

from dsched.framework.table import NodeTable
from dsched.log import logger
from dsched.state import beyond
from dsched.state.beyond import BeyondSum
from dsched.state.client import Store

_log = logger(__name__)

EVERY_S = 1.0


class Overflows:
    """What one term has told. Not thread-safe: it belongs to the loop."""

    def __init__(self, store: Store, table: NodeTable) -> None:
        self._store = store
        self._table = table
        self._told: list[BeyondSum] | None = None

    def tell(self) -> None:
        """Tell of what has changed; at first, of what there is."""
        now = [BeyondSum(node, resource, str(total)) for node, resource, total in self._table.beyond()]
        if now == self._told:
            return
        known = {(each.node, each.resource) for each in self._told or ()}
        for each in now:
            if (each.node, each.resource) not in known:
                _log.warning(
                    "pods request more of a node than 64 bits hold, it counts as full",
                    extra={
                        "action": "overflow",
                        "node": each.node,
                        "resource": each.resource,
                        "requested": each.requested,
                    },
                )
        beyond.write(self._store, now)
        self._told = now
