"""The claims of a pod as they stand: why it cannot be scheduled with them at all, else what they need of a node.

Source: pkg/scheduler/framework/plugins/volumebinding/volume_binding.go ``podHasPVCs``; binder.go
``GetPodVolumeClaims``, ``tryTranslatePVToCSI``.
"""

from dsched.arithmetic.claims import Bound, PodClaims, Provisioning, Waiting
from dsched.arithmetic.volumes import Want, reach
from dsched.errors import PluginError
from dsched.framework import interface
from dsched.framework.interface import Code, Status
from dsched.framework.snapshot import Snapshot
from dsched.model import migration, volumes
from dsched.model.pod import Pod
from dsched.model.volumes import LOST, WAIT_FOR_FIRST_CONSUMER, PersistentVolumeClaim
from dsched.plugins.volumes import assumptions
from dsched.plugins.volumes import objects as volume_objects
from dsched.plugins.volumes.assumptions import VolumeAssumptions
from dsched.plugins.volumes.attachments import stranger
from dsched.plugins.volumes.objects import VolumeObjects

UNBOUND_IMMEDIATE = "pod has unbound immediate PersistentVolumeClaims"


def claims_of(pod: Pod, snapshot: Snapshot) -> PodClaims | Status:
    """The pod's claims, as they will be once earlier pods have their volumes; or why the pod fits nowhere with them.

    Raises:
        SelectorError, QuantityError: a claim or a volume holds nonsense.
        PluginError: a volume makes no sense to the driver that took it over.
    """
    objects, assumed = volume_objects.of(snapshot), assumptions.of(snapshot)
    unfit = _unfit(pod, objects)
    if unfit is not None:
        return unfit
    bound: list[Bound | None] = []
    waiting: list[Waiting] = []
    immediate = False
    for use in volumes.claims_of(pod):
        claim = assumed.claim(use.key)
        if claim is None:
            return Status(Code.ERROR, (f'error getting PVC "{use.key}"',))
        if volumes.fully_bound(claim):
            bound.append(_bound(claim.spec.volume_name, objects, assumed))
            continue
        found = _waiting(use.key, claim, objects, assumed)
        if isinstance(found, Status):
            return found
        immediate |= found is None
        waiting += [] if found is None else [found]
    if immediate:
        return interface.unresolvable(UNBOUND_IMMEDIATE)
    return PodClaims(tuple(bound), tuple(waiting))


def _unfit(pod: Pod, objects: VolumeObjects) -> Status | None:
    """What is wrong with the first claim that cannot be used."""
    for use in volumes.claims_of(pod):
        claim = objects.claims.get(use.key)
        reason = ""
        if claim is None and use.ephemeral:
            reason = f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{use.name}"'
        elif claim is None:
            reason = f'persistentvolumeclaim "{use.name}" not found'
        elif claim.status.phase == LOST:
            reason = (
                f'persistentvolumeclaim "{use.name}" bound to non-existent persistentvolume "{claim.spec.volume_name}"'
            )
        elif claim.metadata.deletion_timestamp:
            reason = f'persistentvolumeclaim "{use.name}" is being deleted'
        elif use.ephemeral and not volumes.made_for(claim, pod):
            reason = stranger(use, pod)
        if reason:
            return interface.unresolvable(reason)
    return None


def _bound(name: str, objects: VolumeObjects, assumed: VolumeAssumptions) -> Bound | None:
    offer = assumed.offer(name)
    if offer is None:
        return None
    plugin = migration.plugin_of(offer.volume.spec)
    migrated = objects.migrated_to(plugin.name) if plugin is not None and plugin.served else frozenset()
    if plugin is None or not migrated:
        return Bound(offer.terms)
    try:
        selector = migration.affinity(offer.volume, plugin)
    except PluginError as error:
        raise PluginError(f"could not translate pv: {error}") from error
    return Bound(offer.terms, migrated, reach(selector))


def _waiting(
    key: str, claim: PersistentVolumeClaim, objects: VolumeObjects, assumed: VolumeAssumptions
) -> Waiting | Status | None:
    """A claim that waits for its first consumer; None for one that should be bound by now (``IsDelayBindingMode``)."""
    class_name = volumes.class_of_claim(claim)
    storage_class = objects.classes.get(class_name) if class_name else None
    if storage_class is None:
        return None
    if storage_class.volume_binding_mode is None:
        return Status(Code.ERROR, (f'VolumeBindingMode not set for StorageClass "{class_name}"',))
    if storage_class.volume_binding_mode != WAIT_FOR_FIRST_CONSUMER or claim.spec.volume_name:
        return None
    driver = objects.drivers.get(storage_class.provisioner)
    tells = driver is not None and driver.spec.storage_capacity is True
    provisioning = Provisioning(claim, storage_class, objects.capacities.every() if tells else None)
    return Waiting(key, Want(claim), assumed.offers_of(class_name), provisioning)
