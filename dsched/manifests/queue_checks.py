"""Checks of queues: of each by itself, and of the forest that they are together.

The kind is dsched's own (see docs/queues.md), so a field that is not known is a mistake, not news from a newer server.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, get_args

import msgspec

from dsched.manifests import syntax
from dsched.manifests.problems import Report
from dsched.manifests.resource_checks import is_extended
from dsched.manifests.selector_checks import one_of
from dsched.manifests.typed import convert
from dsched.model import quantity
from dsched.model.meta import ApiRecord
from dsched.model.quantity import Quantity
from dsched.model.queue_forest import parent_of
from dsched.model.queues import Queue, QueueResource, QueueSpec, Reclaim

Object = Mapping[str, Any]

_COUNTED = frozenset({"pods"})
"""Resources without a domain that come in whole numbers."""


def queue(given: Queue, report: Report) -> None:
    """Check a queue by itself. How large numbers are, its record says."""
    spec = given.spec
    if wrong := syntax.label_value(given.name):
        report("metadata.name", f"{wrong}: pods name their queue by a label")
    if spec.parent and (wrong := syntax.subdomain(spec.parent)):
        report("spec.parent", wrong)
    elif spec.parent == given.name:
        report("spec.parent", f'"{spec.parent}" is the queue itself')
    _weight(spec.weight, "spec.weight", report)
    for name, resource in spec.resources.items():
        _resource(name, resource, f"spec.resources.{name}", report)
    _duration(spec.min_runtime, report)
    _namespaces(spec.namespaces, report)


def fields(value: Object, report: Report) -> bool:
    """Check what a queue's record would not tell as well: fields that there are not, each resource by its name, and the
    words of `reclaim`; says whether they are sound."""
    wrong: list[str] = []

    def refuse(path: str, what: str) -> None:
        wrong.append(path)
        report(path, what)

    spec = value.get("spec")
    if not isinstance(spec, Mapping):
        return True  # the record tells
    _unknown(spec, QueueSpec, "spec", refuse)
    if isinstance(reclaim := spec.get("reclaim"), str):
        one_of(reclaim, get_args(Reclaim), "spec.reclaim", refuse)
    resources = spec.get("resources")
    for name, resource in resources.items() if isinstance(resources, Mapping) else ():
        path = f"spec.resources.{name}"
        if isinstance(resource, Mapping):
            _unknown(resource, QueueResource, path, refuse)
        convert(resource, QueueResource, lambda at, what, path=path: refuse(f"{path}.{at}" if at else path, what))  # type: ignore[misc]
    return not wrong


def forest(queues: Mapping[str, Object], changed: Mapping[str, Report]) -> None:
    """Check what queues are to each other.

    Args:
        queues: all that there are after the change, by name; each sound by itself.
        changed: those that are created or changed, and whom to tell what is wrong with each.
    """
    children: dict[str, list[str]] = defaultdict(list)
    for name in sorted(queues):
        children[parent_of(queues[name])].append(name)
    for name, report in changed.items():
        parent = parent_of(queues[name])
        if parent and parent not in queues:
            report("spec.parent", f'there is no queue "{parent}"; apply it first or in the same call')
        elif circle := _circle(name, queues):
            report("spec.parent", f'"{parent}" is below it: {" > ".join(circle)}')
    for name in dict.fromkeys([*changed, *(parent_of(queues[name]) for name in changed)]):
        if name in queues:
            _guarantees(name, children[name], queues, changed)


def left_behind(queues: Iterable[Object], gone: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    """Queues that cannot be deleted, and their children that would stay.

    Args:
        gone: names of those that are to be deleted together.
    """
    parents = {each["metadata"]["name"]: parent_of(each) for each in queues}
    names = set(gone)
    for name in sorted(names & parents.keys()):
        if staying := sorted(child for child, parent in parents.items() if parent == name and child not in names):
            yield name, staying


def _weight(weight: int | None, path: str, report: Report) -> None:
    if weight is not None and weight < 0:
        report(path, f"{weight} is negative")


def _resource(name: str, given: QueueResource, path: str, report: Report) -> None:
    if wrong := syntax.qualified_name(name):
        report(path, wrong)
        return
    check = syntax.integer_amount if is_extended(name) or name in _COUNTED else syntax.amount
    sound = True
    for field, amount in (("guaranteed", given.guaranteed), ("limit", given.limit)):
        if amount is not None and (wrong := check(amount)):
            report(f"{path}.{field}", wrong)
            sound = False
    if sound and given.limit is not None and quantity.nano(given.limit) < quantity.nano(given.guaranteed):
        report(f"{path}.limit", f'"{given.limit}" is less than what is guaranteed, "{given.guaranteed}"')
    _weight(given.weight, f"{path}.weight", report)


def _duration(text: str, report: Report) -> None:
    from dsched.config import durations  # which brings all of the configuration: most manifests do without

    try:
        if durations.parse(text) < 0:
            report("spec.minRuntime", f'"{text}" is negative')
    except ValueError as error:
        report("spec.minRuntime", f"{error}, as 90s, 10m or 1h30m are")


def _namespaces(given: list[str], report: Report) -> None:
    for index, name in enumerate(given):
        wrong = syntax.dns_label(name)
        if not wrong and name in given[:index]:
            wrong = f'"{name}" is given twice'
        if wrong:
            report(f"spec.namespaces[{index}]", wrong)


def _unknown(value: Object, record: type[ApiRecord], path: str, report: Report) -> None:
    known = [field.encode_name for field in msgspec.structs.fields(record)]
    for name in value:
        if name not in known:
            report(f"{path}.{name}", f"there is no such field; there are {', '.join(known)}")


def _circle(name: str, queues: Mapping[str, Object]) -> list[str]:
    """The way up from a queue that comes back to it; [] where it ends elsewhere."""
    way, above = [name], parent_of(queues[name])
    while above in queues and above not in way:
        way.append(above)
        above = parent_of(queues[above])
    return [*way, name] if above == name else []


def _guarantees(name: str, children: list[str], queues: Mapping[str, Object], changed: Mapping[str, Report]) -> None:
    """What children are guaranteed together, their parent has to be guaranteed, where it says what it is."""
    for resource, given in (queues[name].get("spec") or {}).get("resources", {}).items():
        if (own := given.get("guaranteed")) is None:
            continue
        parts = {child: _guaranteed(queues[child], resource) for child in children}
        parts = {child: amount for child, amount in parts.items() if quantity.nano(amount) > 0}
        if sum(map(quantity.nano, parts.values())) <= quantity.nano(own):
            continue
        told = " + ".join(f"{amount} ({child})" for child, amount in parts.items())
        wrong = f'children of queue "{name}" are guaranteed {told}, together more than its {own}'
        for each in [name] if name in changed else [child for child in parts if child in changed]:
            changed[each](f"spec.resources.{resource}.guaranteed", wrong)


def _guaranteed(value: Object, resource: str) -> Quantity:
    given: Quantity = (value.get("spec") or {}).get("resources", {}).get(resource, {}).get("guaranteed") or 0
    return given
