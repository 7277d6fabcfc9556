"""What checks find."""

from dataclasses import dataclass
from enum import StrEnum


class Invariant(StrEnum):
    """The invariants of ``docs/architecture.md`` that are checked."""

    ONE_PLACE = "I1"
    BOUND_ONCE = "I2"
    NO_OVERCOMMIT = "I3"
    NOTHING_LOST = "I4"
    FENCING = "I5"
    RELEASED_ONCE = "I6"
    DEVICES = "I12"
    GANGS = "I13"
    LIMITS = "I14"


class Kind(StrEnum):
    """What a finding is about."""

    POD = "pod"
    NODE = "node"
    UID = "uid"
    DEVICE = "device"
    GROUP = "podgroup"
    QUEUE = "queue"
    SYSTEM = "system"


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is not as it should be.

    Attributes:
        subject: key of the pod or the pod group, name of the node, uid of a reservation, a device; ``leader`` for the
            system. A pod group as the queue has it is a pod with the key ``podgroup/namespace/name``.
        rule: which check, with what must not have changed for two findings to be the same.
        message: for people.
        heard: the cluster's version that the leader must have taken in for this to be a fault; 0 for none.
        breach: False for what the scheduler is not to blame for, but people should know.
    """

    invariant: Invariant
    kind: Kind
    subject: str
    rule: str
    message: str
    heard: int = 0
    breach: bool = True

    @property
    def identity(self) -> tuple[Invariant, str, str]:
        """Equal for findings of the same thing at different times."""
        return self.invariant, self.subject, self.rule

    def __str__(self) -> str:
        return f"{self.invariant} {self.subject}: {self.message}"


def of_pod(invariant: Invariant, key: str, rule: str, message: str, heard: int = 0) -> Finding:
    """A breach by a pod."""
    return Finding(invariant, Kind.POD, key, rule, message, heard)
