"""What every object carries: names, labels, owners; and how objects are decoded."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, NewType, TypeVar

import msgspec

if TYPE_CHECKING:
    PodKey = NewType("PodKey", str)
    """``namespace/name`` of a pod."""
    PodUid = NewType("PodUid", str)
    NodeName = NewType("NodeName", str)
else:  # as what NewType makes, but a call of it takes a quarter of the time, and each pod has dozens
    PodKey = PodUid = NodeName = str
NO_NODE = NodeName("")

Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
"""Integers as the API has them: a record with any other is no such object."""


class ApiRecord(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """Base of the API records: immutable, camelCase on the wire, defaults left out."""


class OwnerReference(ApiRecord, frozen=True):
    """An owner of an object; at most one of them is its controller."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class ObjectMeta(ApiRecord, frozen=True):
    """metadata of an object, as far as it is read."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    creation_timestamp: str = ""
    deletion_timestamp: str = ""
    owner_references: list[OwnerReference] = []


class LabelSelectorRequirement(ApiRecord, frozen=True):
    """``key operator values``; operators In, NotIn, Exists, DoesNotExist, and Gt, Lt for nodes."""

    key: str = ""
    operator: str = ""
    values: list[str] = []


class LabelSelector(ApiRecord, frozen=True):
    """Labels and expressions that all have to match."""

    match_labels: dict[str, str] = {}
    match_expressions: list[LabelSelectorRequirement] = []


def key_of(value: Mapping[str, Any]) -> str:
    """``namespace/name`` of an object as JSON readers give it; its name where it has no namespace."""
    metadata = value["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}" if metadata.get("namespace") else str(metadata["name"])


Record = TypeVar("Record", bound=ApiRecord)

_encoder = msgspec.json.Encoder()

_STRING_MAPS = frozenset({"labels", "annotations", "matchLabels", "nodeSelector", "selector"})
_QUANTITY_MAPS = frozenset({"requests", "limits", "overhead", "allocatable", "capacity", "allocatedResources"})
_OBJECT_MAPS = frozenset({"attributes", "counters"})
_MAPS = _STRING_MAPS | _QUANTITY_MAPS | _OBJECT_MAPS
_FIELDS = {
    "allocatable": {"count"},
    "capacity": {"requests"},
    "selector": {"matchLabels", "matchExpressions"},
    "nodeSelector": {"nodeSelectorTerms"},
}
"""Of fields that are no maps in some kinds (CSINode, ResourceClaim, what selects, ResourceSlice): what is in them."""
_OPAQUE = "parameters"
"""What is in here is somebody else's, nulls as well."""
_STRING_LISTS = frozenset({"values", "namespaces", "names", "matchLabelKeys", "mismatchLabelKeys"})


def without_nulls(value: Any, key: str = "") -> Any:
    """Read explicit nulls as Go's JSON decoder does: a null field keeps its zero value, and so does a null item of a
    list or a map: ``""``, ``"0"`` or an empty object."""
    if isinstance(value, dict):
        if key == _OPAQUE:
            return value
        if key in _MAPS and not value.keys() & _FIELDS.get(key, frozenset()):
            zero = _zero(key, value)
            return {name: zero if item is None else without_nulls(item, name) for name, item in value.items()}
        return {name: without_nulls(item, name) for name, item in value.items() if item is not None}
    if isinstance(value, list):
        empty: Any = "" if key in _STRING_LISTS else {}
        return [empty if item is None else without_nulls(item) for item in value]
    return value


def _zero(key: str, value: Mapping[str, Any]) -> Any:
    """What a null item of a map is; the capacity of a device is one of objects."""
    if key in _OBJECT_MAPS or any(isinstance(item, dict) for item in value.values()):
        return {}
    return "" if key in _STRING_MAPS else "0"


def from_builtins(value: Any, kind: type[Record]) -> Record:
    """Build a record from an object as JSON or YAML readers give it.

    Raises:
        msgspec.ValidationError: a field has the wrong type; the message ends with its path.
    """
    return msgspec.convert(value if _has_no_nulls(value) else without_nulls(value), kind)


def decoded(raw: Mapping[str, Any], kind: type[Record]) -> Record:
    """As `from_builtins`, sooner where there are no explicit nulls, which are rare."""
    try:
        return msgspec.convert(raw, kind)
    except msgspec.ValidationError:
        return from_builtins(raw, kind)


def _has_no_nulls(value: Any) -> bool:
    """Whether there is surely none, as nearly everywhere: written out by C it is looked through sooner than here."""
    try:
        return b"null" not in _encoder.encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError):  # what JSON does not have is told elsewhere
        return False


def from_json(raw: bytes | str, kind: type[Record]) -> Record:
    """Decode a record from JSON; explicit nulls, which are rare, take a slower second way.

    Raises:
        msgspec.ValidationError, msgspec.DecodeError: as the decoder words them.
    """
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.ValidationError:
        return from_builtins(msgspec.json.decode(raw), kind)
