"""One inspection: look, suspect, look again, report. How it works is told in the package's docstring."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dsched.clock import Clock
from dsched.cluster.standalone import keys as cluster_keys
from dsched.fsck import (
    bound_once,
    capacity,
    devices,
    fencing,
    nothing_lost,
    one_place,
    pod_groups,
    queues,
    reading,
    released,
)
from dsched.fsck.findings import Finding, Invariant, Kind
from dsched.fsck.objects import Objects
from dsched.fsck.profiles import Profiles
from dsched.fsck.reading import Reader
from dsched.fsck.stored_objects import StoredObjects
from dsched.fsck.view import Seen, View
from dsched.state import misfits
from dsched.state.client import Store, WrongType, reachable
from dsched.state.standings import Moment

PAUSE_S = 0.5
"""Between the two looks."""
OLDEST_RESERVATION_S = 60.0
"""How old a reservation may be while there is nothing to decide."""
CLEARS = "a leader clears it and makes it anew, nothing else can be looked at before"
KEEPS = "delete it (DEL) and apply its objects anew, nothing else can be looked at before"


@dataclass(frozen=True, slots=True)
class Report:
    """What an inspection found.

    Attributes:
        breaches: of invariants, in their order.
        notes: what the scheduler is not to blame for, but people should know.
        open: suspicions that the leader, as far as it was, need not have settled yet.
        view: what was seen at first sight.
    """

    breaches: Sequence[Finding]
    notes: Sequence[Finding]
    open: Sequence[Finding]
    view: View


def inspect(
    store: Store,
    clock: Clock,
    profiles: Profiles | None = None,
    pause_s: float = PAUSE_S,
    oldest_reservation_s: float = OLDEST_RESERVATION_S,
    objects: Objects | None = None,
) -> Report:
    """Inspect a system; nothing is written.

    Args:
        profiles: of its configuration, where that is known.
        objects: where its cluster's objects are; None for those that Redis keeps.

    Raises:
        RedisUnavailable: Redis does not answer.
        ClusterUnavailable: nor does the API server that has the objects.
    """
    try:
        return _inspected(store, clock, profiles or Profiles(), pause_s, oldest_reservation_s, objects)
    except WrongType:
        with reachable(store):
            found = misfits.find_all(store, cluster_keys.ALL)
        if not found:  # cleared meanwhile
            return _inspected(store, clock, profiles or Profiles(), pause_s, oldest_reservation_s, objects)
        return Report(_misfits(found), (), (), View(Moment("", 0, 0, -1, None, 0, 0), 0, Seen(0), clock.now_ms()))


def _misfits(found: Mapping[str, str]) -> list[Finding]:
    """Nothing else can be said before they are gone: Redis refuses to read such a key."""
    told = [
        (name, f"{why}; " + (KEEPS if name.startswith("cluster:") else CLEARS)) for name, why in sorted(found.items())
    ]
    return [Finding(Invariant.ONE_PLACE, Kind.SYSTEM, name, "type", message) for name, message in told]


def _inspected(
    store: Store,
    clock: Clock,
    known: Profiles,
    pause_s: float,
    oldest_reservation_s: float,
    objects: Objects | None,
) -> Report:
    reader = Reader(store, clock, known, objects or StoredObjects(store, clock))
    oldest_ms = round(oldest_reservation_s * 1000)
    first = reader.everything()
    suspected = list(check(first, known, oldest_ms))
    if not suspected:
        return Report((), (), (), first)
    clock.sleep(pause_s)
    second = reader.again(first, reading.suspects(first, suspected))
    again = {finding.identity: finding for finding in check(second, known, oldest_ms)}
    standing = [(then, again[then.identity]) for then in suspected if then.identity in again]
    settled = [now for then, now in standing if then.heard <= second.moment.intake]
    return Report(
        breaches=_ordered(finding for finding in settled if finding.breach),
        notes=_ordered(finding for finding in settled if not finding.breach),
        open=_ordered(now for then, now in standing if then.heard > second.moment.intake),
        view=first,
    )


def check(view: View, profiles: Profiles, oldest_ms: int) -> Iterator[Finding]:
    """All checks over what was read, without I/O.

    Args:
        oldest_ms: how old a reservation may be at rest.
    """
    yield from _unreadable(view)
    yield from one_place.check(view)
    yield from pod_groups.check(view)
    if view.has_cluster:
        yield from bound_once.check(view)
        yield from capacity.check(view, profiles)
        yield from capacity.check_usage(view)
        yield from capacity.check_sums(view)
    yield from nothing_lost.check(view)
    yield from fencing.check(view)
    yield from released.check(view, oldest_ms)
    yield from devices.check(view)
    yield from queues.check(view)


def _ordered(findings: Iterator[Finding]) -> list[Finding]:
    return sorted(findings, key=lambda finding: (finding.invariant, finding.subject, finding.message))


def _unreadable(view: View) -> Iterator[Finding]:
    """What there is of them; nothing that the scheduler is to blame for."""
    for (kind, name), why in view.objects.broken.items():
        message = f"cannot be read and is left out, delete it or apply it anew: {why}"
        yield Finding(Invariant.ONE_PLACE, kind, name, "unreadable", message, breach=False)
