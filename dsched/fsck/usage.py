"""I3, the other half: what reservations are checked against, ``node:NAME``, says what the objects say.

Judged for nodes that do not change while they are looked at: a finding names the node's version, which every charge
moves. A node with a reservation whose pod is gone is passed over: what it charges is not known any more.
"""

from collections.abc import Iterator, Mapping

from dsched.fsck.findings import Finding, Invariant, Kind
from dsched.fsck.view import Amounts, View, charged, shown
from dsched.model.meta import NodeName

_I3 = Invariant.NO_OVERCOMMIT
_USED, _ALLOCATABLE = "used.", "allocatable."


def check(view: View) -> Iterator[Finding]:
    """What breaks it."""
    unclear = {each.node for each in view.reservations.values() if view.owner(each.uid, each.key) is None}
    for node in view.nodes.values():
        usage = view.usage.get(node.name)
        if usage is None:
            what = f"there is no usage of it in Redis (node:{node.name})"
            yield Finding(_I3, Kind.NODE, node.name, "no usage", what, node.version)
            continue
        version = usage.get("version", "")
        found = _differences(_amounts(usage, _ALLOCATABLE), node.allocatable)
        if found:
            what = f"node:{node.name} has allocatable {found}"
            yield Finding(_I3, Kind.NODE, node.name, f"allocatable {version}", what, node.version)
        found = _differences(_amounts(usage, _USED), _requested(view, node.name))
        if found and node.name not in unclear:
            what = f"node:{node.name} counts {found}"
            yield Finding(_I3, Kind.NODE, node.name, f"used {version}", what, view.version)
    for name in view.usage.keys() - view.nodes.keys():
        what = f"its usage is kept (node:{name}), and there is no such node"
        yield Finding(_I3, Kind.NODE, name, "no node", what, view.version)


def _requested(view: View, node: NodeName) -> dict[str, int]:
    total: dict[str, int] = {}
    for resident in view.residents.get(node, ()):
        for resource, amount in charged(resident.pod):
            total[resource] = total.get(resource, 0) + amount
    return total


def _amounts(fields: Mapping[str, str], prefix: str) -> dict[str, int | str]:
    given = {name.removeprefix(prefix): text for name, text in fields.items() if name.startswith(prefix)}
    return {name: _number(text) for name, text in given.items()}


def _number(text: str) -> int | str:
    """A number, or what somebody else has put in its place, in quotes."""
    try:
        return int(text)
    except ValueError:
        return repr(text)


def _differences(kept: Mapping[str, int | str], true: Amounts) -> str:
    """What differs, in words; a resource that is not named is 0."""
    return ", ".join(
        f"{name} {_text(name, kept.get(name, 0))} instead of {_text(name, true.get(name, 0))}"
        for name in sorted(kept.keys() | true.keys())
        if kept.get(name, 0) != true.get(name, 0)
    )


def _text(resource: str, amount: int | str) -> str:
    return amount if isinstance(amount, str) else shown(resource, amount)
