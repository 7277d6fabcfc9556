"""The rules by which a decision is compared with what kube-scheduler decided.

Statuses by plugin, code and reasons as a multiset; nodes and plugins as sets; scores, totals and texts exactly.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

Decision = Mapping[str, Any]

STATUSES = ("preEnqueue", "preFilter")
SETS = ("preFilterNodes", "feasible", "best", "unschedulablePlugins")
TEXTS = ("fitError",)


def differences(found: Decision, expect: Decision) -> list[str]:
    """One line a difference, empty for none; what is absent counts as empty."""
    lines = [line for field in STATUSES for line in _status(field, found.get(field), expect.get(field))]
    filtered, rejected = found.get("filtered", {}), expect.get("filtered", {})
    for node in _keys(filtered, rejected):
        lines += _status(f"filtered[{node}]", filtered.get(node), rejected.get(node))
    for field in SETS:
        lines += _set(field, found.get(field), expect.get(field))
    for plugin in _keys(found.get("scores", {}), expect.get("scores", {})):
        lines += _column(f"scores[{plugin}]", found.get("scores", {}).get(plugin), expect.get("scores", {}).get(plugin))
    lines += _column("totals", found.get("totals", {}), expect.get("totals", {}))
    for field in TEXTS:
        lines += _exactly(field, found.get(field), expect.get(field))
    return lines + _preemption(found.get("preemption"), expect.get("preemption"))


def _preemption(found: Mapping[str, Any] | None, expected: Mapping[str, Any] | None) -> list[str]:
    """The chosen node is one of those expected, with exactly its victims; the message is the same."""
    if found is None or expected is None:
        return _exactly("preemption", found, expected)
    lines = _exactly("preemption.message", found.get("message"), expected.get("message"))
    lines += _exactly("preemption.error", found.get("error"), expected.get("error"))
    possible = expected.get("nominated") or {"": []}
    for node, victims in (found.get("nominated") or {"": []}).items():
        if node not in possible:
            lines.append(f"preemption.nominated: expected one of {sorted(possible)}, found {node!r}")
            continue
        if (possible[node] or []) != victims:
            lines.append(f"preemption.nominated[{node}]: expected {possible[node]}, found {victims}")
        said, expected_words = found.get("messages") or {}, expected.get("messages") or {}
        lines += _exactly(f"preemption.messages[{node}]", said.get(node), expected_words.get(node))
    return lines


def _keys(*mappings: Mapping[str, Any]) -> list[str]:
    return sorted({key for mapping in mappings for key in mapping})


def _exactly(field: str, found: object, expected: object) -> list[str]:
    return [] if found == expected else [f"{field}: expected {expected!r}, found {found!r}"]


def _status(field: str, found: Mapping[str, Any] | None, expected: Mapping[str, Any] | None) -> list[str]:
    return (
        []
        if _comparable(found) == _comparable(expected)
        else [f"{field}: expected {_text(expected)}, found {_text(found)}"]
    )


def _comparable(status: Mapping[str, Any] | None) -> object:
    if status is None:
        return None
    return status["code"], status.get("plugin", ""), Counter(status.get("reasons") or ())


def _text(status: Mapping[str, Any] | None) -> str:
    if status is None:
        return "none"
    return f"{status.get('plugin', '')} {status['code']} {list(status.get('reasons') or ())}"


def _set(field: str, found: Iterable[str] | None, expected: Iterable[str] | None) -> list[str]:
    missing, extra = set(expected or ()) - set(found or ()), set(found or ()) - set(expected or ())
    return [f"{field}: missing {sorted(missing)}, too many {sorted(extra)}"] if missing or extra else []


def _column(field: str, found: Mapping[str, int] | None, expected: Mapping[str, int] | None) -> list[str]:
    if (found is None or expected is None) and not any((found or expected or {}).values()):
        return []  # 0 everywhere is the same as none
    if found is None or expected is None:
        return [
            f"{field}: expected {'none' if expected is None else expected}, found {'none' if found is None else found}"
        ]
    return [
        f"{field}[{node}]: expected {expected.get(node)}, found {found.get(node)}"
        for node in _keys(found, expected)
        if found.get(node) != expected.get(node)
    ]
