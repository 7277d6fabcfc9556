"""Allocations as they are written into the status of claims.

Source: structured/internal/incubating/allocator_incubating.go ``Allocate``, ``createNodeSelector``.
"""

import uuid
from collections.abc import Sequence
from typing import Any

import msgspec

from dsched.model.meta import LabelSelectorRequirement, NodeName
from dsched.model.node_selectors import NAME_FIELD
from dsched.model.pod import NodeSelector, NodeSelectorTerm
from dsched.model.resource_claims import (
    FROM_CLAIM,
    FROM_CLASS,
    AllocatedConfiguration,
    AllocatedDevice,
    AllocatedDevices,
    Allocation,
    ResourceClaim,
)
from dsched.model.selectors import IN
from dsched.plugins.dynamic_resources.allocation.failures import AllocationError
from dsched.plugins.dynamic_resources.allocation.features import AllocatorFeatures
from dsched.plugins.dynamic_resources.allocation.requests import Request, Wanted
from dsched.plugins.dynamic_resources.allocation.search import Taken
from dsched.plugins.dynamic_resources.allocation.slices import OfferedDevice

_SHARES = uuid.UUID("6a3f1f0e-6c0c-4a55-9e0d-5b1d8b9f6a41")
"""Shares are named after their claim and their place in it, so that the same decision gives the same names."""


class Chosen(msgspec.Struct, frozen=True):
    """A request and what of it was met."""

    request: Request
    wanted: Wanted

    @property
    def names(self) -> tuple[str, ...]:
        """What configurations call it: the request, and the alternative."""
        name = self.request.record.name
        return (name, self.wanted.full_name) if self.request.prioritized else (name,)


def allocation(
    claim: ResourceClaim,
    taken: Sequence[Taken],
    devices: Sequence[OfferedDevice],
    chosen: Sequence[Chosen],
    node: NodeName,
    features: AllocatorFeatures,
) -> dict[str, Any]:
    """What a claim gets, as ``status.allocation``.

    Args:
        devices: for each of ``taken``, the device.
        chosen: the claim's requests.

    Raises:
        AllocationError: a slice has a node selector that no allocation can take over.
    """
    results = [
        _result(claim, each, device, number, features)
        for number, (each, device) in enumerate(zip(taken, devices, strict=True))
    ]
    config = _config_1_34(claim, chosen) if features.class_config_for_all else _config(claim, chosen)
    try:
        selector = _node_selector(devices, node)
    except AllocationError as error:
        raise AllocationError(f"create NodeSelector for claim {claim.metadata.name}: {error}") from error
    found: dict[str, Any] = msgspec.to_builtins(Allocation(AllocatedDevices(results, config), selector))
    return found


def _result(
    claim: ResourceClaim, taken: Taken, device: OfferedDevice, number: int, features: AllocatorFeatures
) -> AllocatedDevice:
    record, wanted = device.record, taken.wanted
    share = None
    if taken.consumed is not None:
        share = str(uuid.uuid5(_SHARES, f"{claim.key} {claim.metadata.uid} {number} {device.id}"))
    return AllocatedDevice(
        request=wanted.full_name,
        driver=device.id.driver,
        pool=device.id.pool,
        device=device.id.device,
        admin_access=True if wanted.admin else None,
        tolerations=wanted.requirements.tolerations if features.tolerations_in_results else [],
        binding_conditions=record.binding_conditions if features.binding_conditions else [],
        binding_failure_conditions=record.binding_failure_conditions if features.binding_conditions else [],
        share_id=share,
        consumed_capacity=dict(taken.consumed) if taken.consumed else None,
    )


def _config(claim: ResourceClaim, chosen: Sequence[Chosen]) -> list[AllocatedConfiguration]:
    """Those of each class once, with the requests that they are for, then those of the claim. One that is for all
    requests names none."""
    of_class: dict[str, list[str]] = {}
    for each in chosen:
        of_class.setdefault(each.wanted.cls.metadata.name, []).append(each.wanted.full_name)
    classes = {each.wanted.cls.metadata.name: each.wanted.cls for each in chosen}
    found = [
        AllocatedConfiguration(FROM_CLASS, requests, config.opaque)
        for name, requests in of_class.items()
        for config in classes[name].spec.config
    ]
    for config in claim.spec.devices.config:
        if not config.requests or any(_named(each, config.requests) for each in chosen):
            found.append(AllocatedConfiguration(FROM_CLAIM, config.requests, config.opaque))
    return [
        msgspec.structs.replace(each, requests=[]) if all(_named(one, each.requests) for one in chosen) else each
        for each in found
    ]


def _config_1_34(claim: ResourceClaim, chosen: Sequence[Chosen]) -> list[AllocatedConfiguration]:
    """Those of the class for each request, then those of the claim, once for each request that they name."""
    found = [
        AllocatedConfiguration(FROM_CLASS, [], config.opaque)
        for each in chosen
        for config in each.wanted.cls.spec.config
    ]
    for config in claim.spec.devices.config:
        times = sum(_named(each, config.requests) for each in chosen) if config.requests else 1
        found += [AllocatedConfiguration(FROM_CLAIM, config.requests, config.opaque)] * times
    return found


def _named(chosen: Chosen, requests: Sequence[str]) -> bool:
    return any(name in requests for name in chosen.names)


def _node_selector(devices: Sequence[OfferedDevice], node: NodeName) -> NodeSelector | None:
    """Where the devices can be used: on one node, as soon as one of them is tied to it, else where all of them reach;
    None for everywhere."""
    labels: dict[tuple[str, str, frozenset[str]], LabelSelectorRequirement] = {}
    fields: dict[tuple[str, str, frozenset[str]], LabelSelectorRequirement] = {}
    for device in devices:
        of = device.record if device.slice.per_device else device.slice.record.spec
        if of.node_name is not None or device.record.binds_to_node:
            only = LabelSelectorRequirement(NAME_FIELD, IN, [node])
            return NodeSelector([NodeSelectorTerm(match_fields=[only])])
        terms = [] if of.node_selector is None else of.node_selector.node_selector_terms
        if len(terms) > 1:
            raise AllocationError(f"unsupported ResourceSlice.NodeSelector with {len(terms)} terms")
        for term in terms:
            _add(term.match_fields, fields)
            _add(term.match_expressions, labels)
    if not labels and not fields:
        return None
    return NodeSelector([NodeSelectorTerm([*labels.values()], [*fields.values()])])


def _add(
    requirements: Sequence[LabelSelectorRequirement],
    to: dict[tuple[str, str, frozenset[str]], LabelSelectorRequirement],
) -> None:
    for each in requirements:
        to.setdefault((each.key, each.operator, frozenset(each.values)), each)
