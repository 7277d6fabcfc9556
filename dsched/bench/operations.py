"""The operations of scheduler_perf as records, parameters put in.

Source: kubernetes v1.37 test/integration/scheduler_perf/operations.go.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from dsched.config import durations
from dsched.errors import ConfigError, DschedError


class Unsupported(DschedError):
    """A workload asks for what is not built."""


class Operation(msgspec.Struct, rename="camel", frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What all operations have.

    Attributes:
        opcode: the name in the files.
    """

    opcode: str


class Counted(Operation, frozen=True, kw_only=True):
    """An operation over so many objects."""

    count: int = 0
    count_param: str = ""
    template_params: Mapping[str, Any] = {}


class NodeAllocatable(msgspec.Struct, rename="camel", frozen=True):
    """Sets allocatable resources, and makes a CSINode for each node."""

    node_allocatable: Mapping[str, str] = {}
    csi_node_allocatable: Mapping[str, Mapping[str, Any]] = {}
    migrated_plugins: Sequence[str] = ()


class LabelNodes(msgspec.Struct, rename="camel", frozen=True):
    """Gives nodes a label, its values in turn."""

    label_key: str
    label_values: Sequence[str]


class UniqueLabel(msgspec.Struct, rename="camel", frozen=True):
    """Gives each node a label with a value of its own."""

    label_key: str


class CreateNodes(Counted, frozen=True, kw_only=True):
    """Nodes, from a template or upstream's built-in one."""

    node_template_path: str | None = None
    node_allocatable_strategy: NodeAllocatable | None = None
    label_node_prepare_strategy: LabelNodes | None = None
    unique_node_label_strategy: UniqueLabel | None = None


class CreateNamespaces(Counted, frozen=True, kw_only=True):
    """Namespaces ``PREFIX-0``, ``PREFIX-1`` …"""

    prefix: str
    namespace_template_path: str | None = None


class CreatePods(Counted, frozen=True, kw_only=True):
    """Pods, as fast as they can be written; in a steady state for a time, a new one for each that was bound.

    Attributes:
        signature_batch_size: so many pods in a row have the same label ``signature``; 0 as 1.
        count_multiplier: so many times ``count`` pods are made.
    """

    namespace: str | None = None
    pod_template_path: str | None = None
    persistent_volume_template_path: str | None = None
    persistent_volume_claim_template_path: str | None = None
    collect_metrics: bool = False
    skip_wait_to_completion: bool = False
    steady_state: bool = False
    steady_state_param: str = ""
    duration: str = ""
    duration_param: str = ""
    signature_batch_size: int = 1
    signature_batch_size_param: str = ""
    count_multiplier: int = 1
    count_multiplier_param: str = ""


class CreatePodSets(Counted, frozen=True, kw_only=True):
    """The same pods in each of several namespaces."""

    namespace_prefix: str
    create_pods_op: CreatePods

    def unrolled(self) -> list[Operation]:
        """One operation a namespace."""
        return [
            msgspec.structs.replace(self.create_pods_op, namespace=f"{self.namespace_prefix}-{number}")
            for number in range(self.count)
        ]


class DeletePods(Operation, frozen=True, kw_only=True):
    """Deletes pods that are there now, at once or so many a second."""

    namespace: str
    label_selector: Mapping[str, str] = {}
    skip_wait_to_completion: bool = False
    delete_pods_per_second: int = 0


class Churn(Operation, frozen=True, kw_only=True):
    """Creates objects at intervals until the workload ends; ``recreate`` deletes them again in turn."""

    mode: str
    template_paths: Sequence[str]
    number: int = 0
    interval_milliseconds: int = 500
    namespace: str | None = None


class Barrier(Operation, frozen=True, kw_only=True):
    """Waits for pods that were created without waiting: until they are bound, or were tried once."""

    namespaces: Sequence[str] = ()
    label_selector: Mapping[str, str] = {}
    stage_requirement: str = "Scheduled"


class Sleep(Operation, frozen=True, kw_only=True):
    """Does nothing for a while."""

    duration: str = ""
    duration_param: str = ""


class CreateAny(Counted, frozen=True, kw_only=True):
    """Objects of any kind from a template."""

    template_path: str
    namespace: str = ""
    count: int = 1


class CreatePodGroups(CreateAny, frozen=True, kw_only=True):
    """Pod groups from a template."""


class UpdateAny(CreateAny, frozen=True, kw_only=True):
    """Writes objects anew from a template, at once or so many a second."""

    update_per_second: int = 0
    subresources: Sequence[str] = ()


