"""A score that asks an outside service: nodes of the zone with the lowest price of power come first."""

import json
import logging
import threading
import urllib.request
from collections.abc import Mapping
from http.client import HTTPException
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsched.framework.interface import Normalization, Scope

log = logging.getLogger(__name__)

LARGEST_ANSWER = 65_536
"""Bytes. What is longer is no list of prices."""
DEAREST = 1_000_000
"""What is beyond, or no whole number, is no price."""
GIVEN_UP_S = 10.0
"""A connection on which nothing comes for so long is closed; nobody waits for it by then."""


class Prices:
    """Prices by zone, as the service said last.

    One request at a time, in a thread of its own. `refresh` waits for it until the deadline; an answer that comes later
    counts from the next look on. So a service that hangs costs one deadline in each interval, not one a pod.
    """

    def __init__(self, url: str, interval_s: float, deadline_s: float, clock: Any) -> None:
        self.known: Mapping[str, int] = {}
        self._url, self._interval_s, self._deadline_s, self._clock = url, interval_s, deadline_s, clock
        self._due = float("-inf")
        self._thread: threading.Thread | None = None

    def refresh(self) -> None:
        """Ask, if the last time is an interval ago; returns within the deadline whatever the service does."""
        if self._clock.monotonic() < self._due or (self._thread is not None and self._thread.is_alive()):
            return
        self._due = self._clock.monotonic() + self._interval_s
        self._thread = threading.Thread(target=self._ask, name="prices", daemon=True)
        self._thread.start()
        self._thread.join(self._deadline_s)

    def _ask(self) -> None:
        """What goes wrong is logged, and the last prices stay: a score is a wish, no reason to leave a pod waiting."""
        try:
            with urllib.request.urlopen(self._url, timeout=GIVEN_UP_S) as answer:
                found = json.loads(answer.read(LARGEST_ANSWER))
            self.known = {zone: price for zone, price in found.items() if type(price) is int and 0 <= price <= DEAREST}
        except (OSError, HTTPException, ValueError, AttributeError) as error:
            log.warning("prices not read: %s", error)


class PriceScore:
    """Prefers nodes in cheap zones; nodes of a zone without a price count as the dearest."""

    name = "PriceScore"
    # The answer depends on things outside: every pod is judged from scratch. CLUSTER, the widest scope that is kept,
    # would be wrong: while nothing changes in the cluster, nobody would look whether the prices have.
    score_scope = Scope.ANYTHING
    normalization = Normalization.MAX_REVERSED  # the dearest gets 0, a zone that costs nothing 100

    def __init__(self, args: Mapping[str, Any] | None, handle: Any) -> None:
        args = args or {}
        self._label = args.get("zoneLabel", "topology.kubernetes.io/zone")
        interval_s, deadline_s = args.get("intervalSeconds", 5), args.get("deadlineSeconds", 0.2)
        self._prices = Prices(args["url"], interval_s, deadline_s, handle.clock)

    def pre_score(self, state: Any, pod: Any, snapshot: Any, feasible: NDArray[np.bool_]) -> None:
        """Before `score_table`, once a pod: all but once an interval it compares two times."""
        self._prices.refresh()

    def score_table(self, state: Any, pod: Any, table: Any, rows: Any) -> NDArray[np.int64]:
        """The price of each row's zone; the normalization turns it round."""
        prices = self._prices.known
        dearest = max(prices.values(), default=0)
        zones = table.label(self._label)
        by_zone = np.array([prices.get(zone, dearest) for zone in zones.values], dtype=np.int64)
        found: NDArray[np.int64] = by_zone[zones.ids[rows]]
        return found

    def events_to_register(self) -> list[Any]:
        """It rejects nobody, so nothing that happens can help."""
        return []
