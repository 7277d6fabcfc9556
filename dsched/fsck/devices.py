"""I12: no device is given twice, and none is held by nobody.

Two ledgers say who has a device: the claims in the cluster, and what reserved pods hold in Redis until their claims say
so. A device that is not shared stands once in both of them together; what is held has a reservation; the sums are those
of what is held. In standalone mode, where the leader sees to claims, those of pods that are gone are given back.
"""

from collections.abc import Iterator

from dsched.fsck.findings import Finding, Invariant, Kind, of_pod
from dsched.fsck.view import View
from dsched.state import devices

_I12 = Invariant.DEVICES

IN_PARTS = ("/capacity/", "/counter/")
"""Stand in the names of what is given in parts; everything else has one owner."""


def check(view: View) -> Iterator[Finding]:
    """What breaks it."""
    yield from _twice(view)
    yield from _leaked(view)
    yield from _sums(view)
    if view.devices.seen_to and view.leads and view.at_rest:
        yield from _of_the_dead(view)


def _twice(view: View) -> Iterator[Finding]:
    """Devices with more than one owner. A pod and the claim that it holds a device for are one."""
    owners: dict[str, dict[str, str]] = {}
    own: dict[str, list[str]] = {}
    for claim in view.devices.claims.values():
        own.setdefault(claim.owner, []).append(claim.uid)
        for device in claim.devices:
            owners.setdefault(device, {})[claim.uid] = f"resourceclaim {claim.key}"
    for uid, holds in view.devices.ledger.held.items():
        for holder, amounts in holds.items():
            for device in amounts:
                having = owners.setdefault(device, {})
                if not having.keys() & {holder, *own.get(holder, ())}:
                    having[holder] = f"reserved pod {uid} for {holder}"
    for device, found in owners.items():
        if len(found) > 1 and not any(mark in device for mark in IN_PARTS):
            who = ", ".join(found[each] for each in sorted(found))
            rule = f"twice {' '.join(sorted(found))}"
            yield Finding(_I12, Kind.DEVICE, device, rule, f"has {len(found)} owners: {who}")


def _leaked(view: View) -> Iterator[Finding]:
    for uid, holds in view.devices.ledger.held.items():
        if uid not in view.reservations and uid not in view.unreadable:
            what = ", ".join(sorted(name for amounts in holds.values() for name in amounts))
            yield Finding(_I12, Kind.UID, uid, "held", f"holds {what}, and there is no reservation for it")
    for uid, text in view.devices.ledger.unreadable.items():
        yield Finding(_I12, Kind.UID, uid, "text", f"what it holds of devices is {text!r}, which nobody can read")


def _sums(view: View) -> Iterator[Finding]:
    true = devices.sums(view.devices.ledger.held.values())
    for name in sorted(true.keys() | view.devices.ledger.used.keys()):
        used, held = view.devices.ledger.used.get(name, "0"), str(true.get(name, 0))
        if used != held and name not in view.devices.ledger.moving:
            what = f"devices:used says {used}, and reserved pods hold {held} of it"
            yield Finding(_I12, Kind.DEVICE, name, f"used {used} {held}", what)


def _of_the_dead(view: View) -> Iterator[Finding]:
    for claim in view.devices.claims.values():
        for key, uid in claim.pods if claim.devices or claim.shares else ():
            pod = view.owner(uid, key)
            if pod is None or pod.finished:
                what = f"resourceclaim {claim.key} has devices for it (uid {uid}), and it is gone"
                yield of_pod(_I12, key, f"dead {uid}", what, view.version)
