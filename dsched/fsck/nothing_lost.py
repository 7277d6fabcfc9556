"""I4: attempts and times are kept, and no pod is left in flight by a leader that is gone.

A pod has been tried when it is in flight, reserved, waiting or unschedulable, or when its record has a time of an
attempt; what a pod group counts begins anew once it was placed. While nobody leads, pods in flight stand where the last
leader left them; the next one puts them back.
"""

from collections.abc import Iterator, Mapping

from dsched.fsck.findings import Finding, Invariant, of_pod
from dsched.fsck.view import View
from dsched.model.meta import PodKey, PodUid
from dsched.scheduler.ports import QueueName, group_of

_I4 = Invariant.NOTHING_LOST
_TRIED = (QueueName.INFLIGHT, QueueName.RESERVED, QueueName.WAITING, QueueName.UNSCHEDULABLE)


def check(view: View) -> Iterator[Finding]:
    """What breaks it."""
    for key, standing in view.standings.items():
        if standing.record:
            yield from _record(view, key, standing.record)
        if standing.inflight:
            yield from _inflight(view, key, standing.inflight)


def _record(view: View, key: PodKey, record: Mapping[str, str]) -> Iterator[Finding]:
    attempts, first_ms, last_ms = (record.get(name) for name in ("attempts", "first_ms", "last_ms"))
    for name, text in (("attempts", attempts), ("first_ms", first_ms), ("last_ms", last_ms)):
        if text is not None and not text.isdigit():
            yield of_pod(_I4, key, f"number {name}", f"{name} of its record is {text!r}, not a number")
            return
    count = int(attempts or 0)
    reservation = view.reservations.get(PodUid(record.get("uid", "")))
    if count < 1 and not group_of(key) and (record.get("queue") in _TRIED or last_ms is not None):
        yield of_pod(_I4, key, "attempts", f"has been tried, and its record counts {count} attempts")
    elif reservation is not None and reservation.attempt != count:
        what = f"was reserved at attempt {reservation.attempt}, its record counts {count}"
        yield of_pod(_I4, key, "attempts", what)
    if count > 0 and (first_ms is None or last_ms is None):
        lacking = "first_ms" if first_ms is None else "last_ms"
        yield of_pod(_I4, key, "times", f"its record counts {count} attempts and has no {lacking}")
    elif first_ms is not None and last_ms is not None and int(first_ms) > int(last_ms):
        what = f"its first attempt ({first_ms} ms) is later than its latest ({last_ms} ms)"
        yield of_pod(_I4, key, "times", what)


def _inflight(view: View, key: PodKey, entry: str) -> Iterator[Finding]:
    epoch, _, batch = entry.partition(" ")
    if not epoch.isdigit() or not batch:
        yield of_pod(_I4, key, "entry", f"is in flight as {entry!r}, which is not 'EPOCH BATCH'")
    elif view.leads and int(epoch) < view.epoch:
        what = f"is in flight under epoch {epoch}, and epoch {view.epoch} leads"
        yield of_pod(_I4, key, f"epoch {view.epoch}", what)
