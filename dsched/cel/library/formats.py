"""Kubernetes' named formats: ``format.dns1123Label().validate('x')``.

apiserver: ``pkg/cel/library/format.go``; apimachinery: ``pkg/util/validation``; kube-openapi:
``pkg/validation/strfmt``.
"""

import base64
import binascii
import re
from collections.abc import Callable
from datetime import date
from typing import Any

from dsched.cel.library.declarations import Overload, overload
from dsched.cel.library.urls import parse as parse_url
from dsched.cel.values import NONE, Format, Optional, Url

_LABEL_1123 = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_LABEL_1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NAME = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_UUID = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.IGNORECASE | re.ASCII)
_DATE_TIME = re.compile(r"\d{4}-\d\d-\d\d[tT](\d\d):(\d\d):(\d\d)(\.\d+)?(z|Z|[+-]\d\d:\d\d)", re.ASCII)
Errors = list[str]


def _labelled(pattern: re.Pattern[str], limit: int, what: str, prefix: bool = False) -> Callable[[str], Errors]:
    def check(text: str) -> Errors:
        if prefix and text.endswith("-"):  # what a generated suffix may be appended to
            text = text[:-1] + "a"
        errors = [] if pattern.fullmatch(text) else [f"must be {what}"]
        return [f"must be no more than {limit} characters", *errors] if len(text.encode()) > limit else errors

    return check


def _qualified_name(text: str) -> Errors:
    prefix, slash, name = text.partition("/")
    if not slash:
        prefix, name = "", text
    errors: Errors = []
    if "/" in name:
        return ["a qualified name must consist of alphanumeric characters, with an optional DNS subdomain prefix"]
    if slash:
        errors += [f"prefix part {each}" for each in (_SUBDOMAIN_CHECK(prefix) if prefix else ["must be non-empty"])]
    if not name or len(name) > 63 or not _NAME.fullmatch(name):
        errors.append("name part must consist of alphanumeric characters, '-', '_' or '.'")
    return errors


def _label_value(text: str) -> Errors:
    if len(text) > 63:
        return ["must be no more than 63 bytes"]
    return [] if not text or _NAME.fullmatch(text) else ["a valid label must be an empty string or alphanumeric"]


def _uri(text: str) -> Errors:
    return [] if type(parse_url(text)) is Url else ["invalid URI for request"]


def _uuid(text: str) -> Errors:
    return [] if _UUID.fullmatch(text) else ["does not match the UUID format"]


def _byte(text: str) -> Errors:
    try:
        base64.b64decode(text.replace("\r", "").replace("\n", "").encode(), validate=True)
    except (binascii.Error, ValueError):
        return ["invalid base64"]
    return [] if text else ["invalid base64"]


def _date(text: str) -> Errors:
    try:
        date.fromisoformat(text)
    except ValueError:
        return ["invalid date"]
    return [] if len(text) == 10 else ["invalid date"]


def _datetime(text: str) -> Errors:
    match = _DATE_TIME.fullmatch(text)
    if match is None or _date(text[:10]):
        return ["invalid datetime"]
    hour, minute, second = int(match[1]), int(match[2]), int(match[3])
    return [] if hour <= 23 and minute <= 59 and second <= 59 else ["invalid datetime"]


_SUBDOMAIN_CHECK = _labelled(_SUBDOMAIN, 253, "a lowercase RFC 1123 subdomain")
_FORMATS: dict[str, tuple[Callable[[str], Errors], int]] = {
    "dns1123Label": (_labelled(_LABEL_1123, 63, "a lowercase RFC 1123 label"), 30),
    "dns1123Subdomain": (_SUBDOMAIN_CHECK, 60),
    "dns1035Label": (_labelled(_LABEL_1035, 63, "a DNS-1035 label"), 30),
    "qualifiedName": (_qualified_name, 60),
    "dns1123LabelPrefix": (_labelled(_LABEL_1123, 63, "a lowercase RFC 1123 label", True), 30),
    "dns1123SubdomainPrefix": (_labelled(_SUBDOMAIN, 253, "a lowercase RFC 1123 subdomain", True), 60),
    "dns1035LabelPrefix": (_labelled(_LABEL_1035, 63, "a DNS-1035 label", True), 30),
    "labelValue": (_label_value, 40),
    "uri": (_uri, 1103),
    "uuid": (_uuid, 72),
    "byte": (_byte, 84),
    "date": (_date, 72),
    "datetime": (_datetime, 72),
}
"""Checks by name, and the length of a pattern as the cost of checking counts it."""


def pattern_size(value: Format) -> int:
    """The length of pattern that checking a format is charged for."""
    return _FORMATS[value.name][1]


def _named(name: str) -> Optional:
    return Optional(Format(name)) if name in _FORMATS else NONE


def _validate(value: Format, text: str) -> Optional:
    errors = _FORMATS[value.name][0](text)
    return Optional(errors) if errors else NONE


def _constant(name: str) -> Overload:
    def run() -> Any:
        return Format(name)

    return overload(f"format.{name}() -> Format", f"format.{name}", run)


OVERLOADS = [
    *(_constant(name) for name in _FORMATS),
    overload("format.named(string) -> optional(Format)", "format-named", _named),
    overload("Format::validate(string) -> optional(list(string))", "format-validate", _validate),
]
