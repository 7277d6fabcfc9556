"""Which strings are label keys, label values and extended resource names.

Each function returns what is wrong, one message each, empty when the name is good. The number of messages is part of
the contract: a caller reports each of them at the field.

Source: apimachinery pkg/util/validation (``IsQualifiedName``, ``IsValidLabelValue``, ``IsDNS1123Subdomain``) and
pkg/apis/core/v1/helper (``IsExtendedResourceName``).
"""

import re

_NAME = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_MAX_NAME_BYTES = 63
_MAX_SUBDOMAIN_BYTES = 253
_NAME_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc')"
)
_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com')"
)


def qualified_name_problems(name: str) -> list[str]:
    """Problems of a label key or resource name: ``[DNS_SUBDOMAIN/]NAME`` with at most 63 bytes of NAME."""
    if name.count("/") > 1:
        return [f"a qualified name {_NAME_RULE} with an optional DNS subdomain prefix and '/'"]
    prefix, slash, local = name.rpartition("/")
    problems = _prefix_problems(prefix) if slash else []
    if not local:
        problems.append("name part must be non-empty")
    elif len(local.encode()) > _MAX_NAME_BYTES:
        problems.append(f"name part must be no more than {_MAX_NAME_BYTES} bytes")
    if not _NAME.fullmatch(local):
        problems.append(f"name part {_NAME_RULE}")
    return problems


def _prefix_problems(prefix: str) -> list[str]:
    if not prefix:
        return ["prefix part must be non-empty"]
    problems = []
    if len(prefix.encode()) > _MAX_SUBDOMAIN_BYTES:
        problems.append(f"prefix part must be no more than {_MAX_SUBDOMAIN_BYTES} bytes")
    if not _SUBDOMAIN.fullmatch(prefix):
        problems.append(f"prefix part {_SUBDOMAIN_RULE}")
    return problems


def label_value_problems(value: str) -> list[str]:
    """Problems of a label value: empty, or at most 63 bytes of NAME."""
    problems = []
    if len(value.encode()) > _MAX_NAME_BYTES:
        problems.append(f"must be no more than {_MAX_NAME_BYTES} bytes")
    if value and not _NAME.fullmatch(value):
        problems.append(f"a valid label must be an empty string or {_NAME_RULE}")
    return problems


def is_extended_resource(name: str) -> bool:
    """Whether a (qualified) resource name lies outside Kubernetes' own domain and can be put under quota."""
    if "/" not in name or "kubernetes.io/" in name or name.startswith("requests."):
        return False
    return not qualified_name_problems(f"requests.{name}")
