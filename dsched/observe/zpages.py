"""``/statusz`` and ``/flagz``: since when and as which version a process runs, and with which options.

For people as text, for programs as an object of ``config.k8s.io/v1beta1`` (or the deprecated ``v1alpha1``). In the text
kube-scheduler chooses a separator by chance among four, so that nobody parses it; here it is always the same one.

Source: apiserver v0.37 pkg/server/statusz/statusz.go, textserializer.go; pkg/server/flagz/flagz.go, textserializer.go;
cmd/kube-scheduler/app/server.go ``newEndpointsHandler``.
"""

import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus

import msgspec
import yaml

from dsched.clock import Clock
from dsched.observe.negotiation import GROUP, SERVED, TEXT, YAML, Form, negotiate
from dsched.observe.pages import PLAIN, Answer

COMPONENT = "dsched"
DEPRECATED = "v1alpha1"

_HEAD = """
{component} {page}
Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is for \
debugging purposes only."""


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
        head = {"kind": self.kind, "apiVersion": f"{GROUP}/{form.version}", "metadata": {"name": COMPONENT}}
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
        "message": f"only the following media types are accepted: {', '.join(SERVED)}",
        "reason": "NotAcceptable",
        "code": int(HTTPStatus.NOT_ACCEPTABLE),
    }
    return Answer("application/json", msgspec.json.encode(status), HTTPStatus.NOT_ACCEPTABLE)


def _encoded(value: Mapping[str, object], media_type: str) -> bytes:
    if media_type == YAML:
        text: str = yaml.safe_dump(dict(value), allow_unicode=True)
        return text.encode()
    return msgspec.json.format(msgspec.json.encode(value))
