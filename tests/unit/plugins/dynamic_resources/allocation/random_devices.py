"""Clusters with devices, and claims for them, for properties: small ones in which devices are scarce."""

from typing import Any

from hypothesis import strategies as st

from tests.devices import (
    alternative,
    asking,
    capacity,
    make_claim,
    make_device,
    make_slice,
    one_of,
    result,
    taint_rule,
    uses,
)

Json = dict[str, Any]

NODES = ("n1", "n2", "n3")
_EXPRESSIONS = st.sampled_from(["any", "model=a", "model=b", "only:d0", "fails", "broken"])
_PLAIN_EXPRESSIONS = st.sampled_from(["any", "model=a", "model=b"])
_BROKEN = {"key": "broken", "effect": "NoSchedule"}
_POLICIES = st.sampled_from(
    [
        {},
        {"default": "1"},
        {"default": "2", "validValues": ["2", "4"]},
        {"default": "1", "validRange": {"min": "1", "max": "6", "step": "2500m"}},
    ]
)


@st.composite
def devices(draw: st.DrawFn, name: str, *, plain: bool, shared_set: bool) -> Json:
    fields: Json = {}
    attributes = {"model": draw(st.sampled_from("ab")), "numa": draw(st.integers(0, 2))}
    if draw(st.integers(0, 7)) == 0:
        fields["bindingConditions"] = ["example.com/ready"]
    if draw(st.integers(0, 7)) == 0:
        fields["taints"] = [_BROKEN]
    if not plain and draw(st.integers(0, 3)) == 0:
        fields |= {"allowMultipleAllocations": True, "capacity": {"memory": capacity("5", **draw(_POLICIES))}}
    if shared_set and draw(st.booleans()):
        fields["consumesCounters"] = [uses({"memory": draw(st.sampled_from(["1", "2", "3"]))})]
    return make_device(name, attributes=attributes, **fields)


@st.composite
def clusters(draw: st.DrawFn, *, plain: bool = False) -> list[Json]:
    """Slices: pools of single nodes and pools that several nodes reach, complete and incomplete, valid and not.

    Args:
        plain: no devices that are shared or take of counters.
    """
    return [each for number in range(draw(st.integers(2, 6))) for each in draw(_pool(f"p{number}", plain))]


@st.composite
def _pool(draw: st.DrawFn, pool: str, plain: bool) -> list[Json]:
    counted = not plain and draw(st.integers(0, 2)) == 0
    parts, odd = draw(st.integers(1, 2)), draw(st.integers(0, 15))
    slices = []
    for part in range(parts):
        names = [f"d{2 * part * (odd != 0)}", f"d{2 * part * (odd != 0) + 1}"]
        offered = [draw(devices(name, plain=plain, shared_set=counted)) for name in names]
        node = draw(st.sampled_from(["n1", "n1", "n2", "", "each"]))
        where: Json = {"allNodes": True}
        if node == "each":
            where = {"perDeviceNodeSelection": True}
            offered = [each | {"nodeName": draw(st.sampled_from(NODES))} for each in offered]
        fields: Json = {"slices": parts + counted + (odd == 1), "generation": 2 if odd == 2 and part else 1}
        where = where if node in ("", "each") else {}
        node = "" if where else node
        slices.append(make_slice(node, offered, name=f"{pool}-{part}", pool=pool, **fields, **where))
    if counted:
        total = {"set": {"memory": draw(st.sampled_from(["2", "4", "6"]))}}
        slices.append(make_slice("", [], name=f"{pool}-c", pool=pool, slices=parts + 1, counters=total, allNodes=True))
    return slices


@st.composite
def claims(draw: st.DrawFn, *, plain: bool = False) -> list[Json]:
    """One or two claims.

    Args:
        plain: requests for a number of devices, by selectors that do not fail.
    """
    return [draw(_claim(f"default/mine-{number}", plain)) for number in range(draw(st.integers(1, 2)))]


@st.composite
def _claim(draw: st.DrawFn, key: str, plain: bool) -> Json:
    requests = [draw(_request(f"r{number}", plain)) for number in range(draw(st.integers(1, 3)))]
    constraints = []
    if not plain and draw(st.integers(0, 2)) == 0:
        kind = draw(st.sampled_from(["matchAttribute", "distinctAttribute"]))
        constraints.append({kind: draw(st.sampled_from(["gpu.example.com/numa", "gpu.example.com/model"]))})
    return make_claim(key, *requests, constraints=constraints)


@st.composite
def _request(draw: st.DrawFn, name: str, plain: bool) -> Json:
    if not plain and draw(st.integers(0, 3)) == 0:
        return one_of(name, *(alternative(f"a{each}", **draw(_wanted(plain))) for each in range(2)))
    wanted = draw(_wanted(plain))
    if not plain and draw(st.integers(0, 4)) == 0:
        wanted["adminAccess"] = True
    return asking(name, **wanted)


@st.composite
def _wanted(draw: st.DrawFn, plain: bool) -> Json:
    wanted: Json = {"count": draw(st.sampled_from([1, 1, 2, 3])), "where": [draw(_PLAIN_EXPRESSIONS)]}
    if draw(st.integers(0, 3)) == 0:
        wanted["tolerations"] = [{"operator": "Exists"}]
    if plain:
        return wanted
    if draw(st.integers(0, 4)) == 0:
        wanted["count"] = None
    if draw(st.integers(0, 9)) == 0:
        wanted["where"] = [draw(_EXPRESSIONS)]
    if draw(st.integers(0, 3)) == 0:
        wanted["capacity"] = {"requests": {"memory": draw(st.sampled_from(["1", "2", "3500m", "9"]))}}
    return wanted


@st.composite
def held(draw: st.DrawFn, slices: list[Json]) -> list[Json]:
    """Claims that hold some of the devices: whole ones, and shares of those that have some."""
    found = []
    for number, offered in enumerate(slices):
        for device in offered["spec"].get("devices", ()):
            if draw(st.integers(0, 4)):
                continue
            share: Json = {}
            if device.get("allowMultipleAllocations") and draw(st.booleans()):
                share = {"shareID": "s", "consumedCapacity": {"memory": draw(st.sampled_from(["1", "3", "5"]))}}
            name = f"default/held-{number}-{device['name']}"
            pool = offered["spec"]["pool"]["name"]
            found.append(make_claim(name, asking(), allocated=[result(device["name"], pool=pool, **share)]))
    return found


RULES = st.lists(st.builds(taint_rule, st.sampled_from(["x", "y"]), device=st.sampled_from(["d0", "d3"])), max_size=1)
