"""The version and the feature gates that a workload is run with.

Source: kubernetes v1.37 test/integration/scheduler_perf/scheduler_perf.go ``setupTestCase``.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from dsched.config import feature_gates
from dsched.config.feature_gates import NEWEST, NO_DECISION, Features, Version
from dsched.emulation import Asked
from dsched.errors import ConfigError

_DECLARED = "NodeDeclaredFeatures"


@dataclass(frozen=True, slots=True)
class Emulated:
    """What a workload's gates come to.

    Attributes:
        asked: what its system is asked to emulate.
        without_effect: gates of the workload that dsched does not know or cannot set so, and those that it decides the
            same with.
    """

    asked: Asked
    without_effect: Mapping[str, bool]

    @property
    def features(self) -> Features:
        """What is on."""
        return self.asked.on()


def emulated(gates: Mapping[str, bool]) -> Emulated:
    """The newest version with those of the gates that dsched can set.

    NodeDeclaredFeatures can only be off in a version before 1.37, so that 1.36 is taken for it, as upstream does.
    """
    version = Version(1, 36) if gates.get(_DECLARED) is False else NEWEST
    can = {gate: on for gate, on in gates.items() if _can(version, gate, gates)}
    without = {gate: on for gate, on in gates.items() if gate not in can or gate in NO_DECISION}
    return Emulated(Asked(version, tuple(sorted(can.items()))), without)


def _can(version: Version, gate: str, gates: Mapping[str, bool]) -> bool:
    """Whether a gate can be set as these say, with those among them that it needs."""
    needed = [each for each in feature_gates.DEPENDS_ON.get(gate, ()) if each in gates]
    try:
        feature_gates.features(version, {each: gates[each] for each in (gate, *needed)})
    except ConfigError:
        return False
    return True
