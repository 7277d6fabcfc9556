"""``/statusz``, ``/flagz`` and ``/configz``: since when and as which version a process runs, with which options, and
with which configuration.

The first two are for people as text, for programs as an object of ``config.k8s.io/v1beta1`` (or the deprecated
``v1alpha1``). In the text kube-scheduler chooses a separator by chance among four, so that nobody parses it; here it is
always the same one. Objects are asked for by version, group and kind, as in
``application/json;v=v1beta1;g=config.k8s.io;as=Statusz``. A type without them, or with others, is passed over, so that
``*/*`` means text.

Source: apiserver v0.37 pkg/server/statusz/statusz.go, textserializer.go, negotiate/negotiation.go;
pkg/server/flagz/flagz.go, textserializer.go; pkg/endpoints/handlers/negotiation/negotiate.go
``NegotiateMediaTypeOptions``; munnerz/goautoneg ``ParseAccept``; component-base configz/configz.go;
cmd/kube-scheduler/app/server.go ``newEndpointsHandler``, ``Run``, which registers the configuration under the name
``componentconfig``.
"""

import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, NamedTuple

import msgspec
import yaml

from dsched import config
from dsched.clock import Clock
from dsched.config import SchedulerConfiguration
from dsched.observe.server import PLAIN, Answer, Page
from dsched.state import location

COMPONENT = "dsched"
DEPRECATED = "v1alpha1"

_HEAD = """
{component} {page}
Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is for \
debugging purposes only."""
_NAME = "componentconfig"
TEXT = "text/plain"
JSON = "application/json"
YAML = "application/yaml"
_SERVED = (JSON, YAML, TEXT)
_GROUP = "config.k8s.io"
_VERSIONS = ("v1alpha1", "v1beta1")


class Form(NamedTuple):
    """A media type, and the version of the object; empty for text."""

    media_type: str
    version: str = ""


class _Clause(NamedTuple):
    """One part of the header."""

    type: str
    subtype: str
    quality: float
    parameters: dict[str, str]

    def covers(self, media_type: str) -> bool:
        kind, _, subtype = media_type.partition("/")
        return (self.type, self.subtype) == ("*", "*") or (self.type == kind and self.subtype in ("*", subtype))


def negotiate(accept: str, kind: str) -> Form | None:
    """The form of a page of this kind that is wanted most, text where the header says nothing; None where none of
    those that are wanted is served."""
    if not accept.strip():
        return Form(TEXT)
    for clause in sorted(_clauses(accept), key=lambda each: (-each.quality, each.type == "*", each.subtype == "*")):
        for media_type in _SERVED:
            if clause.covers(media_type) and (form := _form(media_type, kind, clause.parameters)) is not None:
                return form
    return None


def _form(media_type: str, kind: str, parameters: dict[str, str]) -> Form | None:
    wanted = [parameters.get(name) for name in ("g", "v", "as")]
    if parameters.get("stream") or parameters.get("sv"):
        return None
    if media_type == TEXT:
        return Form(TEXT) if wanted == [None, None, None] else None
    group, version, named = wanted
    return Form(media_type, version) if (group, named) == (_GROUP, kind) and version in _VERSIONS else None


def _clauses(accept: str) -> list[_Clause]:
    found = []
    for part in accept.split(","):
        media_type, *rest = part.split(";")
        kind, slash, subtype = (word.strip() for word in media_type.partition("/"))
        if not slash and kind != "*":
            continue
        pairs = [(name.strip(), value.strip()) for name, _, value in (each.partition("=") for each in rest)]
        parameters = {name: value for name, value in pairs if value}
        quality = _quality(parameters.pop("q", "1"))
        found.append(_Clause(kind, subtype or "*", quality, parameters))
    return found


