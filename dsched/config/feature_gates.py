"""Which version of kube-scheduler is emulated, and its feature gates: which there are, since when, and which are on.

Every gate of upstream that touches scheduling is in `GATES`. What is set of them is refused where upstream would refuse
it, and also where dsched could not do as it says: see `ACTED_ON` and `NOT_YET`. Features that upstream does not have
are behind gates of dsched's own, in `OWN`.

Source: kubernetes v1.37 pkg/features/kube_features.go ``defaultVersionedKubernetesFeatureGates``; component-base
featuregate/feature_gate.go ``unsafeSetFromMap``.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

from dsched.errors import ConfigError


class Version(NamedTuple):
    """A minor version of Kubernetes."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


OLDEST, NEWEST = Version(1, 34), Version(1, 37)
VERSIONS = tuple(Version(1, minor) for minor in range(OLDEST.minor, NEWEST.minor + 1))
"""What can be emulated."""


class Stage(StrEnum):
    """How mature a feature is, as upstream's metrics call it."""

    ALPHA = "ALPHA"
    BETA = "BETA"
    GA = ""


class Spec(NamedTuple):
    """What holds of a gate from a version on."""

    since: Version
    stage: Stage
    on: bool
    locked: bool = False


def _specs(*lines: str) -> tuple[Spec, ...]:
    """``1.34 beta on``, ``1.37 ga on locked``."""
    found = []
    for line in lines:
        version, stage, default, *locked = line.split()
        major, minor = version.split(".")
        found.append(Spec(Version(int(major), int(minor)), Stage[stage.upper()], default == "on", bool(locked)))
    return tuple(found)


GATES: Mapping[str, tuple[Spec, ...]] = {
    "CompositePodGroup": _specs("1.37 alpha off"),
    "DRAAdminAccess": _specs("1.32 alpha off", "1.34 beta on", "1.36 ga on locked"),
    "DRAConsumableCapacity": _specs("1.34 alpha off", "1.36 beta on"),
    "DRADerivedAttributes": _specs("1.37 alpha off"),
    "DRADeviceBindingConditions": _specs("1.34 alpha off", "1.36 beta on"),
    "DRADeviceCompatibilityGroups": _specs("1.37 alpha off"),
    "DRADeviceTaintRules": _specs("1.35 alpha off", "1.36 beta off", "1.37 ga on"),
    "DRADeviceTaints": _specs("1.33 alpha off", "1.36 beta on", "1.37 ga on"),
    "DRAExtendedResource": _specs("1.34 alpha off", "1.36 beta on", "1.37 ga on locked"),
    "DRAFractionalCapacityRange": _specs("1.37 beta on"),
    "DRAListTypeAttributes": _specs("1.36 alpha off"),
    "DRANodeAllocatableResources": _specs("1.36 alpha off"),
    "DRAOptionalNodeOperations": _specs("1.37 alpha off"),
    "DRAPartitionableDevices": _specs("1.33 alpha off", "1.36 beta on"),
    "DRAPrioritizedList": _specs("1.33 alpha off", "1.34 beta on", "1.36 ga on", "1.37 ga on locked"),
    "DRAResourceClaimDeviceStatus": _specs("1.32 alpha off", "1.33 beta on", "1.37 ga on locked"),
    "DRAResourceClaimGranularStatusAuthorization": _specs("1.36 beta on"),
    "DRASchedulerFilterTimeout": _specs("1.34 beta on"),
    "DRAWorkloadResourceClaims": _specs("1.36 alpha off", "1.37 beta off"),
    "DynamicResourceAllocation": _specs("1.26 alpha off", "1.32 beta off", "1.34 ga on", "1.35 ga on locked"),
    "GenericWorkload": _specs("1.35 alpha off", "1.37 beta off"),
    "ImageVolume": _specs("1.31 alpha off", "1.33 beta off", "1.35 beta on", "1.36 ga on locked"),
    "InPlacePodLevelResourcesVerticalScaling": _specs("1.35 alpha off", "1.36 beta on"),
    "InPlacePodVerticalScaling": _specs("1.27 alpha off", "1.33 beta on", "1.35 ga on locked"),
    "InPlacePodVerticalScalingSchedulerPreemption": _specs("1.37 alpha off"),
    "InterPodAffinityHostnameFastPath": _specs("1.37 alpha off"),
    "MatchLabelKeysInPodAffinity": _specs("1.29 alpha off", "1.31 beta on", "1.33 ga on locked"),
    "MatchLabelKeysInPodTopologySpread": _specs("1.25 alpha off", "1.27 beta on"),
    "MatchLabelKeysInPodTopologySpreadSelectorMerge": _specs("1.34 beta on"),
    "MutableCSINodeAllocatableCount": _specs("1.33 alpha off", "1.34 beta off", "1.35 beta on", "1.36 ga on locked"),
    "NodeDeclaredFeatures": _specs("1.35 alpha off", "1.36 beta on", "1.37 ga on locked"),
    "NodeInclusionPolicyInPodTopologySpread": _specs("1.25 alpha off", "1.26 beta on", "1.33 ga on locked"),
    "NominatedNodeNameForExpectation": _specs("1.34 alpha off", "1.35 beta on"),
    "OpportunisticBatching": _specs("1.35 beta on"),
    "PodGroupPreemptionPolicy": _specs("1.37 alpha off"),
    "PodLevelResources": _specs("1.32 alpha off", "1.34 beta on"),
    "SchedulerAsyncAPICalls": _specs("1.34 beta off"),
    "SchedulerAsyncPreemption": _specs("1.32 alpha off", "1.33 beta on"),
    "SchedulerPopFromBackoffQ": _specs("1.33 beta on"),
    "SchedulerPreQueueingHints": _specs("1.37 alpha off"),
    "StorageCapacityScoring": _specs("1.33 alpha off", "1.37 beta on"),
    "TaintTolerationComparisonOperators": _specs("1.35 alpha off"),
    "TopologyAwareWorkloadScheduling": _specs("1.36 alpha off"),
    "VolumeAttributesClass": _specs("1.29 alpha off", "1.31 beta off", "1.34 ga on", "1.36 ga on locked"),
    "VolumeLimitScaling": _specs("1.35 alpha off", "1.37 beta on"),
}
"""Gate to what holds of it, oldest first."""

