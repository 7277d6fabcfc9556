"""Kinds that the model has no record of, as typed records, as far as their manifests are checked."""

from dsched.model.meta import ApiRecord, Int32, LabelSelector, ObjectMeta
from dsched.model.pod_groups import PodGroupSpec, PodGroupStatus
from dsched.model.resource_claims import ResourceClaimSpec


class Bare(ApiRecord, frozen=True):
    """An object of which only the metadata is checked."""

    metadata: ObjectMeta = ObjectMeta()


class TemplateMeta(ApiRecord, frozen=True):
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class Template(ApiRecord, frozen=True):
    """Of pods: a ReplicationController without a selector has the template's labels."""

    metadata: TemplateMeta = TemplateMeta()


class ServiceSpec(ApiRecord, frozen=True):
    selector: dict[str, str] = {}


class Service(Bare, frozen=True):
    spec: ServiceSpec = ServiceSpec()


class ReplicationControllerSpec(ServiceSpec, frozen=True):
    template: Template = Template()


class ReplicationController(Bare, frozen=True):
    """Selects by plain labels, as a Service does."""

    spec: ReplicationControllerSpec = ReplicationControllerSpec()


class WorkloadSpec(ApiRecord, frozen=True):
    selector: LabelSelector | None = None


class Workload(Bare, frozen=True):
    """A ReplicaSet or StatefulSet."""

    spec: WorkloadSpec = WorkloadSpec()


class DisruptionBudgetSpec(ApiRecord, frozen=True):
    selector: LabelSelector | None = None
    min_available: Int32 | str | None = None
    max_unavailable: Int32 | str | None = None


class DisruptionBudgetStatus(ApiRecord, frozen=True):
    disruptions_allowed: Int32 = 0
    disrupted_pods: dict[str, str] = {}


class DisruptionBudget(Bare, frozen=True):
    spec: DisruptionBudgetSpec = DisruptionBudgetSpec()
    status: DisruptionBudgetStatus = DisruptionBudgetStatus()


class PriorityClass(Bare, frozen=True):
    value: Int32 = 0
    global_default: bool = False
    preemption_policy: str | None = None


class ClaimTemplateSpec(ApiRecord, frozen=True):
    metadata: TemplateMeta = TemplateMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()


class ClaimTemplate(Bare, frozen=True):
    """A ResourceClaimTemplate."""

    spec: ClaimTemplateSpec = ClaimTemplateSpec()


class WorkloadReference(ApiRecord, frozen=True):
    workload_name: str = ""
    template_name: str = ""


class GroupSpec(PodGroupSpec, frozen=True):
    """What scheduling reads of a pod group, and the rest."""

    parent_composite_pod_group_name: str | None = None
    workload_ref: WorkloadReference | None = None
    preemption_policy: str | None = None


class Group(Bare, frozen=True):
    """A PodGroup."""

    spec: GroupSpec = GroupSpec()
    status: PodGroupStatus = PodGroupStatus()
