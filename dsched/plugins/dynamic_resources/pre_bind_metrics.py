"""What PreBind tells kube-scheduler's metrics about devices, under the names that the emulated version has.

Source: pkg/scheduler/framework/plugins/dynamicresources/{dynamicresources.go ``PreBind``,
extendeddynamicresources.go ``createExtendedResourceClaimInAPI``}, of 1.35 to 1.37.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from dsched import metrics
from dsched.config import Features
from dsched.model.resource_claims import ResourceClaim

Ending = Literal["success", "failure", "timeout", "error"]
"""How the wait for binding conditions ended: they are met, one says that the device failed, they were not met in time,
or nobody could tell."""


@dataclass(frozen=True, slots=True)
class PreBindMetrics:
    """Counts for the pods of a profile."""

    profile: str
    features: Features

    def creation(self, made: bool | None) -> None:
        """A claim for extended resources was made, or could not be; None where nobody tried."""
        if made is None:
            return
        status = "success" if made else "failure"
        if self.features.since(37):
            metrics.CLAIMS_CREATED.labels(status, "false", "", "Pod").inc()
        elif self.features.since(35):
            metrics.CLAIMS_CREATED_BEFORE_1_37.labels(status).inc()

    def wait(self, claims: Iterable[ResourceClaim], ending: Ending, seconds: float) -> None:
        """A pod with these claims has waited so long, and no longer does. All its devices tell how long, those with
        binding conditions count."""
        if not self.features.since(36):
            return
        for claim in claims:
            allocation = claim.status.allocation
            for device in [] if allocation is None else allocation.devices.results:
                labels = self.profile, device.driver, ending
                metrics.BINDING_CONDITIONS_WAIT.labels(*labels).observe(seconds)
                if device.binding_conditions:
                    metrics.BINDING_CONDITIONS_ALLOCATIONS.labels(*labels).inc()
