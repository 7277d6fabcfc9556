"""Hears what a cluster tells, as the leader does."""

from dsched.cluster.interface import Change, Cluster, Event
from tests.integration.cluster.waiting import wait_until

Told = tuple[Change, str, str]


class Watcher:
    """Listed once; `wait_for` hears on."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.listing = cluster.list()
        self.version = self.listing.version
        self.events: list[Event] = []

    def hear(self) -> list[Event]:
        """One call of the watch."""
        events, self.version = self._cluster.watch(self.version, 0.05)
        self.events += events
        return list(events)

    @property
    def told(self) -> list[Told]:
        """What was told so far: change, kind, key."""
        return [(event.change, event.kind, event.key) for event in self.events]

    def wait_for(self, change: Change, kind: str, key: str) -> Event:
        """The first such event."""

        def found() -> Event | None:
            self.hear()
            return next((e for e in self.events if (e.change, e.kind, e.key) == (change, kind, key)), None)

        event: Event = wait_until(f"{change} {kind} {key}", found)
        return event
