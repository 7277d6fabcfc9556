"""Slices, claims and device classes for tests, told in one line each, as the plain objects a cluster holds."""

from collections.abc import Iterable, Mapping
from typing import Any

Json = dict[str, Any]

DRIVER = "gpu.example.com"


def make_device(name: str, *, attributes: Mapping[str, Any] | None = None, **fields: Any) -> Json:
    """A device; attributes by name as plain values, what else it has by field: ``capacity={"m": capacity("4Gi")}``."""
    given = {key: _attribute(value) for key, value in (attributes or {}).items()}
    return {"name": name, **({"attributes": given} if given else {}), **fields}


def _attribute(value: Any) -> Json:
    if isinstance(value, dict):
        return value
    return {"bool" if isinstance(value, bool) else "int" if isinstance(value, int) else "string": value}


def capacity(value: str, **policy: Any) -> Json:
    """A capacity, with a policy for requests: ``default="1Gi", validRange={…}``."""
    return {"value": value, **({"requestPolicy": policy} if policy else {})}


def uses(counters: Mapping[str, str], of: str = "set") -> Json:
    """What a device takes of a counter set, as its ``consumesCounters``."""
    return {"counterSet": of, "counters": {name: {"value": amount} for name, amount in counters.items()}}


def make_slice(
    node: str = "n1",
    devices: Iterable[Json | str] = (),
    *,
    name: str = "",
    driver: str = DRIVER,
    pool: str = "",
    generation: int = 1,
    slices: int = 1,
    counters: Mapping[str, Mapping[str, str]] | None = None,
    **spec: Any,
) -> Json:
    """A slice of a pool, of the node's own where it names none.

    Args:
        devices: names will do.
        node: "" for one that says otherwise where its devices can be used, ``allNodes=True``.
        counters: shared counters, by set and name.
    """
    offered = [make_device(each) if isinstance(each, str) else each for each in devices]
    shared = [
        {"name": set_name, "counters": {key: {"value": amount} for key, amount in given.items()}}
        for set_name, given in (counters or {}).items()
    ]
    pool = pool or node
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": name or f"{driver}-{pool}", "uid": f"uid-{name or pool}"},
        "spec": {
            "driver": driver,
            "pool": {"name": pool, "generation": generation, "resourceSliceCount": slices},
            **({"nodeName": node} if node else {}),
            **({"devices": offered} if offered else {}),
            **({"sharedCounters": shared} if shared else {}),
            **spec,
        },
    }


def selectors(*expressions: str) -> list[Json]:
    """Expressions as selectors."""
    return [{"cel": {"expression": each}} for each in expressions]


def asking(
    name: str = "r", count: int | None = 1, *, of: str = "gpu", where: Iterable[str] = (), **fields: Any
) -> Json:
    """A request for devices of a class, which is called ``gpu``.

    Args:
        count: None for all devices that there are.
        where: expressions that they match.
    """
    return {"name": name, "exactly": _wanted(count, of, where, fields)}


def alternative(name: str, count: int | None = 1, *, of: str = "gpu", where: Iterable[str] = (), **fields: Any) -> Json:
    """One of several that `one_of` takes."""
    return {"name": name, **_wanted(count, of, where, fields)}


def one_of(name: str, *alternatives: Json) -> Json:
    """A request for the first alternative that there is room for."""
    return {"name": name, "firstAvailable": list(alternatives)}


def _wanted(count: int | None, of: str, where: Iterable[str], fields: Json) -> Json:
    mode = {"allocationMode": "All"} if count is None else {"allocationMode": "ExactCount", "count": count}
    return {"deviceClassName": of, **mode, "selectors": selectors(*where), **fields}


def make_claim(
    key: str = "default/mine",
    *requests: Json,
    constraints: Iterable[Json] = (),
    config: Iterable[Json] = (),
    allocated: Iterable[Json] = (),
    **status: Any,
) -> Json:
    """A claim ``namespace/name`` with these requests.

    Args:
        allocated: the devices that it has, see `result`.
        status: further fields of its status.
    """
    namespace, name = key.split("/")
    results = list(allocated)
    spec: Json = {"requests": list(requests)}
    spec |= {"constraints": list(constraints)} if constraints else {}
    spec |= {"config": list(config)} if config else {}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"namespace": namespace, "name": name, "uid": f"uid-{name}"},
        "spec": {"devices": spec},
        "status": {**({"allocation": {"devices": {"results": results}}} if results else {}), **status},
    }


def result(device: str, *, pool: str = "n1", driver: str = DRIVER, request: str = "r", **fields: Any) -> Json:
    """A device in an allocation."""
    return {"request": request, "driver": driver, "pool": pool, "device": device, **fields}


def make_class(name: str = "gpu", *expressions: str, config: Iterable[Json] = (), **spec: Any) -> Json:
    """A device class whose devices match these expressions."""
    given: Json = {"selectors": selectors(*expressions), **spec}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": given | ({"config": list(config)} if config else {}),
    }


def opaque(note: str, *requests: str, driver: str = DRIVER) -> Json:
    """A configuration, for these requests."""
    given = {"opaque": {"driver": driver, "parameters": {"note": note}}}
    return {**({"requests": list(requests)} if requests else {}), **given}


def taint_rule(name: str, effect: str = "NoSchedule", key: str = "broken", value: str = "", **devices: str) -> Json:
    """A rule that taints the devices with this ``driver``, ``pool`` and ``device``."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceTaintRule",
        "metadata": {"name": name},
        "spec": {"deviceSelector": devices, "taint": {"key": key, "value": value, "effect": effect}},
    }
