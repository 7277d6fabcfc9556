"""I3, what no number of 64 bits holds: nodes whose pods together request more of something than that.

The scheduler counts such a sum as 2^63-1, so nothing that requests the resource is placed there, and keeps the exact
one to be right again when pods go. kube-scheduler's int64 wraps around, so there such a node can look free.
"""

from collections.abc import Iterator

from dsched.fsck.findings import Finding, Invariant, Kind
from dsched.fsck.view import View, charged, shown
from dsched.model.quantity import LARGEST

PODS_NAMED = 5
"""So many pods are named, those that request most."""


def check(view: View) -> Iterator[Finding]:
    """Notes: manifests ask for so much, not the scheduler."""
    for name in view.residents.keys() & view.nodes.keys():
        asking: dict[str, list[tuple[int, str]]] = {}
        for resident in view.residents[name]:
            for resource, amount in charged(resident.pod):
                asking.setdefault(resource, []).append((amount, resident.pod.key))
        for resource, pods in asking.items():
            total = sum(amount for amount, _ in pods)
            if total > LARGEST:
                yield Finding(
                    Invariant.NO_OVERCOMMIT,
                    Kind.NODE,
                    name,
                    f"sum of {resource}",
                    _told(resource, total, pods),
                    breach=False,
                )


def _told(resource: str, total: int, pods: list[tuple[int, str]]) -> str:
    first = sorted(pods, key=lambda each: (-each[0], each[1]))
    named = ", ".join(f"{key} {shown(resource, amount)}" for amount, key in first[:PODS_NAMED])
    more = f" and {len(first) - PODS_NAMED} more" if len(first) > PODS_NAMED else ""
    return (
        f"its pods request {shown(resource, total)} of {resource} ({named}{more}), more than 64 bits hold; it "
        f"counts as {shown(resource, LARGEST)}, and nothing else that requests {resource} is placed there until some "
        "of them go"
    )
