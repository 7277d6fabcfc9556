"""Claims that have their devices already: the nodes on which these can be used, and whether they are ready for pods.

Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go ``isClaimReadyForBinding``,
``isClaimTimeout``, ``nodeSelectorFromAllocation``.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from dsched.model import node_selectors
from dsched.model.node import Node
from dsched.model.node_selectors import Term
from dsched.model.resource_claims import AllocatedDevice, Allocation, Condition, DeviceStatus, ResourceClaim

_TRUE = "True"


class Readiness(NamedTuple):
    """Whether the devices of a claim are ready to be bound to.

    Attributes:
        failure: why they will not be, as upstream says it; "" otherwise.
    """

    ready: bool
    failure: str = ""


class HeldClaim:
    """A claim with devices.

    Attributes:
        promised: it was promised them in this group cycle, and does not show them yet.

    Raises:
        SelectorError: the allocation's node selector is no legal one.
    """

    def __init__(self, record: ResourceClaim, allocation: Allocation, *, promised: bool = False) -> None:
        self.record = record
        self.allocation = allocation
        self.promised = promised
        selector = allocation.node_selector
        self._terms: tuple[Term, ...] | None = None if selector is None else node_selectors.strict_terms(selector)

    def reaches(self, node: Node) -> bool:
        """Whether the devices can be used on the node."""
        return self._terms is None or any(term.matches(node.metadata.labels, node.name) for term in self._terms)


def given_up(claim: ResourceClaim, now_ms: int, timeout_s: float) -> bool:
    """Whether the devices of a claim should be taken away again, since they failed, or were not ready in time."""
    found = readiness(claim)
    return bool(found.failure) or (not found.ready and overdue(claim, now_ms, timeout_s))


def readiness(claim: ResourceClaim) -> Readiness:
    """Whether all binding conditions of a claim's devices are met."""
    allocation = claim.status.allocation
    if allocation is None:
        return Readiness(False)
    for device in allocation.devices.results:
        if not device.binding_conditions:
            continue
        status = _status(claim.status.devices, device)
        if status is None:
            return Readiness(False)
        failed = next(
            (found for each in device.binding_failure_conditions if (found := _condition(status, each)) is not None),
            None,
        )
        if failed is not None:
            name = claim.metadata.name
            text = f'claim={name}, reason={failed.reason}, message="{failed.message}"'
            return Readiness(False, f"device binding failed: {text}")
        if any(_condition(status, each) is None for each in device.binding_conditions):
            return Readiness(False)
    return Readiness(True)


def overdue(claim: ResourceClaim, now_ms: int, timeout_s: float) -> bool:
    """Whether a claim with binding conditions has had its devices for longer than that, to the second."""
    allocation = claim.status.allocation
    if allocation is None or not allocation.allocation_timestamp or not waits(allocation):
        return False
    since = datetime.fromisoformat(allocation.allocation_timestamp).timestamp()
    return since + timeout_s <= now_ms / 1000


def waits(allocation: Allocation) -> bool:
    """Whether any device has conditions that have to be met before its pod is bound."""
    return any(device.binding_conditions for device in allocation.devices.results)


def _status(statuses: Sequence[DeviceStatus], device: AllocatedDevice) -> DeviceStatus | None:
    return next((each for each in statuses if (each.driver, each.pool, each.device) == device.id), None)


def _condition(status: DeviceStatus, kind: str) -> Condition | None:
    """A condition that holds."""
    return next((each for each in status.conditions if each.type == kind and each.status == _TRUE), None)
