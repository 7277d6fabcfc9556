"""The rules by which a decision is compared with what kube-scheduler decided.

Statuses by plugin, code and reasons as a multiset; nodes and plugins as sets; scores, totals and texts exactly.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

Decision = Mapping[str, Any]

STATUSES = ("preEnqueue", "preFilter")
SETS = ("preFilterNodes", "feasible", "best", "unschedulablePlugins")
TEXTS = ("fitError",)

_TELLS = re.compile(r'^(running (plugin )?"\w+"( filter plugin)?: |Error: )*')
_CEL = re.compile("CEL (compile|runtime) error:")


def differences(found: Decision, expect: Decision) -> list[str]:
    """One line a difference, empty for none; what is absent counts as empty."""
    if "error" in found or "error" in expect:
        return _error(found.get("error"), expect.get("error"))
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
    lines += _devices(found, expect)
    return lines + _preemption(found.get("preemption"), expect.get("preemption"))


def _error(found: Mapping[str, Any] | None, expected: Mapping[str, Any] | None) -> list[str]:
    """The same plugin failed, with one of the messages that are expected."""
    if found is None or expected is None:
        return _exactly("error", found, expected)
    lines = _exactly("error.plugin", found["plugin"], expected["plugin"])
    possible = {_essence(message) for message in expected["messages"].values()}
    if _essence(found["message"]) not in possible:
        lines.append(f"error.message: expected one of {sorted(possible)}, found {_essence(found['message'])!r}")
    return lines


def _essence(message: str) -> str:
    """A message without who tells it, and without the words of CEL, which are free."""
    return _CEL.split(_TELLS.sub("", message), maxsplit=1)[0]


def _devices(found: Decision, expect: Decision) -> list[str]:
    """The same devices on every node, and the same claims for extended resources."""
    lines = []
    for field, comparable in (("allocations", _by_claim), ("extendedResourceClaims", _made_claim)):
        here, there = found.get(field) or {}, expect.get(field) or {}
        for node in _keys(here, there):
            lines += _exactly(f"{field}[{node}]", comparable(here.get(node)), comparable(there.get(node)))
    return lines


def _by_claim(allocations: Mapping[str, Any] | None) -> object:
    """Node selectors by what they mean: the order of requirements and values is of none."""
    return {
        claim: {**allocation, "nodeSelector": _selector(allocation.get("nodeSelector"))}
        for claim, allocation in (allocations or {}).items()
    }


def _selector(selector: Mapping[str, Any] | None) -> object:
    if selector is None:
        return None
    return [
        {
            field: sorted((each["key"], each["operator"], *sorted(each.get("values") or ())) for each in term[field])
            for field in ("matchExpressions", "matchFields")
            if term.get(field)
        }
        for term in selector.get("nodeSelectorTerms") or ()
    ]


def _made_claim(made: Mapping[str, Any] | None) -> object:
    """The requests of the claim, and which of them are for which containers, in any order."""
    mappings = (made or {}).get("requestMappings") or ()
    requests = (made or {}).get("spec", {}).get("devices", {}).get("requests") or []
    return made is None, requests, sorted(sorted(each.items()) for each in mappings)


def _preemption(found: Mapping[str, Any] | None, expected: Mapping[str, Any] | None) -> list[str]:
    """The chosen node is one of those expected, with exactly its victims; the message is the same."""
    if found is None or expected is None:
        return _exactly("preemption", found, expected)
    lines = _exactly("preemption.message", found.get("message"), expected.get("message"))
    lines += _exactly("preemption.error", found.get("error"), expected.get("error"))
    lines += _exactly("preemption.deletedClaims", found.get("deletedClaims"), expected.get("deletedClaims"))
    deleted = expected.get("deletedClaims") or ()
    # What is deleted is written once without its finalizer, which was recorded as if it were deallocated.
    choices = [claim for claim in expected.get("deallocated") or () if claim not in deleted]
    chosen = found.get("deallocated") or []
    if (len(chosen) != 1 or chosen[0] not in choices) if choices else chosen:
        lines.append(f"preemption.deallocated: expected one of {choices}, found {chosen}")
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