def _quality(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


@dataclass(frozen=True, slots=True)
class ZPage:
    """One page in all its forms.

    Attributes:
        kind: of the object, such as ``Statusz``; the page has its name.
        fields: those of the object besides kind, version and metadata.
        lines: what follows the text's head.
    """

    kind: str
    fields: Callable[[], Mapping[str, object]]
    lines: Callable[[], Sequence[str]]

    def __call__(self, accept: str) -> Answer:
        """The page for a client that accepts these types; 406 where it is served in none of them."""
        form = negotiate(accept, self.kind)
        if form is None:
            return _not_acceptable()
        if form.media_type == TEXT:
            head = _HEAD.format(component=COMPONENT, page=self.kind.lower())
            return Answer(PLAIN, "\n".join([head, *self.lines(), ""]).encode())
        headers = {"Warning": self._deprecation()} if form.version == DEPRECATED else {}
        return Answer(form.media_type, self._object(form), headers=headers)

    def _object(self, form: Form) -> bytes:
        head = {"kind": self.kind, "apiVersion": f"{_GROUP}/{form.version}", "metadata": {"name": COMPONENT}}
        return _encoded({**head, **self.fields()}, form.media_type)

    def _deprecation(self) -> str:
        return f'299 - "This version of the {self.kind.lower()} endpoint is deprecated. Please use a newer version."'


class Status:
    """What ``/statusz`` tells of this process."""

    def __init__(self, clock: Clock, version: str, emulates: Callable[[], str], paths: Sequence[str]) -> None:
        """
        Args:
            version: of dsched.
            emulates: tells ``MAJOR.MINOR`` of the Kubernetes whose scheduler's decisions are made.
            paths: of the pages that are served, ``/`` before each.
        """
        self._clock = clock
        self._since_ms = clock.now_ms()
        self._version = version
        self._emulates = emulates
        self._paths = sorted(paths)

    def page(self) -> ZPage:
        """The page."""
        return ZPage("Statusz", self._fields, self._lines)

    @property
    def _since(self) -> datetime:
        return datetime.fromtimestamp(self._since_ms // 1000, UTC)

    def _up_s(self) -> int:
        return max(0, (self._clock.now_ms() - self._since_ms) // 1000)

    def _fields(self) -> Mapping[str, object]:
        """``goVersion``, which has no place for another language, stays empty."""
        return {
            "startTime": self._since.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "uptimeSeconds": self._up_s(),
            "goVersion": "",
            "binaryVersion": self._version,
            "emulationVersion": self._emulates(),
            "paths": self._paths,
        }

    def _lines(self) -> Sequence[str]:
        since, up_s = self._since, self._up_s()
        return [
            "",
            f"Started: {since:%a %b} {since.day:2} {since:%H:%M:%S} UTC {since.year}",
            f"Up: {up_s // 3600} hr {up_s // 60 % 60:02} min {up_s % 60:02} sec",
            f"Python version: {platform.python_version()}",
            f"Binary version: {self._version}",
            f"Emulation version: {self._emulates()}",
            f"Paths: {' '.join(self._paths)}",
        ]


def flagz(flags: Mapping[str, str]) -> ZPage:
    """The page that tells of options, by name without dashes; secrets are to be hidden in them already."""
    lines = [f"{name}={flags[name]}" for name in sorted(flags)]
    return ZPage("Flagz", lambda: {"flags": dict(flags)}, lambda: lines)


def _not_acceptable() -> Answer:
    """Source: apiserver pkg/endpoints/handlers/negotiation/errors.go ``errNotAcceptable``."""
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": f"only the following media types are accepted: {', '.join(_SERVED)}",
        "reason": "NotAcceptable",
        "code": int(HTTPStatus.NOT_ACCEPTABLE),
    }
    return Answer("application/json", msgspec.json.encode(status), HTTPStatus.NOT_ACCEPTABLE)


def _encoded(value: Mapping[str, object], media_type: str) -> bytes:
    if media_type == YAML:
        text: str = yaml.safe_dump(dict(value), allow_unicode=True)
        return text.encode()
    return msgspec.json.format(msgspec.json.encode(value))


def configz(configured: Callable[[], SchedulerConfiguration]) -> Page:
    """The page of the completed configuration, as v1, that ``configured`` says when it is asked."""

    def answer(_accept: str) -> Answer:
        body = msgspec.json.encode({_NAME: _shown(configured())})
        return Answer("application/json", body, headers={"X-Content-Type-Options": "nosniff"})

    return answer


def _shown(configured: SchedulerConfiguration) -> dict[str, Any]:
    """As ``dsched config view`` prints it, but without private keys and passwords of extenders: nobody is asked who
    they are."""
    document = config.completed(configured)
    for extender in document.get("extenders") or ():
        extender["urlPrefix"] = location.shown(extender["urlPrefix"])
        (extender.get("tlsConfig") or {}).pop("keyData", None)
    return document
