"""What of dynamic resources is on, and what the emulated version does otherwise than the newest one.

Source: k8s.io/dynamic-resource-allocation structured/internal/types.go ``Features``; the versions' own allocators.
"""

from dataclasses import dataclass

from dsched.config import Features


@dataclass(frozen=True, slots=True)
class AllocatorFeatures:
    """
    Attributes:
        counters_everywhere: slices of shared counters reach every node: where their pool is incomplete or invalid, no
            node can meet a request for all devices, and those without devices say so (in 1.35 and 1.36).
        all_but_full: a request for all devices leaves those out of whose capacity too little is left (in 1.36); else it
            cannot be met.
        capacity_refused: requests for capacity are an error where capacity is not consumed (until 1.34; in 1.35 they
            ask for nothing).
        fractional_ranges: ranges of capacities may have fractions.
        waiting_pools_last: pools come last that have devices with binding conditions, whether these count or not
            (not in 1.35, whose default gates are those of upstream's allocator that does not look at them).
        partial_pools: pools are judged by the slices that reach the node, those with such devices after the others,
            incomplete ones give what they have, and an invalid one ends the attempt (until 1.34).
        class_config_for_all: configurations of classes are listed for every request, without its name; those of claims
            once for each request that they name (until 1.34).
        tolerations_in_results: since 1.35.
        limit_per_claim: the sum of a claim's devices is judged, not each request (until 1.36).
        device_in_errors: failing selectors name the device (since 1.37).
        best_fit: of the devices that would do, those are chosen that leave the least waste (dsched's own gate).
    """

    admin_access: bool = True
    prioritized_list: bool = True
    partitionable_devices: bool = True
    device_taints: bool = True
    device_taint_rules: bool = True
    binding_conditions: bool = True
    waiting_pools_last: bool = True
    counters_everywhere: bool = False
    consumable_capacity: bool = True
    all_but_full: bool = False
    capacity_refused: bool = False
    fractional_ranges: bool = True
    partial_pools: bool = False
    class_config_for_all: bool = False
    tolerations_in_results: bool = True
    limit_per_claim: bool = False
    device_in_errors: bool = True
    best_fit: bool = False


def of(features: Features) -> AllocatorFeatures:
    """What a version of kube-scheduler has on.

    Source: structured/allocator.go ``NewAllocator``, which takes the oldest allocator that has all that is on.
    """
    conditions = features.enabled("DRADeviceBindingConditions") and features.enabled("DRAResourceClaimDeviceStatus")
    taints = features.enabled("DRADeviceTaints")
    return AllocatorFeatures(
        admin_access=features.enabled("DRAAdminAccess"),
        prioritized_list=features.enabled("DRAPrioritizedList"),
        partitionable_devices=features.enabled("DRAPartitionableDevices"),
        device_taints=taints,
        device_taint_rules=taints and features.enabled("DRADeviceTaintRules"),
        binding_conditions=conditions,
        waiting_pools_last=features.since(36) or not features.since(35),
        counters_everywhere=(
            features.enabled("DRAPartitionableDevices") and features.since(35) and not features.since(37)
        ),
        consumable_capacity=features.enabled("DRAConsumableCapacity"),
        all_but_full=not features.since(37),
        capacity_refused=not features.since(35),
        fractional_ranges=features.enabled("DRAFractionalCapacityRange"),
        partial_pools=not features.since(35),
        class_config_for_all=not features.since(35),
        tolerations_in_results=features.since(35),
        limit_per_claim=not features.since(37),
        device_in_errors=features.since(37),
        best_fit=features.enabled("DschedDeviceBestFit"),
    )
