"""I5: nothing carries an epoch that was never given, and who leads does so under the present one."""

from collections.abc import Iterator

from dsched.fsck.findings import Finding, Invariant, Kind, of_pod
from dsched.fsck.view import View

_I5 = Invariant.FENCING


def check(view: View) -> Iterator[Finding]:
    """What breaks it."""
    moment = view.moment
    if view.leads and moment.lease_epoch != moment.epoch:
        what = f"{moment.leader} leads under epoch {moment.lease_epoch}, the present one is {moment.epoch}"
        yield Finding(_I5, Kind.SYSTEM, "leader", f"lease {moment.lease_epoch} {moment.epoch}", what)
    for key, standing in view.standings.items():
        epoch = standing.inflight.partition(" ")[0]
        if epoch.isdigit() and int(epoch) > view.epoch:
            what = f"is in flight under epoch {epoch}, the present one is {view.epoch}"
            yield of_pod(_I5, key, f"inflight {epoch}", what)
    for reservation in view.reservations.values():
        if reservation.epoch > view.epoch:
            what = f"is reserved under epoch {reservation.epoch}, the present one is {view.epoch}"
            yield of_pod(_I5, reservation.key, f"reserved {reservation.epoch}", what)
