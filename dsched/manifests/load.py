"""Manifests to objects ready to be applied: read, checked, defaults filled in."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from dsched.manifests import defaulting, group_checks, kinds, other_checks, pod_checks, queue_checks, reader, syntax
from dsched.manifests.problems import Problems, Report, said
from dsched.manifests.reader import Document
from dsched.manifests.selector_checks import labels
from dsched.manifests.typed import convert
from dsched.model import coscheduling
from dsched.model.meta import ObjectMeta
from dsched.model.node import Node
from dsched.model.pod import Pod

SPECS = 4096
"""Sound pod specs that are remembered while the manifests of a call are checked."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """An object to apply.

    Attributes:
        origin: file and document, for messages.
        key: ``namespace/name`` or ``name``.
        value: the object, checked, with its defaults.
    """

    origin: str
    kind: kinds.Kind
    key: str
    value: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Named:
    """Which object a manifest is about, for deleting it."""

    origin: str
    kind: kinds.Kind
    key: str


def load(paths: Sequence[str], namespace: str | None = None) -> list[Manifest]:
    """Read and check the manifests of files, folders and standard input.

    Args:
        namespace: for objects that name none (default: ``default``); one that names another is refused.

    Raises:
        ManifestError: with all problems found, each naming its file, document and field.
    """
    problems = Problems()
    return _checked(reader.read(paths, problems), namespace, problems)


def load_text(content: bytes, shown: str, namespace: str | None = None) -> list[Manifest]:
    """Read and check the manifests in a text, called ``shown`` in messages; as `load`."""
    problems = Problems()
    return _checked(reader.read_text(content, shown, problems), namespace, problems)


def check(documents: Sequence[Document], namespace: str | None = None) -> list[Manifest]:
    """Check objects that were made, not read; as `load`."""
    return _checked(documents, namespace, Problems())


def load_names(paths: Sequence[str], namespace: str | None = None) -> list[Named]:
    """Which objects the manifests are about; of their content only kind, name and namespace are read.

    Raises:
        ManifestError: with all problems found.
    """
    problems = Problems()
    found = [named for _, named in _distinct(reader.read(paths, problems), namespace, problems)]
    problems.raise_any()
    return found


def _checked(documents: Sequence[Document], namespace: str | None, problems: Problems) -> list[Manifest]:
    specs = _Specs()
    manifests = [
        Manifest(named.origin, named.kind, named.key, document.value)
        for document, named in _distinct(documents, namespace, problems)
        if _sound(document, named.kind, specs, problems)
    ]
    problems.raise_any()
    return manifests


def _distinct(documents: Sequence[Document], namespace: str | None, problems: Problems) -> list[tuple[Document, Named]]:
    found: list[tuple[Document, Named]] = []
    places: dict[tuple[str, str], str] = {}
    for document in documents:
        named = _named(document, namespace, problems)
        if named is None:
            continue
        first = places.setdefault((named.kind.name, named.key), document.origin)
        if first != document.origin:
            problems.add(document.origin, f"{named.kind.singular} {named.key} is already given in {first}")
        else:
            found.append((document, named))
    return found


def _named(document: Document, namespace: str | None, problems: Problems) -> Named | None:
    """Find out which object it is; completes its namespace."""
    value = document.value
    kind = _kind(value, document.origin, problems)
    metadata = value.setdefault("metadata", {})
    if kind is None:
        return None
    if not isinstance(metadata, dict):
        problems.add(document.origin, "metadata: expected an object")
        return None
    name = metadata.get("name")
    if not isinstance(name, str) or not name:
        problems.add(
            document.origin, "metadata.name: is missing" if name in (None, "") else "metadata.name: is no text"
        )
        return None
    found = len(problems)
    place = _namespace(metadata, kind, namespace, document.origin, problems)
    return None if len(problems) > found else Named(document.origin, kind, kind.key(place, name))


def _kind(value: dict[str, Any], origin: str, problems: Problems) -> kinds.Kind | None:
    name = value.get("kind")
    kind = kinds.BY_NAME.get(name) if isinstance(name, str) else None
    if kind is None:
        problems.add(origin, _unknown_kind(name))
        return None
    version = value.get("apiVersion")
    if version not in (kind.api_version, *kind.same_as):
        found = f'"{version}" is not' if version else "is missing: expected"
        problems.add(origin, f"apiVersion: {found} {kind.api_version}, the one taken for kind {kind.name}")
        return None
    return kind


def _unknown_kind(name: Any) -> str:
    if name is None:
        return "kind: is missing"
    if isinstance(name, str) and name in kinds.WORKLOADS:
        return (
            f"kind: standalone mode has no controllers that make pods of a {name}; apply the pods themselves, "
            "or run dsched against a Kubernetes cluster"
        )
    return f'kind: "{name}" is not one of {", ".join(sorted(kinds.BY_NAME))}'


def _namespace(metadata: dict[str, Any], kind: kinds.Kind, wanted: str | None, origin: str, problems: Problems) -> str:
    if not kind.namespaced:
        metadata.pop("namespace", None)
        return ""
    given = metadata.get("namespace") or wanted or defaulting.DEFAULT_NAMESPACE
    wrong = syntax.dns_label(given) if isinstance(given, str) else f"expected text, found {given}"
    if wanted and given != wanted:
        wrong = f'"{given}" is not the namespace asked for, "{wanted}"'
    if wrong:
        problems.add(origin, f"metadata.namespace: {wrong}")
        return ""
    metadata["namespace"] = given
    return str(given)


class _Specs:
    """Pod specs that were found sound: the pods of one template have equal ones, which are checked once."""

    def __init__(self) -> None:
        self._sound: dict[bytes, Any] = {}

    def find(self, spec: Any) -> tuple[bytes, bool]:
        """What to remember the spec by, and whether one equal to it was found sound.

        YAML knows types that JSON writes alike, Python numbers that it takes for equal: both have to agree.
        """
        json = msgspec.json.encode(spec)
        return json, json in self._sound and bool(self._sound[json] == spec)

    def remember(self, json: bytes) -> None:
        """A spec, as `find` gave it, is sound."""
        if len(self._sound) < SPECS:
            self._sound[json] = msgspec.json.decode(json)  # not the spec itself, into which defaults are filled


def _sound(document: Document, kind: kinds.Kind, specs: _Specs, problems: Problems) -> bool:
    """Check the object and, when nothing is wrong with it, fill in its defaults."""
    found = len(problems)

    def report(path: str, what: str) -> None:
        problems.add(document.origin, f"{path}: {what}" if path else what)

    if kind in _WITH_SPEC:
        document.value.setdefault("spec", {})
    if kind is kinds.POD_GROUP and not _read_as_ours(document.value, report):
        return False
    if kind is kinds.POD:
        json, known = specs.find(document.value["spec"])
        _check_pod(document.value, known, report)
        if not known and len(problems) == found:
            specs.remember(json)
    else:
        _check(document.value, kind, report)
    if len(problems) > found:
        return False
    defaulting.fill_in(kind, document.value)
    return True


def _read_as_ours(value: dict[str, Any], report: Report) -> bool:
    """Make a PodGroup of Kubernetes of one of scheduler-plugins; False where that is not sound."""
    if value["apiVersion"] != coscheduling.API_VERSION:
        return True
    given = convert(value, coscheduling.CoschedulingGroup, report)
    if given is None:
        return False
    group_checks.coscheduling_group(given, report)
    value.update(coscheduling.pod_group(value))
    return True


_WITH_SPEC = frozenset(
    {kinds.POD, kinds.POD_GROUP, kinds.QUEUE, kinds.PERSISTENT_VOLUME, kinds.PERSISTENT_VOLUME_CLAIM}
)


def _check_pod(value: dict[str, Any], known: bool, report: Report) -> None:
    """Check a pod; of one whose spec is known to be sound, the rest."""
    read = {name: item for name, item in value.items() if name != "spec"} if known else value
    pod = convert(read, Pod, report)
    if pod is None:
        return
    _metadata(pod.metadata, kinds.POD, report)
    if not known:
        pod_checks.spec(pod.spec, report)
    pod_checks.status(pod.status, report)


def _check(value: dict[str, Any], kind: kinds.Kind, report: Report) -> None:
    if kind is kinds.NODE:
        node = convert(value, Node, report)
        if node is not None:
            _metadata(node.metadata, kind, report)
            other_checks.node(node, report)
    else:
        shape, check = other_checks.CHECKS[kind]
        if kind is kinds.QUEUE and not queue_checks.fields(value, report):
            return
        record = convert(value, shape, report)
        if record is not None:
            _metadata(record.metadata, kind, report)
            check(record, report)


def _metadata(metadata: ObjectMeta, kind: kinds.Kind, report: Report) -> None:
    name = syntax.dns_label if kind is kinds.NAMESPACE else syntax.subdomain
    said(name(metadata.name), "metadata.name", report)
    if metadata.labels:
        labels(metadata.labels, "metadata.labels", report)
    for key in metadata.annotations:
        said(syntax.qualified_name(key.lower()), "metadata.annotations", report)
    said(syntax.uid(metadata.uid) if metadata.uid else "", "metadata.uid", report)
