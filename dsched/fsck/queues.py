"""I14: what reservations are checked against for the limits of queues, ``quota:NAME``, says what the objects say.

Judged as the usage of nodes is: a finding names the version of what is kept, which every charge moves. A reservation
whose pod is gone may be charged to any queue, so then nothing is said. That a queue uses more than its limit is a note:
limits may be lowered, and others bind pods, too. Pods whose queue Kueue's label may name are not looked at, for whether
it does is a setting.
"""

from collections import Counter
from collections.abc import Iterator, Mapping

from dsched.fsck.findings import Finding, Invariant, Kind
from dsched.fsck.view import SeenQueue, View, charged, shown

_I14 = Invariant.LIMITS
_USED, _ALLOCATABLE = "used.", "allocatable."


def check(view: View) -> Iterator[Finding]:
    """What breaks it; nothing where nothing is kept of queues, for then no profile divides the cluster by them."""
    if not view.quota or any(view.owner(each.uid, each.key) is None for each in view.reservations.values()):
        return
    counted = _counted(view)
    for name, fields in view.quota.items():
        queue = view.queues.get(name)
        if queue is None:
            what = f"its usage is kept (quota:{name}), and there is no such queue"
            yield Finding(_I14, Kind.QUEUE, name, "no queue", what, view.version)
            continue
        yield from _limits(view, queue, fields)
        if counted is not None:
            yield from _used(view, queue, fields, counted[name])


def _limits(view: View, queue: SeenQueue, fields: Mapping[str, str]) -> Iterator[Finding]:
    named = [field for field in fields if field.startswith(_ALLOCATABLE)]
    kept = {field.removeprefix(_ALLOCATABLE): fields[field] for field in named}
    limits = {resource: str(limit) for resource, limit in queue.limits.items()}
    if kept != limits:
        what = f"quota:{queue.name} has the limits {_told(kept)} instead of {_told(limits)}"
        yield Finding(_I14, Kind.QUEUE, queue.name, f"limits {fields.get('version')}", what, view.version)


def _used(view: View, queue: SeenQueue, fields: Mapping[str, str], true: Mapping[str, int]) -> Iterator[Finding]:
    for resource, limit in queue.limits.items():
        used, wanted = fields.get(_USED + resource, "0"), true.get(resource, 0)
        if used != str(wanted):
            what = f"quota:{queue.name} counts {used} of {resource} instead of {wanted}"
            rule = f"used {resource} {fields.get('version')}"
            yield Finding(_I14, Kind.QUEUE, queue.name, rule, what, view.version)
        if wanted > limit:
            what = f"its pods request {shown(resource, wanted)} of {resource}, its limit is {shown(resource, limit)}"
            yield Finding(_I14, Kind.QUEUE, queue.name, f"above {resource}", what, view.version, breach=False)


def _counted(view: View) -> dict[str, Counter[str]] | None:
    """Queue to what pods on nodes request of it and of those below it, a claim that several use once for their queue;
    None where that is not sure."""
    found = {name: Counter[str]() for name in view.queues}
    above = _above(view)
    used: set[tuple[str, str]] = set()
    for residents in view.residents.values():
        for resident in residents:
            if resident.pod.by_kueue:
                return None
            amounts = dict(charged(resident.pod))
            pod = resident.pod
            name = pod.queue or view.default_queues.get(pod.key.partition("/")[0], "")
            used.update((name, claim) for claim in pod.claims)
            for queue in above.get(name, ()):
                found[queue].update(amounts)
    for name, key in used:
        if (claim := view.devices.claims.get(key)) is not None:
            for queue in above.get(name, ()):
                found[queue].update(claim.counted)
    return found


def _above(view: View) -> dict[str, list[str]]:
    """Each queue that may have pods to itself and those above it; one that hangs in the air counts for nothing."""
    parents = {each.parent for each in view.queues.values()}
    found: dict[str, list[str]] = {}
    for name in view.queues.keys() - parents:
        way = [name]
        while (above := view.queues[way[-1]].parent) in view.queues and above not in way:
            way.append(above)
        if not above:
            found[name] = way
    return found


def _told(amounts: dict[str, str]) -> str:
    return ", ".join(f"{name} {text}" for name, text in sorted(amounts.items())) or "none"
