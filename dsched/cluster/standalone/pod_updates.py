"""What may change about a pod that exists.

Source: kubernetes v1.34 pkg/apis/core/validation/validation.go (ValidatePodUpdate, ValidatePodResize,
validatePodAffinityMutation…), as far as scheduling reads it.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Object = Mapping[str, Any]

ALLOWED = "removed schedulingGates, added tolerations, container resources and images"
_CONTAINERS = ("containers", "initContainers")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def forbidden(old: Object, new: Object) -> list[str]:
    """The fields of a pod's spec that must not change the way they do; [] when the change is allowed."""
    gated = bool(old.get("schedulingGates"))
    return [name for name in sorted(old.keys() | new.keys()) if not _allowed(name, old.get(name), new.get(name), gated)]


def _allowed(name: str, old: Any, new: Any, gated: bool) -> bool:
    if old == new:
        return True
    if name == "schedulingGates":
        return all(gate in (old or ()) for gate in new or ())
    if name == "tolerations":
        return all(toleration in (new or ()) for toleration in old or ())
    if name in _CONTAINERS:
        return [_lasting(container) for container in old or ()] == [_lasting(container) for container in new or ()]
    if name == "nodeSelector" and gated:
        return (old or {}).items() <= (new or {}).items()
    return name == "affinity" and gated and _narrower(old or {}, new or {})


def _lasting(container: Object) -> Object:
    """A container without what may change."""
    return {name: value for name, value in container.items() if name not in ("resources", "image")}


def _narrower(old: Object, new: Object) -> bool:
    """Whether a gated pod's affinity only lost nodes: requirements may be added to each term, preferences change."""
    if _without_node(old) != _without_node(new):
        return False
    before = _terms(old)
    if before is None:
        return True
    after = _terms(new)
    return after is not None and len(after) == len(before) and all(map(_adds_to, before, after))


def _without_node(affinity: Object) -> Object:
    return {name: value for name, value in affinity.items() if name != "nodeAffinity"}


def _terms(affinity: Object) -> Sequence[Object] | None:
    required = affinity.get("nodeAffinity", {}).get(_REQUIRED)
    return None if required is None else required.get("nodeSelectorTerms", ())


def _adds_to(before: Object, after: Object) -> bool:
    return all(requirement in list(_requirements(after)) for requirement in _requirements(before))


def _requirements(term: Object) -> Iterator[tuple[str, Object]]:
    for field in ("matchExpressions", "matchFields"):
        for requirement in term.get(field, ()):
            yield field, requirement
