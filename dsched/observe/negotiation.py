"""Which form of a z-page a client asks for: text, or an object of ``config.k8s.io`` as JSON or YAML.

Objects are asked for by version, group and kind, as in ``application/json;v=v1beta1;g=config.k8s.io;as=Statusz``. A
type without them, or with others, is passed over, so that ``*/*`` means text.

Source: apiserver v0.37 pkg/endpoints/handlers/negotiation/negotiate.go ``NegotiateMediaTypeOptions``,
pkg/server/statusz/negotiate/negotiation.go; munnerz/goautoneg ``ParseAccept``.
"""

from typing import NamedTuple

TEXT = "text/plain"
JSON = "application/json"
YAML = "application/yaml"
SERVED = (JSON, YAML, TEXT)
GROUP = "config.k8s.io"
VERSIONS = ("v1alpha1", "v1beta1")


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
        for media_type in SERVED:
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
    return Form(media_type, version) if (group, named) == (GROUP, kind) and version in VERSIONS else None


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
