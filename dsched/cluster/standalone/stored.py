"""How objects stand in Redis, and how what is kept apart from a pod's manifest is merged into it when it is read.

A stored object begins ``{"apiVersion":…,"kind":…,"metadata":{"resourceVersion":"N","uid":"…"``, so that scripts find
its version without decoding it. What changes often about a pod (node, phase) stands in its state line; what the
scheduler wrote about a pending pod, in its status.
"""

from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from sys import intern
from typing import Any, NamedTuple

import msgspec

from dsched.cluster import sound
from dsched.manifests import kinds
from dsched.model.meta import ApiRecord, ObjectMeta, OwnerReference, PodUid, from_json
from dsched.model.pod import Pod, PodCondition, PodSpec, PodStatus

SCRIPTS = Path(__file__).parent / "scripts"

POD_SCHEDULED = "PodScheduled"
PENDING = "Pending"
_NOTHING = "-"
_WAITS = " - 0 - - Pending "
"""What a state line says of most pods, between UID and version."""
SPECS = 4096
"""Specs that are kept as they were read; so many sets of labels, owners and statuses, too."""
TIMES = 64
"""Times that are kept as they were written: all that is written in one call has the same."""

Object = dict[str, Any]


class PodState(NamedTuple):
    """A pod's state line: short, so that scripts and people read it at a glance."""

    uid: PodUid
    node: str
    bound_ms: str
    gated: str
    deleting: str
    phase: str
    version: str

    @property
    def bound_to(self) -> str:
        """The node; ``""`` while the pod is not bound."""
        return "" if self.node == _NOTHING else self.node


_WORDS = len(PodState._fields)


class WrittenStatus(ApiRecord, frozen=True):
    """What the scheduler wrote onto a pending pod; a nominated node of None leaves the manifest's."""

    nominated_node_name: str | None = None
    conditions: list[PodCondition] = []


def pod_state(line: bytes) -> PodState:
    """A state line as it stands in Redis.

    Raises:
        ValueError: somebody else has written it.
    """
    return PodState(*_words(line))  # type: ignore[arg-type]


def _words(line: bytes) -> list[str]:
    words = line.decode().split(" ")
    if len(words) != _WORDS or not words[2].isdigit() or not words[6].isdigit():
        raise ValueError(f"state line {line!r} is not 'UID NODE BOUND-MS GATED DELETING PHASE VERSION'")
    return words


def state_line(value: Object, node: str, bound_ms: int | str) -> str:
    """The state line of a pod as applied, without the version that the script adds."""
    gated = "gated" if value["spec"].get("schedulingGates") else _NOTHING
    deleting = "deleting" if value["metadata"].get("deletionTimestamp") else _NOTHING
    phase = value.get("status", {}).get("phase") or PENDING
    return f"{value['metadata']['uid']} {node or _NOTHING} {bound_ms} {gated} {deleting} {phase}"


def head(kind: kinds.Kind) -> str:
    """The JSON of an object up to its resourceVersion."""
    return f'{{"apiVersion":"{kind.api_version}","kind":"{kind.name}","metadata":{{"resourceVersion":"'


def tail(value: Object) -> bytes:
    """The JSON of an object after its resourceVersion; its uid comes first."""
    given = value["metadata"]
    metadata = {"uid": given["uid"], **{name: item for name, item in given.items() if name != "resourceVersion"}}
    rest = {name: item for name, item in value.items() if name not in ("apiVersion", "kind", "metadata")}
    encoded = msgspec.json.encode(rest)
    return b'",' + msgspec.json.encode(metadata)[1:] + (b"," + encoded[1:] if rest else b"}")


_NO_STRINGS = msgspec.Raw(b"{}")