OWN: Mapping[str, tuple[Spec, ...]] = {
    "DschedCoscheduling": _specs("1.34 alpha off"),
    "DschedDeviceBestFit": _specs("1.34 alpha off"),
    "DschedDevicePreemption": _specs("1.34 alpha off"),
    "DschedGangPlacement": _specs("1.34 alpha off"),
}
"""Gates of dsched's own, in the same form. Their names begin with ``Dsched``, which no gate of upstream does. They are
there in every version, and ``AllAlpha`` does not set them: it asks for what upstream has."""

NO_DECISION = frozenset(
    {
        "InterPodAffinityHostnameFastPath",
        "OpportunisticBatching",
        "SchedulerAsyncAPICalls",
        "SchedulerAsyncPreemption",
        "SchedulerPreQueueingHints",
    }
)
"""Gates about how upstream works inside; dsched decides the same whatever they are."""

ACTED_ON = frozenset(
    {
        "DRAWorkloadResourceClaims",
        "DynamicResourceAllocation",
        "GenericWorkload",
        "InPlacePodLevelResourcesVerticalScaling",
        "InPlacePodVerticalScalingSchedulerPreemption",
        "NodeDeclaredFeatures",
        "StorageCapacityScoring",
        "TaintTolerationComparisonOperators",
        "TopologyAwareWorkloadScheduling",
        "VolumeLimitScaling",
    }
)
"""Gates that can be turned on and off, where upstream lets them be."""

ACTED_ON_SINCE: Mapping[str, Version] = {
    "DRAWorkloadResourceClaims": Version(1, 37),
    "GenericWorkload": Version(1, 37),
    "TopologyAwareWorkloadScheduling": Version(1, 37),
}
"""Gates that cannot be turned on in the versions before, though these have them: pod groups had another API there."""

