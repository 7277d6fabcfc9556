"""Writes the tables of versions.md from what is known of each version."""

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

from dsched.config import plugins, schema
from dsched.config.feature_gates import ACTED_ON, GATES, NO_DECISION, NOT_YET, VERSIONS, Version, features, spec_at
from scripts.docs.declared import DOCS

PAGE = DOCS / "versions.md"
ROLES = {"no decision": NO_DECISION, "off only": NOT_YET}
ACTIONS = {
    "InPlacePodLevelResourcesVerticalScaling": "what a pod's status says that it has as a whole counts on its node",
    "NodeDeclaredFeatures": "a plugin of the default profile keeps pods off nodes that do not declare what they need",
    "StorageCapacityScoring": "VolumeBinding scores nodes by the storage left, as `shape` in its arguments says",
    "TaintTolerationComparisonOperators": "tolerations with `Gt` and `Lt` are compared; else they tolerate nothing",
    "VolumeLimitScaling": "NodeVolumeLimits keeps pods off nodes without a driver whose CSIDriver asks for that",
}
"""What a gate does that can be turned on and off."""


def gates() -> str:
    """Every gate: its stage and default in each version, and what dsched does with it."""
    head = ["gate", *map(str, VERSIONS), "in dsched"]
    rows = [[f"`{name}`", *(_spec(name, version) for version in VERSIONS), _role(name)] for name in GATES]
    return _table(head, rows)


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
    for name, table in {"gates": gates(), "plugins": default_plugins()}.items():
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
        return f"acted on: {ACTIONS[gate]}"
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
