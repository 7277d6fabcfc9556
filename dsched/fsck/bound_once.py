"""I2: a bound pod is bound once: it is in no queue, nothing is reserved for it elsewhere, and its events say
``Scheduled`` once. One with a deferred resize is in a queue, where resizes preempt (`one_place`).

A pod whose manifest named the node was never scheduled and has no such event. Events are kept for an hour and only the
newest 20 of a pod: a missing one is a breach only while it must still be there.
"""

from collections.abc import Iterator

from dsched.fsck import one_place
from dsched.fsck.findings import Finding, Invariant, of_pod
from dsched.fsck.view import SeenPod, Told, View
from dsched.state.standings import Standing

_I2 = Invariant.BOUND_ONCE

EVENTS_KEPT = 20
EVENTS_KEPT_MS = 3_600_000
"""As in ``dsched/cluster/standalone/scripts/includes/pod_events.lua``."""
SKEW_MS = 60_000


def check(view: View) -> Iterator[Finding]:
    """What breaks it."""
    for pod in view.objects.pods.values():
        if not pod.node:
            continue
        yield from _elsewhere(view, pod)
        if pod.scheduled and (told := view.objects.told.get(pod.key)) is not None:
            yield from _told(view, pod, told)


def _elsewhere(view: View, pod: SeenPod) -> Iterator[Finding]:
    """It waits in no queue and is reserved on no other node."""
    reservation = view.reservations.get(pod.uid)
    if reservation is not None:
        if reservation.node != pod.node:
            what = f"is bound to {pod.node} and reserved on {reservation.node}"
            yield of_pod(_I2, pod.key, f"reserved {pod.uid}", what, view.version)
        return
    if view.ours(pod):
        return
    standing = view.standings.get(pod.key, Standing())
    found = one_place.places(standing)
    if standing.record.get("uid", pod.uid) == pod.uid and (standing.record or found):
        where = f"stands in {' and in '.join(found)}" if found else "has a record"
        heard = view.version if standing.record else 0
        yield of_pod(_I2, pod.key, f"queued {pod.uid}", f"is bound to {pod.node} and {where}", heard)


def _told(view: View, pod: SeenPod, told: Told) -> Iterator[Finding]:
    if told.scheduled > 1:
        what = f"is bound to {pod.node}, and its events say {told.scheduled} times that it was scheduled"
        yield of_pod(_I2, pod.key, f"events {pod.uid}", what)
    elif told.scheduled == 0 and told.events < EVENTS_KEPT and _recent(view, pod):
        what = f"is bound to {pod.node}, and no event says that it was scheduled"
        yield of_pod(_I2, pod.key, f"events {pod.uid}", what)


def _recent(view: View, pod: SeenPod) -> bool:
    """Whether the event of its binding must still be kept; clocks may differ a little."""
    return view.now_ms - pod.bound_ms < EVENTS_KEPT_MS - SKEW_MS
