"""Writes the tables of versions.md from what is known of each version."""

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

from dsched.config import plugins, schema
from dsched.config.feature_gates import (
    ACTED_ON,
    ACTED_ON_SINCE,
    GATES,
    NO_DECISION,
    NOT_YET,
    OWN,
    VERSIONS,
    Version,
    features,
    spec_at,
)
from scripts.docs.declared import DOCS

PAGE = DOCS / "versions.md"
ROLES = {"no decision": NO_DECISION, "off only": NOT_YET}
ACTIONS = {
    "DRAWorkloadResourceClaims": "claims for devices that a PodGroup names are its pods' together, and reserved for it",
    "DynamicResourceAllocation": "DynamicResources is in the default profile",
    "GenericWorkload": "pods of a PodGroup are decided together, and those of a gang all or none",
    "InPlacePodLevelResourcesVerticalScaling": "what a pod's status says that it has as a whole counts on its node",
    "InPlacePodVerticalScalingSchedulerPreemption": "pods whose resize is deferred stand in the queue, and others are "
    "evicted from their node for it ([Preemption](preemption.md#deferred-resizes))",
    "NodeDeclaredFeatures": "a plugin of the default profile keeps pods off nodes that do not declare what they need",
    "StorageCapacityScoring": "VolumeBinding scores nodes by the storage left, as `shape` in its arguments says",
    "TaintTolerationComparisonOperators": "tolerations with `Gt` and `Lt` are compared; else they tolerate nothing",
    "TopologyAwareWorkloadScheduling": "pods of a PodGroup with `schedulingConstraints` go where a label of the nodes "
    "has one value",
    "DschedCoscheduling": "the PodGroup of scheduler-plugins and its label are read as a PodGroup of Kubernetes: "
    "[pod groups](pod-groups.md#groups-of-scheduler-plugins)",
    "DschedDeviceBestFit": "of devices and of nodes that would do, DynamicResources prefers those that leave the least "
    "waste: [best fit](best-fit.md)",
    "DschedDevicePreemption": "DefaultPreemption counts on the devices of the pods that it would evict: "
    "[preemption](preemption.md#preemption-that-frees-devices)",
    "DschedGangPlacement": "a pod group gets the tightest domain of the narrowest topology level that takes all of it: "
    "[pod groups](pod-groups.md#better-than-greedy)",
    "VolumeLimitScaling": "NodeVolumeLimits keeps pods off nodes without a driver whose CSIDriver asks for that",
}
"""What a gate does that can be turned on and off."""


def gates() -> str:
    """Every gate: its stage and default in each version, and what dsched does with it."""
    head = ["gate", *map(str, VERSIONS), "in dsched"]
    rows = [[f"`{name}`", *(_spec(name, version) for version in VERSIONS), _role(name)] for name in GATES]
    return _table(head, rows)


def own_gates() -> str:
    """Every gate of dsched's own: its default, which is the same in each version, and what it does."""
    return _table(
        ["gate", "default", "what"], [[f"`{name}`", _spec(name, VERSIONS[-1]), ACTIONS[name]] for name in OWN]
    )


def default_plugins() -> str:
    """The default profile of each version: what differs from the version before."""
    rows = []
    before: dict[str, int] = {}
    for version in VERSIONS:
        enabled = plugins.merged(None, features(version))[schema.MULTI_POINT]["enabled"]
        found = {plugin["name"]: plugin["weight"] for plugin in enabled}
        rows.append([str(version), ", ".join(_changes(before, found)) if before else f"{len(found)} plugins"])
        before = found
    return _table(["version", "default plugins"], rows)


def page(text: str | None = None) -> str:
    """The page with its tables brought up to date."""
    text = PAGE.read_text() if text is None else text
    for name, table in {"gates": gates(), "own gates": own_gates(), "plugins": default_plugins()}.items():
        begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->\n"
        before, _, rest = text.partition(begin)
        _, _, after = rest.partition(end)
        text = f"{before}{begin}{table}{end}{after}"
    return text


def _spec(gate: str, version: Version) -> str:
    spec = spec_at(gate, version)
    if spec is None:
        return ""
    words = [spec.stage.value.lower() or "stable", "on" if spec.on else "off"]
    return " ".join([*words, "locked"] if spec.locked else words)


def _role(gate: str) -> str:
    if gate in ACTED_ON:
        since = f" since {ACTED_ON_SINCE[gate]}" if gate in ACTED_ON_SINCE else ""
        return f"acted on{since}: {ACTIONS[gate]}"
    return next((role for role, names in ROLES.items() if gate in names), "as by default")


def _changes(before: Mapping[str, int | None], after: Mapping[str, int | None]) -> list[str]:
    found = []
    for name in sorted(before.keys() | after.keys()):
        if name not in before:
            found.append(f"with `{name}`")
        elif name not in after:
            found.append(f"without `{name}`")
        elif before[name] != after[name]:
            found.append(f"`{name}` weighs {after[name]}, not {before[name] or 0}")
    ranks = {name: rank for rank, name in enumerate(before)}
    known = [name for name in after if name in before]
    found += [f"`{one}` before `{other}`" for one, other in pairwise(known) if ranks[one] > ranks[other]]
    return found or ["the same"]


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines).replace("|  |", "| |").replace("|  |", "| |")


def files() -> dict[Path, str]:
    """What the files are to hold."""
    return {PAGE: page()}
