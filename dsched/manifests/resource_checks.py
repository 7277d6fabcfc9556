"""Checks of resource names and amounts.

Source: kubernetes v1.34 pkg/apis/core/validation/validation.go (ValidateResourceRequirements), pkg/apis/core/helper.
"""

from collections.abc import Mapping

from dsched.manifests import syntax
from dsched.manifests.problems import Report
from dsched.model import quantity
from dsched.model.pod import ResourceRequirements
from dsched.model.quantity import Quantity

HUGE_PAGES = "hugepages-"
PODS = "pods"
_QUOTA = "requests."
"""What a quota puts before the name of a resource."""
_STANDARD = frozenset({"cpu", "memory", "ephemeral-storage"})


def requirements(resources: ResourceRequirements, path: str, report: Report) -> None:
    """Check the requests and limits of a container, or of a pod."""
    sound = amounts(resources.limits, f"{path}.limits", report)
    sound &= amounts(resources.requests, f"{path}.requests", report)
    if not sound:
        return
    for name, requested in resources.requests.items():
        _against_limit(name, requested, resources.limits.get(name), path, report)
    named = resources.requests.keys() | resources.limits.keys()
    if any(name.startswith(HUGE_PAGES) for name in named) and not named & {"cpu", "memory"}:
        report(path, "huge pages need cpu or memory beside them")


def readable(resources: ResourceRequirements) -> bool:
    """Whether all amounts are quantities."""
    return not any(syntax.any_amount(each) for each in (*resources.requests.values(), *resources.limits.values()))


def amounts(given: Mapping[str, Quantity], path: str, report: Report, *, of_node: bool = False) -> bool:
    """Check names and amounts; says whether they are sound. Nodes also have ``pods`` and other bare names."""
    sound = True
    for name, amount in given.items():
        wrong = "" if of_node else _container_resource(name)
        wrong = wrong or syntax.qualified_name(name)
        wrong = wrong or (syntax.integer_amount(amount) if is_extended(name) or name == PODS else syntax.amount(amount))
        wrong = wrong or ("" if of_node else _pages(name, amount))
        if wrong:
            report(f"{path}.{name}", wrong)
            sound = False
    return sound


def _pages(name: str, amount: Quantity) -> str:
    """Why so much of a huge page resource is no number of pages; ``""`` where it is, or for another resource.

    Source: pkg/apis/core/helper/helpers.go ``IsHugePageResourceValueDivisible``.
    """
    if not name.startswith(HUGE_PAGES):
        return ""
    size = name.removeprefix(HUGE_PAGES)
    page = 0 if syntax.integer_amount(size) else quantity.value(size)
    if page == 0:
        return f'"{size}" is no size of a page'
    return "" if quantity.value(amount) % page == 0 else f'"{amount}" is not a whole number of pages of {size}'


def is_extended(name: str) -> bool:
    """A resource of someone else's domain: counted in whole numbers, never overcommitted."""
    return "/" in name and "kubernetes.io/" not in name and not name.startswith(_QUOTA)


def _container_resource(name: str) -> str:
    if name in _STANDARD or name.startswith(HUGE_PAGES):
        return ""
    if "/" in name:
        if "kubernetes.io/" in name or (is_extended(name) and not syntax.qualified_name(f"{_QUOTA}{name}")):
            return ""
        return f'"{name}" is no name of an extended resource'
    return f'"{name}" is neither a standard resource nor one with a domain (example.com/{name})'


def _against_limit(name: str, requested: Quantity, limit: Quantity | None, path: str, report: Report) -> None:
    divisible = not is_extended(name) and not name.startswith(HUGE_PAGES)
    if limit is None:
        if not divisible:
            report(f"{path}.limits.{name}", "has to be given: this resource cannot be overcommitted")
        return
    request_nano, limit_nano = quantity.nano(requested), quantity.nano(limit)
    if not divisible and request_nano != limit_nano:
        report(f"{path}.requests.{name}", f'"{requested}" has to equal the limit, "{limit}"')
    elif request_nano > limit_nano:
        report(f"{path}.requests.{name}", f'"{requested}" is more than the limit, "{limit}"')