class _ReadMeta(ApiRecord, frozen=True):
    """metadata; what is often the same in many objects is still JSON."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: msgspec.Raw = msgspec.Raw(b"{}")
    annotations: msgspec.Raw = _NO_STRINGS
    creation_timestamp: str = ""
    deletion_timestamp: str = ""
    owner_references: msgspec.Raw = msgspec.Raw(b"[]")


class _ReadPod(ApiRecord, frozen=True):
    """A pod of which only that has been read which no other pod has."""

    metadata: _ReadMeta = _ReadMeta()
    spec: msgspec.Raw = msgspec.Raw(b"{}")
    status: msgspec.Raw = msgspec.Raw(b"{}")


_pods = msgspec.json.Decoder(_ReadPod)


class _Parts(NamedTuple):
    """What pods of a template have in common."""

    labels: dict[str, str]
    annotations: dict[str, str]
    owners: list[OwnerReference]
    spec: PodSpec
    status: PodStatus


_templates: dict[tuple[int, int], tuple[_ReadPod, _Parts]] = {}
"""By the lengths of spec and labels, a pod that was read last with these. To compare bytes takes a tenth of the time in
which they are copied and hashed, as looking each part up takes."""


@lru_cache(maxsize=SPECS)
def _spec(raw: bytes) -> PodSpec:
    return sound.spec(msgspec.json.decode(raw, type=PodSpec))


@lru_cache(maxsize=SPECS)
def _strings(raw: bytes) -> dict[str, str]:
    return msgspec.json.decode(raw, type=dict[str, str])


_NONE = _strings(bytes(_NO_STRINGS))


@lru_cache(maxsize=SPECS)
def _owners(raw: bytes) -> list[OwnerReference]:
    return msgspec.json.decode(raw, type=list[OwnerReference])


@lru_cache(maxsize=SPECS)
def _status(raw: bytes, written: bytes | None = None) -> PodStatus:
    status = msgspec.json.decode(raw, type=PodStatus)
    return _merged(status, written) if written else status


def applied(raw: bytes) -> Pod:
    """A pod as it was applied. Pods of one template have equal specs, labels and owners, most of a pod, which are read
    once and shared.

    Raises:
        msgspec.ValidationError, msgspec.DecodeError: as `from_json`.
    """
    return _read(raw, "", None)


def _read(raw: bytes, version: str, status: bytes | None) -> Pod:
    """A pod as it was applied, with another version where that is given, and with what the scheduler wrote about it."""
    try:
        read = _pods.decode(raw)
        given, parts = read.metadata, _parts(read)
        metadata = ObjectMeta(
            given.name,
            intern(given.namespace),
            given.uid,
            version or given.resource_version,
            parts.labels,
            parts.annotations,
            intern(given.creation_timestamp),
            given.deletion_timestamp,
            parts.owners,
        )
        return Pod(metadata, parts.spec, parts.status if status is None else _status(bytes(read.status), status))
    except msgspec.ValidationError:  # explicit nulls, or no pod at all
        found = from_json(raw, Pod)
        sound.spec(found.spec)
        return with_status(_versioned(found, version), status)


def _parts(read: _ReadPod) -> _Parts:
    meta = read.metadata
    lengths = len(read.spec), len(meta.labels)
    known = _templates.get(lengths)
    if known is not None:
        other, parts = known
        if (
            read.spec == other.spec
            and meta.labels == other.metadata.labels
            and meta.owner_references == other.metadata.owner_references
            and meta.annotations == other.metadata.annotations
            and read.status == other.status
        ):
            return parts
    parts = _Parts(
        _strings(bytes(meta.labels)),
        _NONE if meta.annotations is _NO_STRINGS else _strings(bytes(meta.annotations)),
        _owners(bytes(meta.owner_references)),
        _spec(bytes(read.spec)),
        _status(bytes(read.status)),
    )
    if len(_templates) >= SPECS:
        _templates.clear()
    _templates[lengths] = read, parts
    return parts


def _versioned(found: Pod, version: str) -> Pod:
    if not version or found.metadata.resource_version == version:
        return found
    return msgspec.structs.replace(found, metadata=msgspec.structs.replace(found.metadata, resource_version=version))


def pod(raw: bytes, line: bytes, status: bytes | None) -> Pod:
    """A pod as it is now. A bound pod's condition PodScheduled=True is left to `shown`: scheduling does not read it."""
    uid, waits, version = line.decode().partition(_WAITS)
    node = _NOTHING
    if not waits or " " in uid or not version.isdigit():  # it is read so only where it must: there may be a million
        uid, node, *_, version = _words(line)
    bound = node != _NOTHING
    found = _read(raw, version, None if bound else status)
    if found.metadata.uid != uid:
        return applied(raw)
    return on_node(found, node) if bound else found


def on_node(found: Pod, node: str) -> Pod:
    """The pod, bound."""
    if found.spec.node_name == node:
        return found
    return msgspec.structs.replace(found, spec=msgspec.structs.replace(found.spec, node_name=node))


def with_status(found: Pod, status: bytes | None) -> Pod:
    """The pod with what the scheduler wrote about it."""
    return msgspec.structs.replace(found, status=_merged(found.status, status)) if status else found


def _merged(status: PodStatus, written: bytes) -> PodStatus:
    """A pod's status with what the scheduler wrote about it."""
    read = msgspec.json.decode(written, type=WrittenStatus)
    nominated = read.nominated_node_name
    return msgspec.structs.replace(
        status,
        conditions=[each for each in status.conditions if each.type != POD_SCHEDULED] + read.conditions,
        nominated_node_name=status.nominated_node_name if nominated is None else nominated,
    )


def shown(raw: bytes, line: bytes, status: bytes | None) -> Object:
    """A pod as the plain object that people see, its conditions complete."""
    value: Object = msgspec.json.decode(raw)
    state = pod_state(line)
    if value["metadata"]["uid"] != state.uid:
        return value
    value["metadata"]["resourceVersion"] = state.version
    given = value.setdefault("status", {})
    if state.bound_to:
        value["spec"]["nodeName"] = state.bound_to
        given.pop("nominatedNodeName", None)
        own: list[Object] = [
            {"type": POD_SCHEDULED, "status": "True", "lastTransitionTime": rfc3339(int(state.bound_ms))}
        ]
    else:
        written: Object = msgspec.json.decode(status) if status else {}
        own = written.get("conditions", [])
        if nominated := written.get("nominatedNodeName", given.get("nominatedNodeName")):
            given["nominatedNodeName"] = nominated
        else:
            given.pop("nominatedNodeName", None)
    if own:
        given["conditions"] = [each for each in given.get("conditions", []) if each.get("type") != POD_SCHEDULED] + own
    return value


@lru_cache(maxsize=TIMES)
def rfc3339(ms: int) -> str:
    """A time in ms since the epoch as the API writes it, in whole seconds."""
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
