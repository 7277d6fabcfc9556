"""What workloads need that dsched does not have: pod groups, operations with claims for devices, and the like.

Found in operations as they stand in a file, in the kinds of the objects that they create, and in feature gates.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from dsched.bench.operations import KNOWN
from dsched.bench.templates import Template
from dsched.config.feature_gates import NOT_YET
from dsched.manifests import kinds

DYNAMIC, GROUPS, PROFILES = "dynamic resources", "pod groups", "profiles of a Go process"
_OPCODES = {
    "createResourceClaims": DYNAMIC,
    "createResourceDriver": DYNAMIC,
    "waitForPodGroups": GROUPS,
    "startCollectingProfile": PROFILES,
    "stopCollectingProfile": PROFILES,
}
_KINDS = {
    "CompositePodGroup": GROUPS,
    "Workload": GROUPS,
}
_GATES = {
    "CompositePodGroup": GROUPS,
    "PodGroupPreemptionPolicy": GROUPS,
}

Needs = Mapping[str, Sequence[str]]
"""What is needed, and what of the workload says so."""


def of(
    template: Sequence[Mapping[str, Any]],
    params: Mapping[str, Any],
    gates: Mapping[str, bool],
    read: Callable[[str], Template],
) -> Needs:
    """What dsched does not have of what a workload needs.

    Args:
        template: its operations, as in the file; params: what parameters in them stand for.
        read: gives the template with this path.
    """
    found: dict[str, list[str]] = {}
    for raw in template:
        for what, by in _operation(raw, params, read):
            found.setdefault(what, []).append(by)
    for gate in (name for name, on in gates.items() if on and name in NOT_YET):
        default = DYNAMIC if gate.startswith("DRA") else f"the feature {gate}"
        found.setdefault(_GATES.get(gate, default), []).append(gate)
    return {what: tuple(dict.fromkeys(found[what])) for what in sorted(found)}


def told(needs: Needs) -> str:
    """``needs pod groups (createPodGroups, GenericWorkload), which dsched does not have``."""
    listed = " and ".join(f"{what} ({', '.join(by)})" for what, by in needs.items())
    return f"needs {listed}, which dsched does not have"


def _operation(
    raw: Mapping[str, Any], params: Mapping[str, Any], read: Callable[[str], Template]
) -> Iterator[tuple[str, str]]:
    opcode = str(raw.get("opcode"))
    if opcode not in KNOWN:
        yield _OPCODES.get(opcode, "an operation that is not known"), opcode
    for given in raw.values():
        if isinstance(given, Mapping) and "opcode" in given:
            yield from _operation(given, params, read)
    if opcode in ("createAny", "createPodGroups", "updateAny") and isinstance(path := raw.get("templatePath"), str):
        template = read(path)
        name = template.kind
        if name and name not in kinds.BY_NAME:
            yield _KINDS.get(name, f"objects of kind {name}"), name