DEPENDS_ON: Mapping[str, tuple[str, ...]] = {
    "DRAWorkloadResourceClaims": ("DynamicResourceAllocation", "GenericWorkload"),
    "DschedCoscheduling": ("GenericWorkload",),
    "DschedGangPlacement": ("GenericWorkload",),
    "TopologyAwareWorkloadScheduling": ("GenericWorkload",),
}
"""Gates that can be on only together with others.

Source: pkg/features/kube_features.go ``defaultKubernetesFeatureGateDependencies``."""

NOT_YET = frozenset(
    {
        "CompositePodGroup",
        "DRADerivedAttributes",
        "DRADeviceCompatibilityGroups",
        "DRAListTypeAttributes",
        "DRANodeAllocatableResources",
        "DRAOptionalNodeOperations",
        "PodGroupPreemptionPolicy",
    }
)
"""Gates of features that dsched does not have: they can only be off. Of the other gates outside `ACTED_ON` and
`NO_DECISION`, dsched decides as by their default, which cannot be changed."""

_OWN_PREFIX = "Dsched"
_SPECIAL: Mapping[str, Stage] = {"AllAlpha": Stage.ALPHA, "AllBeta": Stage.BETA}
"""They set every gate of a stage that is not set by itself."""

_TRUE, _FALSE = {"1", "t", "T", "true", "TRUE", "True"}, {"0", "f", "F", "false", "FALSE", "False"}


@dataclass(frozen=True, slots=True)
class Features:
    """The version that is emulated, and what is on.

    Attributes:
        given: the gates that were set, by name.
    """

    version: Version
    on: frozenset[str]
    given: tuple[tuple[str, bool], ...] = ()

    def enabled(self, gate: str) -> bool:
        """
        Raises:
            KeyError: there is no such gate at all.
        """
        if gate not in GATES and gate not in OWN:
            raise KeyError(gate)
        return gate in self.on

    def since(self, minor: int) -> bool:
        """Whether this version of Kubernetes 1, or a later one, is emulated."""
        return self.version >= (1, minor)

    @property
    def gates(self) -> list[tuple[str, Stage, bool]]:
        """Every gate of upstream that the version has, its stage, and whether it is on."""
        specs = ((name, spec_at(name, self.version)) for name in GATES)
        return [(name, spec.stage, name in self.on) for name, spec in specs if spec is not None]

    @property
    def own_gates(self) -> list[tuple[str, bool]]:
        """Every gate of dsched's own, and whether it is on."""
        return [(name, name in self.on) for name in OWN]

    def __str__(self) -> str:
        """``1.37``, ``1.37 A=true,B=false``."""
        return " ".join(filter(None, (str(self.version), gates_text(dict(self.given)))))


def spec_at(gate: str, version: Version) -> Spec | None:
    """What holds of a gate in a version; None where the version does not have it."""
    specs = OWN[gate] if gate in OWN else GATES[gate]
    return next((spec for spec in reversed(specs) if spec.since <= version), None)


def features(version: Version, gates: Mapping[str, bool] = MappingProxyType({})) -> Features:
    """What is on in a version with these gates set.

    Raises:
        ConfigError: a gate does not exist in that version, is locked, or dsched cannot do as it says.
    """
    errors = [error for gate, on in gates.items() for error in _refusals(gate, on, version)]
    on = frozenset(_on(version, gates))
    errors += _alone(on)
    if errors:
        raise refused("--feature-gates", errors, "leave these gates out, or emulate another version")
    return Features(version, on, tuple(sorted(gates.items())))


def _on(version: Version, gates: Mapping[str, bool]) -> Iterable[str]:
    wide = {stage: gates[name] for name, stage in _SPECIAL.items() if name in gates}
    for name in GATES:
        spec = spec_at(name, version)
        if spec is None:
            continue
        default = wide.get(spec.stage, spec.on) if _changeable(name, version) and not spec.locked else spec.on
        if gates.get(name, default):
            yield name
    yield from (name for name in OWN if gates.get(name, False))