class AllocResourceClaims(Operation, frozen=True, kw_only=True):
    """Gives the claims of a namespace devices of nodes drawn by chance."""

    namespace: str


class StartCollectingMetrics(Operation, frozen=True, kw_only=True):
    """Counts the pods of some namespaces from here on."""

    namespaces: Sequence[str]
    name: str = ""
    label_selector: Mapping[str, str] = {}


class StopCollectingMetrics(Operation, frozen=True, kw_only=True):
    """Ends it."""


KNOWN: Mapping[str, type[Operation]] = {
    "createNodes": CreateNodes,
    "createNamespaces": CreateNamespaces,
    "createPods": CreatePods,
    "createPodSets": CreatePodSets,
    "deletePods": DeletePods,
    "churn": Churn,
    "barrier": Barrier,
    "sleep": Sleep,
    "createAny": CreateAny,
    "createPodGroups": CreatePodGroups,
    "updateAny": UpdateAny,
    "allocResourceClaims": AllocResourceClaims,
    "startCollectingMetrics": StartCollectingMetrics,
    "stopCollectingMetrics": StopCollectingMetrics,
}


def read(raw: Mapping[str, Any], params: Mapping[str, Any], origin: str) -> Operation:
    """An operation as it stands in a file, its parameters put in.

    Raises:
        ConfigError: it cannot be read, or names a parameter that there is not.
        Unsupported: it is not built.
    """
    opcode = str(raw.get("opcode"))
    if opcode not in KNOWN:
        raise Unsupported(f"{origin}: {opcode} is not known")
    try:
        operation = msgspec.convert(_filled_in(raw, params, origin), KNOWN[opcode])
    except msgspec.ValidationError as error:
        raise ConfigError(f"{origin} ({opcode}): {error}") from error
    _check(operation, origin)
    if isinstance(operation, CreatePods) and operation.count_multiplier > 1:
        count = operation.count * operation.count_multiplier
        return msgspec.structs.replace(operation, count=count, count_multiplier=1)
    return operation


def duration_s(operation: Sleep | CreatePods) -> float:
    """Seconds of an operation that lasts a time."""
    return durations.parse(operation.duration) / durations.SECOND


def _filled_in(raw: Mapping[str, Any], params: Mapping[str, Any], origin: str) -> dict[str, Any]:
    """``countParam: $n`` becomes ``count``; the same for every field of which there is such a twin."""
    found = dict(raw)
    for field, given in raw.items():
        if isinstance(given, Mapping) and "opcode" in given:
            found[field] = _filled_in(given, params, origin)
        elif field == "templateParams":
            found[field] = {name: _resolved(value, params, origin) for name, value in given.items()}
        elif field.endswith("Param"):
            found[field.removesuffix("Param")] = _resolved(given, params, origin)
    return found


def _resolved(given: Any, params: Mapping[str, Any], origin: str) -> Any:
    """The value of ``$NAME``; of ``$NAME|DEFAULT``, as upstream has it since v1.37, the default where there is none."""
    if not isinstance(given, str) or not given.startswith("$"):
        return given
    name, has_default, default = given[1:].partition("|")
    if name in params:
        return params[name]
    if not has_default:
        raise ConfigError(f"{origin}: there is no parameter {given}; there are {', '.join(params) or 'none'}")
    return default


def _check(operation: Operation, origin: str) -> None:
    wrong = ""
    if isinstance(operation, CreatePods):
        if operation.collect_metrics and operation.skip_wait_to_completion:
            wrong = "collectMetrics and skipWaitToCompletion exclude each other"
        if operation.steady_state and operation.skip_wait_to_completion:
            wrong = "steadyState and skipWaitToCompletion exclude each other"
        if operation.steady_state and not operation.duration:
            wrong = "steadyState needs a duration"
        if operation.signature_batch_size < 0:
            wrong = f"signatureBatchSize: {operation.signature_batch_size} is negative"
        if operation.count_multiplier < 1:
            wrong = f"countMultiplier: {operation.count_multiplier} is not above 0"
    elif isinstance(operation, Barrier) and operation.stage_requirement not in ("Scheduled", "Attempted"):
        wrong = f'stageRequirement: "{operation.stage_requirement}" is neither Scheduled nor Attempted'
    elif isinstance(operation, Churn):
        if operation.mode not in ("create", "recreate"):
            wrong = f'mode: "{operation.mode}" is neither create nor recreate'
        elif operation.mode == "recreate" and operation.number <= 0:
            wrong = "number: must be positive in mode recreate"
    if wrong:
        raise ConfigError(f"{origin}: {wrong}")