def _refusals(gate: str, on: bool, version: Version) -> Iterable[str]:
    """Source: ``unsafeSetFromMap``; the last two are dsched's own."""
    if gate in _SPECIAL or gate in OWN:
        return
    said = "true" if on else "false"
    if gate not in GATES:
        known = f" (dsched's own are {', '.join(OWN)})" if gate.startswith(_OWN_PREFIX) else ""
        yield f"unrecognized feature gate: {gate}{known}"
        return
    spec = spec_at(gate, version)
    if spec is None:
        yield f"cannot set feature gate {gate} to {said}, feature is PreAlpha at emulated version {version}"
    elif spec.locked and spec.on != on:
        yield f"cannot set feature gate {gate} to {said}, feature is locked to {str(spec.on).lower()}"
    elif on and gate in NOT_YET:
        yield f"cannot set feature gate {gate} to true, dsched does not have this feature yet"
    elif on and gate in ACTED_ON and version < ACTED_ON_SINCE.get(gate, OLDEST):
        yield f"cannot set feature gate {gate} to true, dsched has this feature as it is since {ACTED_ON_SINCE[gate]}"
    elif spec.on != on and not _changeable(gate, version):
        yield f"cannot set feature gate {gate} to {said}, dsched always decides as if it were {str(spec.on).lower()}"


def _changeable(gate: str, version: Version) -> bool:
    return gate in NO_DECISION or (gate in ACTED_ON and version >= ACTED_ON_SINCE.get(gate, OLDEST))


def _alone(on: frozenset[str]) -> list[str]:
    """Gates that are on without those that they depend on. Source: component-base ``validateDependencies``."""
    missing = {gate: [each for each in needs if each not in on] for gate, needs in DEPENDS_ON.items() if gate in on}
    return [
        f"{gate} is enabled, but depends on features that are disabled: [{' '.join(names)}]"
        for gate, names in missing.items()
        if names
    ]


def parse_gates(text: str) -> dict[str, bool]:
    """``A=true,B=false``, as upstream's flag; a gate that comes twice has its last value.

    Raises:
        ConfigError: it has another form; all that is wrong.
    Source: component-base ``featureGate.Set``.
    """
    found: dict[str, bool] = {}
    errors = []
    for part in filter(None, text.split(",")):
        name, equals, value = part.partition("=")
        name, value = name.strip(), value.strip()
        if not equals:
            errors.append(f"missing bool value for {name}")
        elif value not in _TRUE | _FALSE:
            errors.append(f'invalid value of {name}={value}, err: parsing "{value}": invalid syntax')
        else:
            found[name] = value in _TRUE
    if errors:
        raise refused("--feature-gates", errors, "name them as --feature-gates A=true,B=false")
    return found


def gates_text(gates: Mapping[str, bool]) -> str:
    """As `parse_gates` reads it."""
    return ",".join(f"{name}={str(on).lower()}" for name, on in sorted(gates.items()))


def parse_version(text: str) -> Version:
    """``1.36``, also with the patch (``v1.36.3``).

    Raises:
        ConfigError: it is none of `VERSIONS`.
    """
    found = re.fullmatch(r"v?(\d+)\.(\d+)(\.\d.*)?\+?", text.strip())
    version = Version(int(found[1]), int(found[2])) if found else None
    if version not in VERSIONS:
        known = ", ".join(map(str, VERSIONS))
        raise refused("--emulated-version", [f"{text!r}: expected one of {known}"], "name a version that dsched knows")
    return version


def nearest(version: Version) -> Version:
    """The version that is emulated on a cluster of this version: its own, or the one of `VERSIONS` next to it."""
    return min(max(version, OLDEST), NEWEST)


def refused(source: str, errors: Iterable[str], advice: str) -> ConfigError:
    errors = tuple(errors)
    return ConfigError(
        "\n".join([f"{source}: refused", *(f"  {error}" for error in errors), f"  {advice}"]),
        stage="validation",
        errors=errors,
    )


UNSAID = features(OLDEST, {"DynamicResourceAllocation": False})
"""What is meant where nothing is said: by releases of dsched that did not write down what they emulated, which had no
dynamic resources, and by code that is not told."""
DEFAULT = features(NEWEST)
"""What is emulated where there is no cluster that has a version, and nobody names one."""
